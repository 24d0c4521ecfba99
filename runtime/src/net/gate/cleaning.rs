//! Cleans answers by what the policy says, and keeps for people what the guest does not see.

use super::{Gate, HttpEvent};
use crate::net::cleaning::{self, Answer, Rules};
use crate::net::error::{HttpError, HttpErrorKind};
use reqwest::Method;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::{Cleaning, Grant};

/// The headers and the body of an answer.
type Content<'a> = (&'a mut Vec<(String, String)>, &'a mut Vec<u8>);

impl Gate {
    /// Cleans an answer in place, or withholds it.
    #[expect(clippy::too_many_arguments, reason = "each is one fact about the exchange")]
    pub(super) fn clean(
        &self,
        grant: &Grant,
        cleaning: &Cleaning,
        method: &Method,
        destination: &Destination,
        status: u16,
        (headers, body): Content<'_>,
        event: &mut HttpEvent,
    ) -> Result<(), HttpError> {
        let rules = Rules { grant, cleaning, filled: &event.seals };
        let answer = Answer { method: method.as_str(), path: destination.path(), status, headers, body };
        let hidden = cleaning::clean(&rules, answer).map_err(|error| HttpError {
            check: error.check,
            ..HttpError::new(HttpErrorKind::Protocol, error.message)
        })?;
        if let Some(hidden) = hidden {
            event.hidden = self.vault.redact(&hidden);
            self.usage.record_hidden(format!("{method} {} answered {status}: {}", event.target, event.hidden));
        }
        Ok(())
    }
}
