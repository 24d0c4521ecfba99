//! The interface `http`: translates between the WIT types and `crate::net::gate`.

use crate::bindings::bosh::cpi::http::{Body, Denial, Error, ErrorKind, Host, ImagePart, Request, Response};
use crate::host::State;
use crate::host::host_call::HostError;
use crate::image;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::gate::{Gate, GuestBody, GuestRequest};
use crate::sandbox::call_clock::{CallClock, ENDING};
use std::sync::Arc;
use wasm_cpi_policy::DenialReason;

impl State {
    fn gate(&self) -> Result<Arc<Gate>, Error> {
        let gate = self.capabilities.as_ref().map(|capabilities| Arc::clone(&capabilities.gate));
        gate.ok_or_else(|| Error {
            kind: ErrorKind::Denied(Denial::Undeclared),
            message: "the network is not available in `describe`".into(),
            sent: false,
        })
    }
}

/// Ends the call if a response held a credential.
async fn end_after_leak(gate: &Gate, clock: &CallClock) {
    if let Some(leak) = gate.leak() {
        clock.end_after_leak(&leak).await;
    }
}

impl Host for State {
    async fn send(&mut self, request: Request) -> Result<Response, Error> {
        let gate = self.gate()?;
        let request = GuestRequest {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: match request.body {
                Body::None => GuestBody::None,
                Body::Bytes(bytes) => GuestBody::Bytes(bytes),
                Body::Image(ImagePart::Whole) => GuestBody::Image(image::ImagePart::Whole),
                Body::Image(ImagePart::Member(name)) => GuestBody::Image(image::ImagePart::Member(name)),
            },
            timeout_ms: request.timeout_ms,
        };
        let is_image = matches!(request.body, GuestBody::Image(_));
        let (clock, already_ending) = (Arc::clone(&self.clock), self.clock.end_reason().is_some());
        let abandoned =
            async { if is_image { clock.until_upload_must_end().await } else { clock.until_request_must_end().await } };
        let answer = tokio::select! {
            answer = gate.send(request, self.clock.deadline()) => answer.map_err(Error::from),
            () = abandoned, if !already_ending => {
                Err(Error { kind: ErrorKind::Cancelled, message: self.clock.message_for_guest().unwrap_or_default(), sent: true })
            }
        };
        end_after_leak(&gate, &self.clock).await;
        let response = answer?;
        Ok(Response { status: response.status, headers: response.headers, body: response.body })
    }

    async fn session(&mut self, name: String) -> Result<String, Error> {
        let gate = self.gate()?;
        let call = self.start_call("http.session", &name);
        let shown = gate.session(&name, self.clock.deadline()).await;
        let shown = shown.map_err(|error| HostError { check: error.check, cause: error.cause(), error });
        let shown = call.finish(shown, String::len);
        end_after_leak(&gate, &self.clock).await;
        Ok(shown?)
    }
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        let kind = match error.kind {
            // The same as at every other ending of a call.
            HttpErrorKind::Denied(DenialReason::Leak) => {
                return Error { kind: ErrorKind::Cancelled, message: ENDING.to_owned(), sent: error.sent };
            }
            HttpErrorKind::Denied(reason) => ErrorKind::Denied(reason.into()),
            HttpErrorKind::InvalidRequest => ErrorKind::InvalidRequest,
            HttpErrorKind::Limit(name) => ErrorKind::Limit(name.to_owned()),
            HttpErrorKind::Dns => ErrorKind::Dns,
            HttpErrorKind::Connect => ErrorKind::Connect,
            HttpErrorKind::Tls => ErrorKind::Tls,
            HttpErrorKind::Timeout => ErrorKind::Timeout,
            HttpErrorKind::Protocol => ErrorKind::Protocol,
            HttpErrorKind::Truncated => ErrorKind::Truncated,
            HttpErrorKind::Cancelled => ErrorKind::Cancelled,
        };
        Error { kind, message: error.message, sent: error.sent }
    }
}

impl From<DenialReason> for Denial {
    fn from(reason: DenialReason) -> Self {
        match reason {
            DenialReason::Undeclared => Denial::Undeclared,
            DenialReason::Scheme => Denial::Scheme,
            DenialReason::Host => Denial::Host,
            DenialReason::Port => Denial::Port,
            DenialReason::Method => Denial::Method,
            DenialReason::Path => Denial::Path,
            DenialReason::Query => Denial::Query,
            DenialReason::Operation => Denial::Operation,
            DenialReason::Address => Denial::Address,
            DenialReason::Header => Denial::Header,
            DenialReason::Slot => Denial::Slot,
            DenialReason::Credential => Denial::Credential,
            DenialReason::Leak => Denial::Leak,
        }
    }
}
