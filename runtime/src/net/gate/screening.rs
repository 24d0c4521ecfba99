//! Screens the responses that the guest gets. Nothing leaves the gate that did not pass `cleaning` and `captures`.

use super::{Gate, GrantedRequest, GuestResponse, HttpEvent};
use crate::leak_latch::{self, LEAK_REMEDY};
use crate::net::captures::{self, Reason, ResponseInScreening, Withheld};
use crate::net::cleaning::{self, Rules, remove_digests};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::Received;
use crate::net::exposure::Exposure;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;
use wasm_cpi_policy::secret::Layer;

/// The most characters of a hidden error response that people see.
const MAX_HIDDEN: usize = 2000;
/// More are redacted, because redacted secrets are shorter.
const MAX_REDACTED: usize = 64 * 1024;

impl Gate {
    /// Returns the response as the guest may see it, or withholds it. `layer` is the layer of the
    /// request's credentials.
    pub(super) fn screen(
        &self,
        request: GrantedRequest<'_>,
        layer: Layer,
        received: Received,
        event: &mut HttpEvent,
    ) -> Result<GuestResponse, HttpError> {
        let GrantedRequest { grant, method, destination } = request;
        self.end_after_leak_elsewhere()?;
        let Received { status, mut headers, mut body, .. } = received;
        let (path, length) = (destination.path(), body.len());
        let cleaning = self.policy.cleaning(destination);
        let guarded = Exposure::of(grant, &cleaning).is_guarded();
        let whole = (!guarded).then(|| body.clone());
        let (head, content) = (&mut headers, &mut body);
        let mut response = ResponseInScreening { method: method.as_str(), path, status, headers: head, body: content };
        let rules = Rules { grant, cleaning: &cleaning, filled: &event.seals };
        let captures = Check::OriginRules.choose(&cleaning.captures, &grant.captures);
        let hidden = cleaning::clean(&rules, &mut response).and_then(|hidden| {
            let hidden_by_screen = captures::screen(&self.vault, captures, guarded, layer, &mut response)?;
            if whole.is_none_or(|whole| whole != *response.body) {
                let is_seal = |value: &str| self.vault.open(value).is_some();
                Check::ResponseDigests.perform(|| remove_digests(method.as_str(), status, response.headers, &is_seal));
            }
            captures::search(&self.vault, &response)?;
            Ok(hidden.or(hidden_by_screen))
        });
        match hidden {
            Ok(hidden) => self.record_hidden(hidden, request, status, event),
            Err(Withheld { reason: Reason::Leak(name), check, .. }) => {
                let error = self.leaked(&name, &format!("the response to {method} {destination}"), LEAK_REMEDY);
                event.leaked = Some(name);
                return Err(HttpError { check, ..error });
            }
            Err(Withheld { message, check, .. }) => {
                return Err(HttpError { check, ..HttpError::cloud(HttpErrorKind::Protocol, message) });
            }
        }
        // The limits are for what the guest gets. The errors are those of a response that is too large at once.
        let (caps, target) = (self.transport.caps(), format!("{method} {destination}"));
        let head: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if head > caps.max_header_bytes {
            return Err(caps.headers_too_long(target));
        }
        if body.len() as u64 > caps.max_body_bytes {
            return Err(caps.body_too_long(target));
        }
        if body.len() != length {
            let stale = headers.iter_mut().filter(|(name, _)| name == "content-length");
            stale.for_each(|(_, value)| *value = body.len().to_string());
        }
        Ok(GuestResponse { status, headers, body })
    }

    /// Keeps the start of an error response that the guest does not see, for people. All values that are
    /// captured from it must be known by now, or the start could hold a part of one.
    fn record_hidden(&self, hidden: Option<String>, request: GrantedRequest<'_>, status: u16, event: &mut HttpEvent) {
        let Some(hidden) = hidden else { return };
        let (redacted, _) = self.vault.redact_start(&hidden, MAX_REDACTED);
        event.hidden = redacted.chars().take(MAX_HIDDEN).collect();
        self.record.record_hidden(format!("{} {} answered {status}: {}", request.method, event.target, event.hidden));
    }

    /// Fails, and ends the call, if another call of the guest leaked a credential while this one was running.
    fn end_after_leak_elsewhere(&self) -> Result<(), HttpError> {
        let leak =
            self.latch.as_ref().filter(|_| self.record.leak().is_none()).and_then(|latch| latch.recorded_meanwhile());
        let Some(leak) = leak else { return Ok(()) };
        let place = format!("in another call of this guest (`{}`, {}), {}", leak.method, leak.at, leak.place);
        let leak = self.record.record_leak(&leak.secret, place);
        let detail = format!("{} held the credential `{}`, so this response was withheld", leak.place, leak.secret);
        Err(HttpError::denied(DenialReason::Leak, "the call is ending").with_detail(detail).after_sending())
    }

    /// Records that a response held a credential. Returns the error, whose message says to the guest
    /// only that the call ends, and whose detail says everything to the operator.
    pub(super) fn leaked(&self, secret: &str, place: &str, remedy: &str) -> HttpError {
        let leak = self.record.record_leak(secret, self.vault.redact_audit(place));
        let latched = match self.latch.as_ref().map(|latch| latch.record(&leak.secret, &leak.place)) {
            Some(Err(error)) => leak_latch::not_recorded(&error),
            _ => String::new(),
        };
        let detail = format!("{place} was withheld, because it holds the credential `{secret}`; {remedy}{latched}");
        HttpError::denied(DenialReason::Leak, "the call is ending").with_detail(detail).after_sending()
    }
}
