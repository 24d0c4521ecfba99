//! Screens the responses that the guest gets. Nothing leaves the gate that did not pass `cleaning` and `screening`.

use super::{Gate, GrantedRequest, GuestResponse, HttpEvent};
use crate::leak_latch::{self, LEAK_REMEDY};
use crate::net::cleaning::{self, Rules, remove_digests};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::Received;
use crate::net::exposure::Exposure;
use crate::net::screening::{self, ResponseInScreening};
use crate::net::withheld::{Reason, Withheld};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;
use wasm_cpi_policy::secret::Layer;

/// The most characters of a hidden error response that people see.
const MAX_HIDDEN: usize = 2000;
/// More are redacted, because redacted secrets are shorter.
const MAX_REDACTED: usize = 64 * 1024;

/// What is known of a response from which everything was removed that the guest must not see.
struct Screened {
    /// The text of an error response that the guest does not see.
    hidden: Option<String>,
    /// True if the headers no longer say how long the body is.
    is_reframed: bool,
}

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
        let GrantedRequest { method, destination, .. } = request;
        self.end_after_leak_elsewhere()?;
        let Received { status, mut headers, mut body, .. } = received;
        let mut response = ResponseInScreening {
            method: method.as_str(),
            path: destination.path(),
            status,
            headers: &mut headers,
            body: &mut body,
        };
        match self.clean_and_screen(request, layer, &event.seals, &mut response) {
            Ok(screened) => {
                let has_body = method != "HEAD" && !matches!(status, 204 | 304);
                if screened.is_reframed && has_body {
                    headers.push(("content-length".to_owned(), body.len().to_string()));
                }
                self.record_hidden(screened.hidden, request, status, event);
            }
            Err(withheld) => return Err(self.withheld(withheld, request, event)),
        }
        self.check_size(request, &headers, &body)?;
        Ok(GuestResponse { status, headers, body })
    }

    /// Removes from a response what the guest must not see. `filled` are the names of the secrets that the request
    /// held.
    fn clean_and_screen(
        &self,
        request: GrantedRequest<'_>,
        layer: Layer,
        filled: &[String],
        response: &mut ResponseInScreening<'_>,
    ) -> Result<Screened, Withheld> {
        let GrantedRequest { grant, destination, .. } = request;
        let cleaning = self.policy.hidden_places(destination);
        let guarded = Exposure::of(grant, &cleaning).is_guarded();
        let whole = (!guarded).then(|| response.body.clone());
        let patience = &self.vault.patience();
        let rules = Rules { grant, cleaning: &cleaning, filled, patience };
        let hidden = cleaning::clean(&rules, response)?;
        let captures = Check::OriginRules.choose(&cleaning.captures, &grant.captures);
        let hidden_by_screen = screening::screen(&self.vault, captures, guarded, layer, response)?;
        let is_seal = |value: &str| self.vault.open(value).is_some();
        let remove =
            |headers: &mut Vec<(String, String)>| Check::ResponseDigests.perform(|| remove_digests(headers, &is_seal));
        // What is removed must not take part in recognising agent settings.
        let mut removed = whole.is_none().then(|| remove(response.headers)).flatten();
        cleaning::clean_settings(response, patience)?;
        if whole.is_some_and(|whole| whole != *response.body) {
            removed = remove(response.headers);
        }
        screening::search(&self.vault, response)?;
        Ok(Screened { hidden: hidden.or(hidden_by_screen), is_reframed: removed.is_some() })
    }

    /// Returns the error of a response that is withheld, and records a leak.
    fn withheld(&self, withheld: Withheld, request: GrantedRequest<'_>, event: &mut HttpEvent) -> HttpError {
        let Withheld { reason, message, check } = withheld;
        let Reason::Leak(name) = reason else {
            return HttpError { check, ..HttpError::cloud(HttpErrorKind::Protocol, message) };
        };
        let GrantedRequest { method, destination, .. } = request;
        let error = self.leaked(&name, &format!("the response to {method} {destination}"), LEAK_REMEDY);
        event.leaked = Some(name);
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
