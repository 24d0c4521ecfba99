//! Cleans answers by what the policy says, and keeps for people what the guest does not see.

use super::{Gate, HttpEvent};
use crate::net::cleaning::{self, Answer, Rules};
use crate::net::error::{HttpError, HttpErrorKind};
use reqwest::Method;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::{Cleaning, Grant};

/// The most characters of a hidden error answer that people see.
const MAX_HIDDEN: usize = 2000;
/// More are redacted, because redacted secrets are shorter.
const MAX_REDACTED: usize = 64 * 1024;

/// The headers and the body of an answer.
type Content<'a> = (&'a mut Vec<(String, String)>, &'a mut Vec<u8>);

impl Gate {
    /// Cleans an answer in place, or withholds it. Returns the whole text of an error answer that the
    /// guest does not see.
    #[expect(clippy::too_many_arguments, reason = "each is one fact about the exchange")]
    pub(super) fn clean(
        &self,
        grant: &Grant,
        cleaning: &Cleaning,
        method: &Method,
        destination: &Destination,
        status: u16,
        (headers, body): Content<'_>,
        event: &HttpEvent,
    ) -> Result<Option<String>, HttpError> {
        let rules = Rules { grant, cleaning, filled: &event.seals };
        let answer = Answer { method: method.as_str(), path: destination.path(), status, headers, body };
        cleaning::clean(&rules, answer)
            .map_err(|error| HttpError { check: error.check, ..HttpError::new(HttpErrorKind::Protocol, error.message) })
    }

    /// Keeps the start of an error answer that the guest does not see, for people. All values that are
    /// captured from it must be known by now, or the start could hold a part of one.
    pub(super) fn record_hidden(&self, hidden: Option<String>, method: &Method, status: u16, event: &mut HttpEvent) {
        let Some(hidden) = hidden else { return };
        let (redacted, _) = self.vault.redact_start(&hidden, MAX_REDACTED);
        event.hidden = redacted.chars().take(MAX_HIDDEN).collect();
        self.usage.record_hidden(format!("{method} {} answered {status}: {}", event.target, event.hidden));
    }
}
