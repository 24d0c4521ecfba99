//! Screens what the guest gets: responses that passed `captures`, and errors
//! without secrets. Nothing else leaves the gate.

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
    /// Returns the response as the guest may see it, or withholds it.
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
        match captures::screen(&self.vault, &grant.captures, auth::carries_secrets(grant), layer, incoming) {
            Ok(_) => {}
            Err(Withheld { reason: Reason::Leak(name), message, check }) => {
                self.usage.record_leak(&name);
                event.leaked = Some(name);
                return Err(HttpError { check, ..HttpError::denied(DenialReason::Leak, message) });
            }
            Err(Withheld { message, check, .. }) => {
                return Err(HttpError { check, ..HttpError::new(HttpErrorKind::Protocol, message) });
            }
        }
        // A blanked field becomes `null`, which may be longer than its value.
        if body.len() > length && body.len() as u64 > self.transport.caps().body {
            let (name, value) = self.transport.caps().body_limit;
            return Err(HttpError::limit(name, value, "a response without its credentials"));
        }
        if body.len() != length {
            let stale = headers.iter_mut().filter(|(name, _)| name == "content-length");
            stale.for_each(|(_, value)| *value = body.len().to_string());
        }
        Ok(InboundResponse { status, headers, body })
    }

    /// Redacts the message of an error. A refusal before sending quotes only text of the guest,
    /// which holds no secret; redacting it would reveal which text is a secret.
    pub(super) fn redacted(&self, error: HttpError) -> HttpError {
        let refusal = match error.kind {
            HttpErrorKind::Denied(reason) => !matches!(reason, DenialReason::Leak | DenialReason::Credential),
            HttpErrorKind::InvalidRequest | HttpErrorKind::Limit(_) => true,
            _ => false,
        };
        if refusal && !error.sent {
            return error;
        }
        let redacted = Check::RedactGuestError.perform(|| self.vault.redact(&error.message));
        let message = redacted.unwrap_or_else(|| error.message.clone());
        HttpError { message, ..error }
    }
}
