//! One attempt to send a block.

use super::{Upload, block_request};
use crate::image::BlockContent;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::gate::response::VisibleResponse;
use crate::net::gate::{GuestResponse, HttpEvent};
use std::sync::atomic::{AtomicBool, Ordering};

/// One attempt to send a block. What is known of it is added to the upload's event when it ends, also
/// if it is abandoned because another block failed or the call is ending.
pub(super) struct Attempt<'u, 'a> {
    upload: &'u Upload<'a>,
    is_first: bool,
    event: HttpEvent,
    /// True if any byte of the block may have been sent.
    sent: AtomicBool,
}

/// How an attempt ended.
pub(super) enum AttemptOutcome {
    /// Another attempt would end the same way.
    Done(Result<GuestResponse, HttpError>),
    /// Another attempt may succeed: there is no response for a reason that may pass, or its status is 429 or 5xx.
    Transient(Result<GuestResponse, HttpError>),
}

impl<'u, 'a> Attempt<'u, 'a> {
    pub(super) fn new(upload: &'u Upload<'a>, is_first: bool) -> Attempt<'u, 'a> {
        Attempt { upload, is_first, event: HttpEvent::new(), sent: AtomicBool::new(false) }
    }

    /// Sends the block.
    pub(super) async fn send(mut self, position: u64, content: &BlockContent) -> AttemptOutcome {
        let gate = self.upload.gate;
        let request = block_request::request(self.upload.wanted, position, content);
        let checked = match gate.check_uncounted(request, self.upload.deadline, &mut self.event) {
            Ok(checked) => checked,
            Err(error) => return AttemptOutcome::Done(Err(error)),
        };
        if self.is_first {
            gate.record.count_block();
        }
        let received = gate.send_with_token(&checked, &self.sent, &mut self.event).await;
        let was_sent = received.as_ref().map_or_else(|error| error.sent, |_| true);
        self.event.sent = was_sent;
        *self.sent.get_mut() = was_sent;
        let received = match received {
            Ok(received) => received,
            Err(error) if error.login.is_none() && is_transient(error.kind) => {
                return AttemptOutcome::Transient(Err(error));
            }
            Err(error) => return AttemptOutcome::Done(Err(error)),
        };
        let VisibleResponse { result, hidden, leaked } = gate.visible_response(&checked, received);
        (self.event.hidden, self.event.leaked) = (hidden, leaked);
        gate.trace_response(&checked.grant, &result);
        match result {
            Ok(response) if matches!(response.status, 429 | 500..=599) => AttemptOutcome::Transient(Ok(response)),
            result => AttemptOutcome::Done(result),
        }
    }
}

impl Drop for Attempt<'_, '_> {
    fn drop(&mut self) {
        self.upload.sent.fetch_or(*self.sent.get_mut(), Ordering::Relaxed);
        self.upload.pending().event.add(&self.event);
    }
}

impl HttpEvent {
    /// Adds what is known of an attempt to the event of the upload.
    fn add(&mut self, attempt: &HttpEvent) {
        self.address = attempt.address.or(self.address);
        self.refused_address = attempt.refused_address.or(self.refused_address);
        self.leaked = attempt.leaked.clone().or(self.leaked.take());
        self.sent |= attempt.sent;
        self.bytes_sent += attempt.bytes_sent;
        self.bytes_received += attempt.bytes_received;
        if !attempt.hidden.is_empty() {
            self.hidden.clone_from(&attempt.hidden);
        }
    }
}

/// Returns true if the same request may succeed later.
fn is_transient(kind: HttpErrorKind) -> bool {
    matches!(
        kind,
        HttpErrorKind::Dns
            | HttpErrorKind::Connect
            | HttpErrorKind::Timeout
            | HttpErrorKind::Protocol
            | HttpErrorKind::Truncated
    )
}
