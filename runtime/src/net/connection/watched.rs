//! Observes the bytes of a connection: whether a request was sent at all, and whether the response was
//! framed so strictly that another request may follow.
//!
//! The HTTP library parses responses. This module only notes what the library accepts in silence: a
//! head with bare line feeds, interim responses, a response that began before the request was complete.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasm_cpi_checks::Check;

/// The last bytes of a chunked body without trailers, after the head or the last chunk.
const END_OF_CHUNKS: &[u8; 7] = b"\r\n0\r\n\r\n";

/// The most interim responses (1xx) before a response.
pub(in crate::net) const MAX_INTERIM: u32 = 8;

/// A stream of bytes to a server, plain or TLS.
pub(in crate::net) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream, and what was seen of the request in progress and its response.
pub(in crate::net) struct WatchedStream {
    inner: Box<dyn Stream>,
    /// True if a failed write may still have sent something, as TLS does with a part of a long write.
    sends_on_error: bool,
    request: RequestBytes,
    response: ResponseBytes,
}

/// What was written of the request.
#[derive(Default)]
struct RequestBytes {
    written: u64,
    /// True if a write failed that may have sent something.
    in_doubt: bool,
    /// The length of the head; `None` until its end was written.
    head: Option<u64>,
    /// The bytes of the blank line after the head that have been written.
    blank_line: usize,
    /// The announced length of the body.
    body: u64,
}

/// What was read of the response.
#[derive(Default)]
struct ResponseBytes {
    /// True if the response began before the request was complete.
    early: bool,
    /// True if a line of a head ends without a carriage return.
    bare_line_feed: bool,
    /// The number of interim responses (1xx) before the response.
    interim: u32,
    head: Head,
    /// The last bytes, as many as there are.
    tail: Vec<u8>,
}

/// The parser of heads, which only finds their ends.
#[derive(Default)]
struct Head {
    /// The first bytes of the status line.
    start: Vec<u8>,
    /// The length of the current line, without its end.
    line: usize,
    after_return: bool,
    complete: bool,
}

/// The bytes of a status line up to the first digit of the status.
const STATUS_AT: usize = "HTTP/1.1 ".len();

impl WatchedStream {
    pub(in crate::net) fn plain(inner: Box<dyn Stream>) -> Self {
        WatchedStream {
            inner,
            sends_on_error: false,
            request: RequestBytes::default(),
            response: ResponseBytes::default(),
        }
    }

    pub(super) fn tls(inner: Box<dyn Stream>) -> Self {
        WatchedStream { sends_on_error: true, ..WatchedStream::plain(inner) }
    }

    /// Prepares for the next request, whose body has this length.
    pub(in crate::net) fn start_request(&mut self, body: u64) {
        self.request = RequestBytes { body, ..RequestBytes::default() };
        self.response = ResponseBytes::default();
    }

    /// Returns false if no byte of the request can have been sent.
    pub(in crate::net) fn may_have_sent(&self) -> bool {
        self.request.written > 0 || self.request.in_doubt
    }

    /// Returns true if the whole request was written.
    pub(in crate::net) fn has_written_request(&self) -> bool {
        self.request.is_complete()
    }

    /// Returns how many bytes of the request's body were written.
    pub(in crate::net) fn body_written(&self) -> u64 {
        self.request.head.map_or(0, |head| self.request.written - head)
    }

    /// Returns the number of interim responses (1xx) to the request.
    pub(in crate::net) fn interim_responses(&self) -> u32 {
        self.response.interim
    }

    /// Returns true if another request may follow: the request was sent completely before the response
    /// began, and the response has one meaning only.
    pub(in crate::net) fn is_strictly_framed(&self, chunked: bool) -> bool {
        let response = &self.response;
        let ends = !chunked || response.tail == END_OF_CHUNKS;
        self.request.is_complete() && !response.early && !response.bare_line_feed && response.interim == 0 && ends
    }

    /// Returns true if the server has sent nothing since the last response, and has not closed the
    /// connection.
    pub(in crate::net) async fn is_quiet(&mut self) -> bool {
        // Lets the runtime ask the kernel first.
        tokio::task::yield_now().await;
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        Pin::new(&mut self.inner).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer).is_pending()
    }
}

impl RequestBytes {
    fn is_complete(&self) -> bool {
        self.head.is_some_and(|head| self.written - head >= self.body)
    }

    fn record(&mut self, bytes: &[u8]) {
        const BLANK_LINE: &[u8; 4] = b"\r\n\r\n";
        if self.head.is_none() {
            for (index, byte) in bytes.iter().enumerate() {
                self.blank_line = match (*byte == BLANK_LINE[self.blank_line], byte) {
                    (true, _) => self.blank_line + 1,
                    (false, b'\r') => 1,
                    (false, _) => 0,
                };
                if self.blank_line == BLANK_LINE.len() {
                    self.head = Some(self.written + index as u64 + 1);
                    break;
                }
            }
        }
        self.written += bytes.len() as u64;
    }
}

impl ResponseBytes {
    fn record(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.head.complete {
                break;
            }
            self.bare_line_feed |= *byte == b'\n' && !self.head.after_return;
            self.head.record(*byte);
            if self.head.complete && self.head.start.get(STATUS_AT) == Some(&b'1') {
                self.interim += 1;
                self.head = Head::default();
            }
        }
        let last = &bytes[bytes.len().saturating_sub(END_OF_CHUNKS.len())..];
        self.tail.extend_from_slice(last);
        self.tail.drain(..self.tail.len().saturating_sub(END_OF_CHUNKS.len()));
    }
}

impl Head {
    fn record(&mut self, byte: u8) {
        if self.start.len() <= STATUS_AT {
            self.start.push(byte);
        }
        match byte {
            b'\n' => {
                self.complete = self.line == 0;
                self.line = 0;
            }
            b'\r' if !self.after_return => {}
            _ => self.line += 1,
        }
        self.after_return = byte == b'\r';
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(context, buffer);
        let read = buffer.filled().get(before..).unwrap_or_default();
        if !read.is_empty() {
            let complete = self.request.is_complete();
            self.response.early |= !complete;
            self.response.record(read);
        }
        if Check::InterimResponses.refuses(self.response.interim > MAX_INTERIM) {
            return Poll::Ready(Err(io::Error::other("too many interim responses")));
        }
        result
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(context, bytes);
        match &result {
            Poll::Ready(Ok(written)) => self.request.record(bytes.get(..*written).unwrap_or(bytes)),
            Poll::Ready(Err(_)) => self.request.in_doubt |= self.sends_on_error,
            Poll::Pending => {}
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
