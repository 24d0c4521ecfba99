//! Threads that read the image for async callers.
//!
//! They are not threads of the async runtime, which waits for its blocking work when it ends. A call
//! must be able to end in the middle of an image.

use super::reader::{Stop, StopOnDrop};
use super::stamp::ImageStamp;
use super::{ImageError, unreadable};
use bytes::Bytes;
use futures_util::Stream;
use std::io::{Error, ErrorKind, Read, Result as IoResult};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// The number of bytes that are read and sent at once.
pub(super) const CHUNK: usize = 256 * 1024;
/// The number of chunks that wait for the network. A body takes no more memory than these and two
/// chunks in use.
const QUEUED_CHUNKS: usize = 4;

/// Runs `work` on a thread. If the caller drops the future, `stop` is set.
pub(super) async fn run_on_thread<T: Send + 'static>(
    stop: Stop,
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
) -> Result<T, ImageError> {
    let stop = StopOnDrop::new(stop);
    let (sender, receiver) = oneshot::channel();
    spawn(move || {
        let _ = sender.send(work());
    })?;
    let result = receiver.await;
    stop.disarm();
    result.unwrap_or_else(|_| Err(ImageError::Io("the thread that reads the stemcell image ended early".into())))
}

/// The bytes of a part of the image, as a request body.
pub struct ImageBody {
    receiver: mpsc::Receiver<IoResult<Bytes>>,
    /// The first chunk, if `beginning` has received it.
    first: Option<IoResult<Bytes>>,
    left: u64,
    _stop: StopOnDrop,
}

impl ImageBody {
    pub(super) fn start(
        source: impl Read + Send + 'static,
        length: u64,
        stamp: ImageStamp,
        stop: Stop,
    ) -> Result<ImageBody, ImageError> {
        let (sender, receiver) = mpsc::channel(QUEUED_CHUNKS);
        spawn(move || send(source, length, &stamp, &sender))?;
        Ok(ImageBody { receiver, first: None, left: length, _stop: StopOnDrop::new(stop) })
    }

    /// Returns the first bytes, at most a chunk; none if they cannot be read, which the stream reports. The stream returns
    /// the same bytes, so what was judged is what is sent, even if the file is overwritten meanwhile.
    pub async fn beginning(&mut self) -> Bytes {
        if self.first.is_none() {
            self.first = self.receiver.recv().await;
        }
        self.first.as_ref().and_then(|first| first.as_ref().ok()).cloned().unwrap_or_default()
    }
}

impl Stream for ImageBody {
    type Item = IoResult<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let first = self.first.take();
        match first.map_or_else(|| self.receiver.poll_recv(context), |first| Poll::Ready(Some(first))) {
            Poll::Ready(Some(Ok(chunk))) => {
                self.left = self.left.saturating_sub(chunk.len() as u64);
                Poll::Ready(Some(Ok(chunk)))
            }
            // The length was sent already. A server that does not count the bytes would accept a
            // body that ends early as complete.
            Poll::Ready(None) if self.left > 0 => {
                self.left = 0;
                Poll::Ready(Some(Err(Error::new(ErrorKind::UnexpectedEof, "the stemcell image ended early"))))
            }
            other => other,
        }
    }
}

fn send(mut source: impl Read, length: u64, stamp: &ImageStamp, sender: &mpsc::Sender<IoResult<Bytes>>) {
    let mut left = length;
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let mut chunk = vec![0; size];
        let mut read = source.read_exact(&mut chunk).map(|()| Bytes::from(chunk));
        if left == size as u64 {
            // Before the last bytes are sent, so that the server does not get a complete body.
            read = read.and_then(|chunk| stamp.check().map(|()| chunk));
        }
        let failed = read.is_err();
        if sender.blocking_send(read).is_err() || failed {
            return;
        }
        left -= size as u64;
    }
}

pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), ImageError> {
    std::thread::Builder::new().name("image".into()).spawn(work).map(drop).map_err(|error| unreadable(&error))
}
