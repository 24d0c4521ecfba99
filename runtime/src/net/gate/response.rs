//! Makes the response that the guest gets of the one that was received. Nothing leaves the gate that did not pass
//! `net::response`.

use super::sending::CheckedRequest;
use super::{Gate, GrantedRequest, GuestResponse, HttpEvent};
use crate::leak_message;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::Received;
use crate::net::response::{self, ResponseInScreening, Rules, WithheldKind, WithheldResponse};
use wasm_cpi_policy::DenialReason;

/// The most characters of a hidden error response that operators see.
const MAX_HIDDEN: usize = 2000;
/// More are redacted, because redacted secrets are shorter.
const MAX_REDACTED: usize = 64 * 1024;

/// What the guest gets of a response, and what is recorded of it.
pub(super) struct VisibleResponse {
    /// The response as the guest may see it, or why it is withheld.
    pub result: Result<GuestResponse, HttpError>,
    /// The redacted error response that the guest does not see. Empty if it sees the response.
    pub hidden: String,
    /// The name of the secret because of which the response is withheld.
    pub leaked: Option<String>,
}

impl From<HttpError> for VisibleResponse {
    fn from(error: HttpError) -> VisibleResponse {
        VisibleResponse { result: Err(error.after_sending()), hidden: String::new(), leaked: None }
    }
}

impl Gate {
    /// Returns the response as the guest may see it, and counts, traces and records it.
    pub(super) fn complete_response(
        &self,
        checked: &CheckedRequest,
        received: Received,
        event: &mut HttpEvent,
    ) -> Result<GuestResponse, HttpError> {
        let received_bytes = received.body.len() as u64;
        let VisibleResponse { result, hidden, leaked } = self.visible_response(checked, received);
        (event.hidden, event.leaked) = (hidden, leaked);
        let result =
            result.and_then(|response| self.count_response(response, received_bytes).map_err(HttpError::after_sending));
        self.trace_response(&checked.grant, &result);
        if let Ok(response) = &result {
            self.creations.record(&checked.evidence(), response);
        }
        result
    }

    /// Returns the response as the guest may see it, or withholds it. Nothing of it is counted yet.
    pub(super) fn visible_response(&self, checked: &CheckedRequest, received: Received) -> VisibleResponse {
        let request = checked.granted();
        let GrantedRequest { grant, method, destination, .. } = request;
        if let Err(error) = self.end_after_leak_elsewhere() {
            return error.into();
        }
        let Received { status, mut headers, mut body, .. } = received;
        let rules = Rules {
            grant,
            operation: request.operation_name(),
            hidden: &self.policy.hidden_places(destination),
            secret_names: &checked.secrets.names,
            layer: self.layer_of_response(grant, &checked.secrets.layers),
            deadline: &self.vault.search_deadline(),
        };
        let mut response = ResponseInScreening {
            method: method.as_str(),
            path: destination.path(),
            status,
            headers: &mut headers,
            body: &mut body,
        };
        let screened = match response::hide_secrets(&self.vault, &rules, &mut response) {
            Ok(screened) => screened,
            Err(withheld) => {
                let leaked = match &withheld.kind {
                    WithheldKind::Leak(name) => Some(name.clone()),
                    _ => None,
                };
                return VisibleResponse { leaked, ..self.error_of_withheld(withheld, request).into() };
            }
        };
        let has_body = method != "HEAD" && !matches!(status, 204 | 304);
        if screened.is_reframed && has_body {
            headers.push(("content-length".to_owned(), body.len().to_string()));
        }
        let hidden = screened.hidden.map(|text| {
            let hidden = self.redact_hidden(&text);
            self.record.record_hidden(format!("{} answered {status}: {hidden}", request.text()));
            hidden
        });
        let result = self.check_size(request, &headers, &body).map_err(HttpError::after_sending);
        let result = result.map(|()| GuestResponse { status, headers, body });
        VisibleResponse { result, hidden: hidden.unwrap_or_default(), leaked: None }
    }

    /// Returns the error of a response that is withheld, and records a leak.
    fn error_of_withheld(&self, withheld: WithheldResponse, request: GrantedRequest<'_>) -> HttpError {
        let WithheldResponse { kind, message, check } = withheld;
        let error = match kind {
            WithheldKind::Leak(name) => {
                self.leaked(&name, &format!("the response to {}", request.text()), leak_message::REMEDY)
            }
            _ => HttpError::cloud(HttpErrorKind::Protocol, message),
        };
        HttpError { check, ..error }
    }

    /// Applies the limits to what the guest gets. The errors are those of a response that is too large at once.
    fn check_size(
        &self,
        request: GrantedRequest<'_>,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<(), HttpError> {
        let (caps, target) = (self.transport.caps(), format!("{} {}", request.method, request.destination));
        let header_bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if header_bytes > caps.max_header_bytes {
            return Err(caps.headers_too_long(target));
        }
        if body.len() as u64 > caps.max_body_bytes {
            return Err(caps.body_too_long(target));
        }
        Ok(())
    }

    /// Returns the start of an error response that the guest does not see, for operators. All values that are
    /// captured from it must be known by now, or the start could hold a part of one.
    fn redact_hidden(&self, hidden: &str) -> String {
        let (redacted, _) = self.vault.redact_start(hidden, MAX_REDACTED);
        redacted.chars().take(MAX_HIDDEN).collect()
    }

    /// Fails, and ends the call, if another call of the guest leaked a credential while this one was running.
    fn end_after_leak_elsewhere(&self) -> Result<(), HttpError> {
        let leak =
            self.latch.as_ref().filter(|_| self.record.leak().is_none()).and_then(|latch| latch.recorded_meanwhile());
        let Some(leak) = leak else { return Ok(()) };
        let place = format!("in another call of this guest (`{}`, {}), {}", leak.method, leak.at, leak.place);
        let leak = self.record.record_leak(&leak.secret, place);
        let detail = leak_message::withheld_after(&leak.place, &leak.secret);
        Err(HttpError::denied(DenialReason::Leak, "the call is ending").with_detail(detail).after_sending())
    }

    /// Records that a response held a credential. Returns the error, whose message says to the guest
    /// only that the call ends, and whose detail says everything to the operator.
    pub(super) fn leaked(&self, secret: &str, place: &str, remedy: &str) -> HttpError {
        let leak = self.record.record_leak(secret, self.vault.redact_audit(place));
        let what = leak_message::withheld(place, secret, remedy);
        let detail = match self.latch.as_ref().map(|latch| latch.record(&leak.secret, &leak.place)) {
            Some(Err(error)) => format!("{what}; {}", leak_message::not_recorded(&error)),
            _ => what,
        };
        HttpError::denied(DenialReason::Leak, "the call is ending").with_detail(detail).after_sending()
    }
}
