//! The steps that make the body safe to read, seal captured values in it and blank credentials.
//!
//! They share one rule: of an error response (status 400 and above) that fails a step, only the body is withheld,
//! and operators see it. The guest gets status and headers, because guests decide by them.

use super::withheld::{WithheldKind, WithheldResponse};
use super::{ResponseInScreening, agent_settings, captures, for_operators};
use crate::vault::Vault;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Capture;
use wasm_cpi_policy::secret::Layer;

/// Replaces the values to capture by seals, and removes other credentials. `guarded` is true if the request sent
/// secrets, or if a grant of the origin hides parts of its responses (see `Exposure`). `layer` is the layer of the
/// request's credentials, which captured values get. Returns the body of an error that the guest does not see, for
/// operators; the caller redacts it.
pub fn seal_and_blank(
    vault: &Vault,
    captures: &[Capture],
    guarded: bool,
    layer: Layer,
    response: &mut ResponseInScreening<'_>,
) -> Result<Option<String>, WithheldResponse> {
    let mut screening = Screening::new(vault, captures, response);
    if guarded || !captures.is_empty() {
        screening.reject_encoded()?;
        screening.reject_foreign_charset()?;
    }
    screening.seal_captured(Check::CaptureValue.choose(captures, &[]), layer)?;
    screening.remove_credentials(guarded)?;
    Ok(screening.hidden)
}

/// The screening of one response.
pub(super) struct Screening<'a, 'r> {
    pub vault: &'a Vault,
    pub response: &'a mut ResponseInScreening<'r>,
    /// True for an error response that may hold a value to capture which cannot be captured. The vault does not know
    /// that value and cannot redact it, so not even operators see the body.
    uncaptured: bool,
    /// The body of an error response that was withheld, for operators.
    hidden: Option<String>,
}

impl<'a, 'r> Screening<'a, 'r> {
    fn new(vault: &'a Vault, captures: &[Capture], response: &'a mut ResponseInScreening<'r>) -> Self {
        let ResponseInScreening { method, path, status, ref headers, ref body } = *response;
        let captures = captures.iter().filter(|capture| capture.applies_to(method, path));
        let uncaptured = status >= 400 && captures::holds_uncaptured(captures, headers, body);
        Screening { vault, response, uncaptured, hidden: None }
    }

    /// Returns the error that withholds this response.
    pub(super) fn error(&self, kind: WithheldKind, why: &str) -> WithheldResponse {
        WithheldResponse::new(self.response.method, self.response.path, kind, why)
    }

    /// Withholds the response with this error. Of an error response only the body is withheld.
    pub(super) fn withhold(&mut self, error: WithheldResponse) -> Result<(), WithheldResponse> {
        if agent_settings::cannot_be_removed(self.response, &self.vault.search_deadline()) {
            self.hidden = Some(for_operators::not_shown(self.response.body));
            return agent_settings::withhold(self.response);
        }
        if self.response.status < 400 {
            return Err(error);
        }
        let body = &mut *self.response.body;
        self.hidden = match self.uncaptured {
            true => Some(for_operators::not_shown(body)),
            false => for_operators::text(body, &self.vault.search_deadline()),
        };
        body.clear();
        Ok(())
    }
}
