//! The error of a response that the guest does not get.

use thiserror::Error;
use wasm_cpi_checks::{Check, RefusedBy};

/// The reason why a response is withheld from the guest. Quotes nothing of the response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct WithheldResponse {
    pub kind: WithheldKind,
    pub message: String,
    /// The check that refused.
    pub check: Option<Check>,
}

impl WithheldResponse {
    /// Returns the error that withholds the response to a request. Its message does not say who failed.
    pub(super) fn new(method: &str, path: &str, kind: WithheldKind, why: &str) -> WithheldResponse {
        let message = format!("the response to {method} {path} was withheld: {why}");
        WithheldResponse { kind, message, check: None }
    }
}

impl RefusedBy for WithheldResponse {
    fn refused_by(self, check: Check) -> WithheldResponse {
        WithheldResponse { check: self.check.or(Some(check)), ..self }
    }
}

/// The kind of the reason for withholding a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithheldKind {
    /// The response holds the secret of this name.
    Leak(String),
    /// The response holds agent settings or places that a grant drops, and they cannot be removed.
    NotCleaned,
    /// The response is compressed, or in another charset than UTF-8, so it cannot be searched.
    Encoded,
    /// A value to capture, or a field with credentials, cannot be read.
    Unreadable,
}
