use crate::bindings::bosh::cpi::http::{Body, Denial, Error, ErrorKind, Host, ImagePart, Request, Response};
use crate::host::State;
use crate::image;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::gate::{Gate, OutboundBody, OutboundRequest};
use crate::sandbox::ending::Why;
use std::sync::Arc;
use wasm_cpi_policy::DenialReason;

impl State {
    fn gate(&self) -> Result<Arc<Gate>, Error> {
        let gate = self.host.as_ref().map(|host| Arc::clone(&host.gate));
        gate.ok_or_else(|| Error {
            kind: ErrorKind::Denied(Denial::Undeclared),
            message: "there is no network here".into(),
            sent: false,
        })
    }

    /// A guest that was caught twice with a secret may only clean up.
    fn watch(&self, gate: &Gate) {
        if let Some(failure) = gate.ended() {
            self.ending.begin(Why::Abort(failure));
        }
    }
}

impl Host for State {
    async fn send(&mut self, request: Request) -> Result<Response, Error> {
        let gate = self.gate()?;
        let request = OutboundRequest {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: match request.body {
                Body::None => OutboundBody::None,
                Body::Bytes(bytes) => OutboundBody::Bytes(bytes),
                Body::Image(ImagePart::Whole) => OutboundBody::Image(image::ImagePart::Whole),
                Body::Image(ImagePart::Member(name)) => OutboundBody::Image(image::ImagePart::Member(name)),
            },
            timeout_ms: request.timeout_ms,
        };
        let is_image = matches!(request.body, OutboundBody::Image(_));
        let (ending, already_ending) = (Arc::clone(&self.ending), self.ending.why().is_some());
        let answer = tokio::select! {
            answer = gate.send(request, self.ending.deadline()) => answer.map_err(Error::from),
            why = ending.gives_up_waiting(is_image), if !already_ending => {
                Err(Error { kind: ErrorKind::Cancelled, message: why, sent: true })
            }
        };
        self.watch(&gate);
        let response = answer?;
        Ok(Response { status: response.status, headers: response.headers, body: response.body })
    }

    async fn session(&mut self, name: String) -> Result<String, Error> {
        let gate = self.gate()?;
        let note = self.note("http.session", &name);
        let shown = note.answered(gate.session(&name, self.ending.deadline()).await, String::len);
        self.watch(&gate);
        Ok(shown?)
    }
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        let kind = match error.kind {
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
            DenialReason::Operation => Denial::Operation,
            DenialReason::Address => Denial::Address,
            DenialReason::Header => Denial::Header,
            DenialReason::Slot => Denial::Slot,
            DenialReason::Credential => Denial::Credential,
            DenialReason::Leak => Denial::Leak,
        }
    }
}
