//! Reading the open image by position, with an end that can be called.
//!
//! Every reader has its own position in the same descriptor. A `Stop` reaches
//! all readers that were given it: their next read fails, and with it whatever
//! unpacks or hashes on their thread.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Stops the readers when it goes, unless they were let go first.
pub(super) struct StopOnDrop(Option<Stop>);

impl StopOnDrop {
    pub(super) fn new(stop: Stop) -> Self {
        StopOnDrop(Some(stop))
    }

    pub(super) fn let_go(mut self) {
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

/// The bytes from `position` to `end`; a file that became shorter is an error.
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

    /// Looks ahead without moving.
    pub(super) fn starts_with(&self, magic: [u8; 2]) -> io::Result<bool> {
        let mut start = [0; 2];
        let count = self.file.read_at(&mut start, self.position)?;
        Ok(count == start.len() && start == magic)
    }

    /// Moves on without reading.
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
            return Err(io::Error::other("nobody waits for it any more"));
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
