//! A guest's standard output and error, which become lines of its log with the same limits.

use crate::log::{GuestLog, Level};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasm_cpi_checks::Check;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};

/// A stream of the guest whose lines go to its log.
#[derive(Clone)]
pub struct LogStream {
    log: Arc<GuestLog>,
    level: Level,
    line: Arc<Mutex<Vec<u8>>>,
}

impl LogStream {
    pub fn new(log: Arc<GuestLog>, level: Level) -> Self {
        LogStream { log, level, line: Arc::default() }
    }

    /// Collects bytes and writes complete lines. Only the start of a long line is kept, because an
    /// endless line must not use up memory, and a secret that is split between two lines would
    /// not be recognised.
    fn take(&self, bytes: &[u8]) {
        let mut line = self.line.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let most = Check::StdioLine.choose(self.log.longest_line(), usize::MAX);
            let room = most.saturating_sub(line.len());
            line.extend_from_slice(&text[..text.len().min(room)]);
            if text.len() < piece.len() {
                self.log.write(self.level, &String::from_utf8_lossy(&line));
                line.clear();
            }
        }
    }

    /// Writes the last line, if it has no line end.
    pub fn finish(&self) {
        let line = std::mem::take(&mut *self.line.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        if !line.is_empty() {
            self.log.write(self.level, &String::from_utf8_lossy(&line));
        }
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn wasmtime_wasi_io::streams::OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for LogStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[wasmtime_wasi::async_trait]
impl wasmtime_wasi_io::poll::Pollable for LogStream {
    async fn ready(&mut self) {}
}

impl wasmtime_wasi_io::streams::OutputStream for LogStream {
    fn write(&mut self, bytes: bytes::Bytes) -> wasmtime_wasi_io::streams::StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> wasmtime_wasi_io::streams::StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> wasmtime_wasi_io::streams::StreamResult<usize> {
        Ok(64 * 1024)
    }
}
