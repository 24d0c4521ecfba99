//! One attempt to send a block.

use super::{Upload, block_request};
use crate::image::BlockContent;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::gate::{GuestResponse, HttpEvent};
use std::sync::atomic::Ordering;

/// One attempt to send a block. What is known of it is added to the upload's event when it ends, also
/// if it is abandoned because another block failed or the call is ending.
pub(super) struct Attempt<'u, 'a> {
    upload: &'u Upload<'a>,
    is_first: bool,
    event: HttpEvent,
}

impl<'u, 'a> Attempt<'u, 'a> {
    pub(super) fn new(upload: &'u Upload<'a>, is_first: bool) -> Attempt<'u, 'a> {
        Attempt { upload, is_first, event: HttpEvent::new() }
    }

    /// Sends the block. Returns its response, and true if another attempt may succeed: there is no
    /// response for a reason that may pass, or its status is 429 or 5xx.
    pub(super) async fn send(
        mut self,
        position: u64,
        content: &BlockContent,
    ) -> (Result<GuestResponse, HttpError>, bool) {
        let gate = self.upload.gate;
        let request = block_request::request(self.upload.wanted, position, content);
        let checked = match gate.check_uncounted(request, self.upload.deadline, &mut self.event) {
            Ok(checked) => checked,
            Err(error) => return (Err(error), false),
        };
        if self.is_first {
            gate.record.count_block();
        }
        let received = gate.send_with_token(&checked, &mut self.event).await;
        self.event.sent = received.as_ref().map_or_else(|error| error.sent, |_| true);
        match received {
            Ok(received) => {
                let is_transient = matches!(received.status, 429 | 500..=599);
                let screened = gate.visible_response(&checked, received, &mut self.event);
                gate.trace_response(&checked.grant, &screened);
                let is_transient = is_transient && screened.is_ok();
                (screened, is_transient)
            }
            Err(error) => {
                let is_transient = error.login.is_none() && is_transient(error.kind);
                (Err(error), is_transient)
            }
        }
    }
}

impl Drop for Attempt<'_, '_> {
    fn drop(&mut self) {
        self.upload.sent.fetch_or(self.event.sent, Ordering::Relaxed);
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
