//! The interface `http`: translates between the WIT types and `crate::net::gate`.

use crate::bindings::bosh::cpi::http::{
    BlockUpload, BlocksError, BlocksSent, Body, BodyPart, Denial, Error, ErrorKind, Host, ImagePart, Request, Response,
};
use crate::failure::Who;
use crate::host::GuestState;
use crate::host::host_call::HostError;
use crate::image;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::gate::{Gate, GuestBody, GuestBodyPart, GuestRequest, GuestResponse, blocks};
use crate::sandbox::call_clock::{CallClock, ENDING};
use futures_util::stream::{self, StreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;

/// The most requests of `send-all` that are in progress at once.
const MAX_AT_ONCE: usize = 8;
/// The most requests of one `send-all`.
const MAX_REQUESTS: usize = 1000;

impl GuestState {
    fn gate(&self) -> Result<Arc<Gate>, Error> {
        let gate = self.capabilities.as_ref().map(|capabilities| Arc::clone(&capabilities.gate));
        gate.ok_or_else(|| Error {
            kind: ErrorKind::Denied(Denial::Undeclared),
            message: "the network is not available in `describe`".into(),
            sent: false,
        })
    }
}

/// A call of a function of this interface. Its requests, one or several, share what is here.
struct HttpHostCall {
    gate: Arc<Gate>,
    clock: Arc<CallClock>,
    /// True if the call was ending already when the guest asked: then its requests are a part of the
    /// guest's cleanup.
    is_cleanup: bool,
    leaks_before: u32,
}

impl HttpHostCall {
    fn new(state: &GuestState) -> Result<HttpHostCall, Error> {
        let (gate, clock) = (state.gate()?, Arc::clone(&state.clock));
        let (is_cleanup, leaks_before) = (clock.end_reason().is_some(), leaks(&gate));
        Ok(HttpHostCall { gate, clock, is_cleanup, leaks_before })
    }

    /// Sends a request, unless the call ends before that or meanwhile. Sets `sent` once any byte may have been sent,
    /// also if the request is abandoned.
    async fn send(&self, request: GuestRequest, sent: &AtomicBool) -> Result<GuestResponse, HttpError> {
        if !self.is_cleanup && self.clock.end_reason().is_some() {
            return Err(cancelled(false));
        }
        let is_image = request.body.has_image();
        let ended = async {
            if is_image {
                self.clock.until_upload_must_end().await;
            } else {
                self.clock.until_request_must_end().await;
            }
        };
        let sending = self.gate.send(request, self.clock.deadline(), sent);
        let answer = tokio::select! {
            biased;
            () = ended, if !self.is_cleanup => None,
            answer = sending => Some(answer),
        };
        if let Some(leak) = self.gate.leak() {
            // The requests of this host call that wait must not be sent.
            self.clock.request_end_after_leak(&leak);
        }
        answer.unwrap_or_else(|| Err(cancelled(sent.load(Ordering::Relaxed))))
    }

    /// Sends requests, some of them at once, and returns their answers in order. After a leak it abandons those in
    /// progress and starts no more: a guest that guesses must not learn of a second hit.
    async fn send_all(&self, requests: Vec<GuestRequest>) -> Vec<Result<GuestResponse, HttpError>> {
        let sent: Vec<_> = requests.iter().map(|_| Arc::new(AtomicBool::new(false))).collect();
        let mut answers: Vec<_> = requests.iter().map(|_| None).collect();
        let numbered = requests.into_iter().zip(sent.clone()).enumerate();
        let sending =
            numbered.map(|(number, (request, sent))| async move { (number, self.send(request, &sent).await) });
        let mut sending = stream::iter(sending).buffer_unordered(MAX_AT_ONCE);
        while let Some((number, answer)) = sending.next().await {
            answers[number] = Some(answer);
            if Check::TripwireBatch.refuses(leaks(&self.gate) > self.leaks_before) {
                break;
            }
        }
        drop(sending);
        let cancelled = |sent: &Arc<AtomicBool>| Err(cancelled(sent.load(Ordering::Relaxed)));
        answers.into_iter().zip(&sent).map(|(answer, sent)| answer.unwrap_or_else(|| cancelled(sent))).collect()
    }

    /// Ends the call if a response held a credential. Stops the guest if that happened while it was cleaning up after
    /// another one.
    async fn end_call_after_leak(&self) {
        if let Some(leak) = self.gate.leak() {
            let is_repeated = self.leaks_before > 0 && leak.count > self.leaks_before;
            self.clock.end_after_leak(&leak, is_repeated).await;
        }
    }
}

/// Returns how many responses of this call held a credential.
fn leaks(gate: &Gate) -> u32 {
    gate.leak().map_or(0, |leak| leak.count)
}

/// Returns the error of a request that was abandoned because the call is ending.
fn cancelled(sent: bool) -> HttpError {
    HttpError { message: ENDING.to_owned(), sent, ..HttpError::failed(Who::Runtime, HttpErrorKind::Cancelled, "") }
}

impl Host for GuestState {
    async fn send(&mut self, request: Request) -> Result<Response, Error> {
        let host_call = HttpHostCall::new(self)?;
        let answer = host_call.send(request.into(), &AtomicBool::new(false)).await;
        host_call.end_call_after_leak().await;
        Ok(answer?.into())
    }

    async fn send_all(&mut self, requests: Vec<Request>) -> Vec<Result<Response, Error>> {
        let all = |error: &Error| requests.iter().map(|_| Err(error.clone())).collect();
        let host_call = match HttpHostCall::new(self) {
            Ok(host_call) => host_call,
            Err(error) => return all(&error),
        };
        if requests.len() > MAX_REQUESTS {
            let count = requests.len();
            let what = format!("{count} requests are too many for one `send-all`; send at most {MAX_REQUESTS}");
            return all(&HttpError::invalid(what).into());
        }
        let answers = host_call.send_all(requests.into_iter().map(GuestRequest::from).collect()).await;
        host_call.end_call_after_leak().await;
        // The last request may have succeeded, and the guest may fail because of another one.
        if let Some(error) = answers.iter().find_map(|answer| answer.as_ref().err()) {
            host_call.gate.record_end(Err(error));
        }
        answers.into_iter().map(|answer| Ok(answer?.into())).collect()
    }

    async fn send_blocks(&mut self, upload: BlockUpload) -> Result<BlocksSent, BlocksError> {
        let host_call = HttpHostCall::new(self).map_err(BlocksError::Failed)?;
        let (upload, sent) = (upload.into(), AtomicBool::new(false));
        let sending = host_call.gate.send_blocks(&upload, host_call.clock.deadline(), &sent);
        let answer = tokio::select! {
            biased;
            () = host_call.clock.until_upload_must_end(), if !host_call.is_cleanup => None,
            answer = sending => Some(answer),
        };
        host_call.end_call_after_leak().await;
        let answer = answer.unwrap_or_else(|| Err(cancelled(sent.load(Ordering::Relaxed)).into()));
        Ok(answer?.into())
    }

    async fn session(&mut self, name: String) -> Result<String, Error> {
        let host_call = HttpHostCall::new(self)?;
        let pending = self.start_host_call("http.session", &name);
        let shown = host_call.gate.session(&name, host_call.clock.deadline()).await;
        let shown = shown.map_err(|error| HostError { check: error.check, cause: error.cause(), error });
        let shown = pending.finish(shown, String::len);
        host_call.end_call_after_leak().await;
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
