//! Screens the responses that the guest gets. Nothing leaves the gate that did not pass `captures`.

use super::{Gate, HttpEvent, InboundResponse, auth};
use crate::net::captures::{self, Incoming, Reason, Withheld};
use crate::net::cleaning::remove_digests;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::Received;
use reqwest::Method;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::secret::Layer;
use wasm_cpi_policy::{DenialReason, Grant};

/// What the operator can do about a response that holds a credential.
const LEAK_ADVICE: &str = "remove the place that holds it with `drop` of the grant, or capture it with `captures`; only if it is \
     not a secret, list it under `expose`";

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
        let cleaning = self.policy.cleaning(destination);
        let guarded = auth::carries_secrets(grant) || cleaning.applies;
        let whole = (!guarded).then(|| body.clone());
        let hidden = self.clean(grant, &cleaning, method, destination, status, (&mut headers, &mut body), event)?;
        let incoming = Incoming { method: method.as_str(), path, status, headers: &mut headers, body: &mut body };
        let all = Check::OriginRules.choose(&cleaning.captures, &grant.captures);
        match captures::screen(&self.vault, all, guarded, layer, incoming) {
            Ok(screened) => self.record_hidden(hidden.or(screened.hidden), method, status, event),
            Err(Withheld { reason: Reason::Leak(name), check, .. }) => {
                let error = self.leaked(&name, &format!("the response to {method} {destination}"), LEAK_ADVICE);
                event.leaked = Some(name);
                return Err(HttpError { check, ..error });
            }
            Err(Withheld { message, check, .. }) => {
                return Err(HttpError { check, ..HttpError::new(HttpErrorKind::Protocol, message) });
            }
        }
        if whole.is_none_or(|whole| whole != body) {
            let is_seal = |value: &str| self.vault.open(value).is_some();
            Check::AnswerDigests.perform(|| remove_digests(method.as_str(), status, &mut headers, &is_seal));
        }
        // The limits are for what the guest gets. The errors are those of a response that is too large at once.
        let (caps, target) = (self.transport.caps(), format!("{method} {destination}"));
        let head: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if head > caps.header_bytes {
            return Err(caps.headers_too_long(target));
        }
        if body.len() as u64 > caps.body {
            return Err(caps.body_too_long(target));
        }
        if body.len() != length {
            let stale = headers.iter_mut().filter(|(name, _)| name == "content-length");
            stale.for_each(|(_, value)| *value = body.len().to_string());
        }
        Ok(InboundResponse { status, headers, body })
    }

    /// Returns the error as the guest gets it: unchanged. A mutant redacts it.
    pub(super) fn for_guest(&self, error: HttpError) -> HttpError {
        match Check::GuestText.accepts(false) {
            false => error,
            true => HttpError { message: self.vault.redact(&error.message), ..error },
        }
    }

    /// Records that an answer held a credential. Returns the error, whose message says to the guest
    /// only that the call ends, and whose detail says everything to the operator.
    pub(super) fn leaked(&self, secret: &str, place: &str, advice: &str) -> HttpError {
        let leak = self.usage.record_leak(secret, self.vault.redact_target(place));
        let latched = match self.latch.as_ref().map(|latch| latch.record(&leak.secret, &leak.place)) {
            Some(Err(error)) => format!("; that later calls must be refused could not be recorded ({error})"),
            _ => String::new(),
        };
        let detail = format!("{place} was withheld, because it holds the credential `{secret}`; {advice}{latched}");
        HttpError::denied(DenialReason::Leak, "policy: the call is ending").with_detail(detail).after_sending()
    }
}
