//! What comes back to the guest: responses that `captures` looked through, and
//! errors without secrets. Nothing else leaves the gate.

use super::{Gate, HttpEvent, InboundResponse, auth};
use crate::net::captures::{self, Incoming, Reason, Withheld};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::Received;
use reqwest::Method;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::secret::Layer;
use wasm_cpi_policy::{DenialReason, Grant};

impl Gate {
    pub(super) fn screen(
        &self,
        grant: &Grant,
        layer: Layer,
        method: &Method,
        destination: &Destination,
        received: Received,
        event: &mut HttpEvent,
    ) -> Result<InboundResponse, HttpError> {
        let Received { status, mut headers, mut body, .. } = received;
        let (path, length) = (destination.path(), body.len());
        let incoming = Incoming { method: method.as_str(), path, status, headers: &mut headers, body: &mut body };
        match captures::screen(&self.vault, &grant.captures, auth::guarded(grant), layer, incoming) {
            Ok(_) => {}
            Err(Withheld { reason: Reason::Leak(name), message }) => {
                self.usage.leaked(&name);
                event.leaked = Some(name);
                return Err(HttpError::denied(DenialReason::Leak, message));
            }
            Err(Withheld { message, .. }) => return Err(HttpError::new(HttpErrorKind::Protocol, message)),
        }
        // What is taken out of a field leaves `null`, which may be longer.
        if body.len() > length && body.len() as u64 > self.reach.caps().body {
            let (name, value) = self.reach.caps().body_limit;
            return Err(HttpError::limit(name, value, "a response without its credentials"));
        }
        if body.len() != length {
            let stale = headers.iter_mut().filter(|(name, _)| name == "content-length");
            stale.for_each(|(_, value)| *value = body.len().to_string());
        }
        Ok(InboundResponse { status, headers, body })
    }

    /// A refusal quotes nothing but the guest's own words: without secrets in it
    /// there is nothing to take out, and taking out would tell which words are.
    pub(super) fn redacted(&self, error: HttpError) -> HttpError {
        let refusal = match error.kind {
            HttpErrorKind::Denied(reason) => !matches!(reason, DenialReason::Leak | DenialReason::Credential),
            HttpErrorKind::InvalidRequest | HttpErrorKind::Limit(_) => true,
            _ => false,
        };
        if refusal && !error.sent || !Check::RedactGuestError.on() {
            return error;
        }
        HttpError { message: self.vault.redact(&error.message), ..error }
    }
}
