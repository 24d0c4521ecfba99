//! The error of a response that the guest does not get. `cleaning` and `screening` withhold responses.

use thiserror::Error;
use wasm_cpi_checks::{Check, RefusedBy};

/// The reason why a response is withheld from the guest. Quotes nothing of the response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Withheld {
    pub reason: Reason,
    pub message: String,
    /// The check that refused.
    pub check: Option<Check>,
}

/// Returns the error that withholds the response to a request. Its message does not say who failed.
pub(super) fn withheld(method: &str, path: &str, reason: Reason, why: &str) -> Withheld {
    Withheld { reason, message: format!("the response to {method} {path} was withheld: {why}"), check: None }
}

impl RefusedBy for Withheld {
    fn refused_by(self, check: Check) -> Withheld {
        Withheld { check: self.check.or(Some(check)), ..self }
    }
}

/// The kind of the reason for withholding a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The response holds the secret of this name.
    Leak(String),
    /// The response holds agent settings or places that a grant drops, and they cannot be removed.
    NotCleaned,
    /// The response is compressed, or in another charset than UTF-8, so it cannot be searched.
    Encoded,
    /// A value to capture, or a field with credentials, cannot be read.
    Unreadable,
}
