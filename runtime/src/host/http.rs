//! The interface `http`: translates between the WIT types and `crate::net::gate`.

use crate::bindings::bosh::cpi::http::{
    BlockUpload, BlocksError, BlocksSent, Body, BodyPart, Denial, Error, ErrorKind, Host, ImagePart, Request, Response,
};
use crate::host::State;
use crate::host::host_call::HostError;
use crate::image;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::gate::{Gate, GuestBody, GuestBodyPart, GuestRequest, GuestResponse, blocks};
use crate::sandbox::call_clock::{CallClock, ENDING};
use futures_util::stream::{self, StreamExt};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use wasm_cpi_policy::DenialReason;

/// The most requests of `send-all` that are in progress at once.
const MAX_AT_ONCE: usize = 8;

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

/// Sends a request, unless the call ends before that or meanwhile. `ending` is true if the call was
/// ending already when the guest asked: then this request is a part of the guest's cleanup.
async fn send_unless_ended(
    gate: &Gate,
    clock: &CallClock,
    request: GuestRequest,
    ending: bool,
) -> Result<Response, Error> {
    let is_image = request.body.has_image();
    let abandoned =
        async { if is_image { clock.until_upload_must_end().await } else { clock.until_request_must_end().await } };
    let mut sending = pin!(gate.send(request, clock.deadline()));
    let mut sent = false;
    let sending = poll_fn(|context| {
        sent = true;
        sending.as_mut().poll(context)
    });
    let answer = tokio::select! {
        biased;
        () = abandoned, if !ending => None,
        answer = sending => Some(answer),
    };
    match answer {
        Some(answer) => Ok(answer?.into()),
        None => Err(cancelled(clock, sent)),
    }
}

fn cancelled(clock: &CallClock, sent: bool) -> Error {
    Error { kind: ErrorKind::Cancelled, message: clock.message_for_guest().unwrap_or_default(), sent }
}

impl Host for State {
    async fn send(&mut self, request: Request) -> Result<Response, Error> {
        let gate = self.gate()?;
        let ending = self.clock.end_reason().is_some();
        let answer = send_unless_ended(&gate, &self.clock, request.into(), ending).await;
        end_after_leak(&gate, &self.clock).await;
        answer
    }

    async fn send_all(&mut self, requests: Vec<Request>) -> Vec<Result<Response, Error>> {
        let gate = match self.gate() {
            Ok(gate) => gate,
            Err(error) => return requests.iter().map(|_| Err(error.clone())).collect(),
        };
        let (clock, ending) = (Arc::clone(&self.clock), self.clock.end_reason().is_some());
        let sending = requests.into_iter().map(|request| send_unless_ended(&gate, &clock, request.into(), ending));
        let answers = stream::iter(sending).buffered(MAX_AT_ONCE).collect().await;
        end_after_leak(&gate, &self.clock).await;
        answers
    }

    async fn send_blocks(&mut self, upload: BlockUpload) -> Result<BlocksSent, BlocksError> {
        let gate = self.gate().map_err(BlocksError::Failed)?;
        let ending = self.clock.end_reason().is_some();
        let answer = tokio::select! {
            answer = gate.send_blocks(upload.into(), self.clock.deadline()) => answer.map_err(BlocksError::from),
            () = self.clock.until_upload_must_end(), if !ending => Err(BlocksError::Failed(cancelled(&self.clock, true))),
        };
        end_after_leak(&gate, &self.clock).await;
        answer.map(BlocksSent::from)
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

impl From<Request> for GuestRequest {
    fn from(request: Request) -> Self {
        let Request { method, url, headers, body, timeout_ms } = request;
        GuestRequest { method, url, headers, body: body.into(), timeout_ms }
    }
}

impl From<Body> for GuestBody {
    fn from(body: Body) -> Self {
        match body {
            Body::None => GuestBody::None,
            Body::Bytes(bytes) => GuestBody::Bytes(bytes),
            Body::Image(part) => GuestBody::Image(part.into()),
            Body::Parts(parts) => GuestBody::Parts(parts.into_iter().map(BodyPart::into).collect()),
        }
    }
}

impl From<BodyPart> for GuestBodyPart {
    fn from(part: BodyPart) -> Self {
        match part {
            BodyPart::Bytes(bytes) => GuestBodyPart::Bytes(bytes),
            BodyPart::Image(part) => GuestBodyPart::Image(part.into()),
        }
    }
}

impl From<ImagePart> for image::ImagePart {
    fn from(part: ImagePart) -> Self {
        match part {
            ImagePart::Whole => image::ImagePart::Whole,
            ImagePart::Member(name) => image::ImagePart::Member(name),
        }
    }
}

impl From<GuestResponse> for Response {
    fn from(response: GuestResponse) -> Self {
        Response { status: response.status, headers: response.headers, body: response.body }
    }
}

impl From<BlockUpload> for blocks::BlockUpload {
    fn from(upload: BlockUpload) -> Self {
        blocks::BlockUpload {
            url: upload.url,
            headers: upload.headers,
            image: upload.image.into(),
            block_bytes: upload.block_bytes,
            first_index: upload.first_index,
            skip_zero_blocks: upload.skip_zero_blocks,
            timeout_ms: upload.timeout_ms,
        }
    }
}

impl From<blocks::BlocksSent> for BlocksSent {
    fn from(sent: blocks::BlocksSent) -> Self {
        let blocks::BlocksSent { sent, skipped, sha256_of_digests, etags } = sent;
        BlocksSent { sent, skipped, sha256_of_digests, etags }
    }
}

impl From<blocks::BlocksError> for BlocksError {
    fn from(error: blocks::BlocksError) -> Self {
        match error {
            blocks::BlocksError::Failed(error) => BlocksError::Failed(error.into()),
            blocks::BlocksError::Refused(response) => BlocksError::Refused(response.into()),
        }
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
