//! The body of a request, and the progress of sending it.
//!
//! Every body is sent in small pieces, because the only sign that the peer still
//! reads is that the client asks for the next piece. Memory use stays constant.

use super::Caps;
use crate::image::ImageError;
use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use reqwest::{Body, Method};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;

const PIECE: usize = 64 * 1024;
const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// The body of a request.
pub enum SendBody {
    None,
    Bytes(Bytes),
    Stream { length: u64, pieces: BoxStream<'static, io::Result<Bytes>> },
}

impl SendBody {
    /// Returns the value of `Content-Length`. Some servers refuse a POST without one.
    pub(in crate::net) fn announced(&self, method: &Method) -> Option<u64> {
        match self {
            SendBody::None => [Method::POST, Method::PUT, Method::PATCH].contains(method).then_some(0),
            SendBody::Bytes(bytes) => Some(bytes.len() as u64),
            SendBody::Stream { length, .. } => Some(*length),
        }
    }

    /// Returns the same body once more; `None` for a stream, which is read once.
    pub(super) fn copy(&self) -> Option<SendBody> {
        match self {
            SendBody::None => Some(SendBody::None),
            SendBody::Bytes(bytes) => Some(SendBody::Bytes(bytes.clone())),
            SendBody::Stream { .. } => None,
        }
    }

    /// Returns the body as a stream that records its progress; `None` if it is empty.
    pub(in crate::net) fn monitored(self, progress: Progress) -> Option<Body> {
        let pieces = match self {
            SendBody::None => return None,
            SendBody::Bytes(bytes) if bytes.is_empty() => return None,
            SendBody::Bytes(bytes) => pieces(bytes).boxed(),
            SendBody::Stream { pieces, .. } => pieces,
        };
        Some(Body::wrap_stream(MonitoredBody { pieces, progress }))
    }
}

fn pieces(mut bytes: Bytes) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let next = move || (!bytes.is_empty()).then(|| Ok(bytes.split_to(PIECE.min(bytes.len()))));
    futures_util::stream::iter(std::iter::from_fn(next))
}

/// The progress of sending a body.
#[derive(Clone)]
pub(in crate::net) struct Progress(Arc<Mutex<ProgressState>>);

struct ProgressState {
    /// The time at which the exchange times out unless the peer makes progress.
    stalls_at: Instant,
    /// Bytes of the body that the client has not yet taken.
    left: u64,
    /// The reason why the body could not be read to its end, and the check that refused it.
    failure: Option<(String, Option<Check>)>,
    first_byte: Duration,
    idle: Duration,
}

impl Progress {
    /// Starts when the connection is open, for a body of this length.
    pub(in crate::net) fn new(caps: &Caps, length: u64) -> Self {
        let timeout = if length > 0 { caps.idle } else { caps.first_byte };
        Progress(Arc::new(Mutex::new(ProgressState {
            stalls_at: Instant::now() + timeout,
            left: length,
            failure: None,
            first_byte: caps.first_byte,
            idle: caps.idle,
        })))
    }

    /// Starts before the connection is open, so that the time to connect counts as well.
    pub(in crate::net) fn while_connecting(caps: &Caps, length: u64) -> Self {
        let progress = Progress::new(caps, length);
        progress.lock().stalls_at += caps.connect;
        progress
    }

    pub(super) fn stalls_at(&self) -> Instant {
        self.lock().stalls_at
    }

    /// Returns the limit that a timeout at this time would reach.
    pub(super) fn limit(&self) -> (&'static str, Duration) {
        let state = self.lock();
        if state.left > 0 { ("idle_seconds", state.idle) } else { ("first_byte_seconds", state.first_byte) }
    }

    pub(super) fn failure(&self) -> Option<(String, Option<Check>)> {
        self.lock().failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the check of the image that refused, if one did.
fn refusing_check(error: &io::Error) -> Option<Check> {
    error.get_ref()?.downcast_ref::<ImageError>()?.check()
}

struct MonitoredBody {
    pieces: BoxStream<'static, io::Result<Bytes>>,
    progress: Progress,
}

impl Stream for MonitoredBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.pieces.poll_next_unpin(context);
        let mut state = self.progress.lock();
        let now = Instant::now();
        match next {
            Poll::Pending => {
                // The source of the body is slow, not the peer, so only the deadline applies.
                state.stalls_at = now + A_DAY;
                Poll::Pending
            }
            Poll::Ready(Some(Ok(piece))) if piece.len() as u64 <= state.left => {
                state.left -= piece.len() as u64;
                state.stalls_at = now + if state.left > 0 { state.idle } else { state.first_byte };
                Poll::Ready(Some(Ok(piece)))
            }
            Poll::Ready(None) if state.left == 0 => Poll::Ready(None),
            Poll::Ready(other) => {
                let why = match &other {
                    Some(Err(error)) => error.to_string(),
                    Some(Ok(_)) => "it is longer than its announced length".to_owned(),
                    None => "it is shorter than its announced length".to_owned(),
                };
                state.failure = Some((why, other.and_then(Result::err).as_ref().and_then(refusing_check)));
                Poll::Ready(Some(Err(io::ErrorKind::Other.into())))
            }
        }
    }
}
