//! Reads the open image by position, and can be stopped.
//!
//! Every reader has its own position in the same descriptor. A `Stop` stops all readers that share
//! it: their next read fails, which ends decompression or hashing on their thread.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that stops readers.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Stops the readers when it is dropped, unless it was disarmed.
pub(super) struct StopOnDrop(Option<Stop>);

impl StopOnDrop {
    pub(super) fn new(stop: Stop) -> Self {
        StopOnDrop(Some(stop))
    }

    /// Lets the readers continue after the drop.
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(Stop(flag)) = &self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

/// Reads the bytes from `position` to `end`. It is an error if the file has become shorter.
pub(super) struct Reader {
    file: Arc<File>,
    position: u64,
    end: u64,
    stop: Stop,
}

impl Reader {
    pub(super) fn new(file: Arc<File>, position: u64, end: u64, stop: Stop) -> Self {
        Reader { file, position, end, stop }
    }

    /// Returns true if the next bytes are these, without changing the position.
    pub(super) fn starts_with(&self, magic: [u8; 2]) -> io::Result<bool> {
        let mut start = [0; 2];
        let count = self.file.read_at(&mut start, self.position)?;
        Ok(count == start.len() && start == magic)
    }

    /// Moves the position without reading.
    pub(super) fn skip(&mut self, count: u64) -> io::Result<()> {
        match self.position.checked_add(count).filter(|position| *position <= self.end) {
            Some(position) => {
                self.position = position;
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.0.load(Ordering::Relaxed) {
            // The code that waited for the result is gone, so no one sees this error.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX).min(buffer.len());
        if left == 0 {
            return Ok(0);
        }
        match self.file.read_at(&mut buffer[..left], self.position)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter during the call")),
            count => {
                self.position += count as u64;
                Ok(count)
            }
        }
    }
}
