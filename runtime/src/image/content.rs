//! The bytes of one member of an archive, holes of sparse files filled in.

use super::archive::Tape;
use std::io::{self, Read};

/// A stretch of a member that is stored in the archive: all else is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    pub(super) length: u64,
}

pub(super) struct Content {
    tape: Tape,
    chunks: std::vec::IntoIter<Chunk>,
    current: Option<Chunk>,
    position: u64,
    size: u64,
}

impl Content {
    /// `tape` stands at the member's first stored byte; `chunks` are in order
    /// and within `size`.
    pub(super) fn new(tape: Tape, chunks: Vec<Chunk>, size: u64) -> Self {
        Content { tape, chunks: chunks.into_iter(), current: None, position: 0, size }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The chunk that holds the position or is the next one after it.
    fn chunk(&mut self) -> Option<Chunk> {
        while self.current.is_none_or(|chunk| chunk.offset + chunk.length <= self.position) {
            self.current = Some(self.chunks.next()?);
        }
        self.current
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at_most = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let chunk = self.chunk();
        let hole_ends = chunk.map_or(self.size, |chunk| chunk.offset);
        let count = if hole_ends > self.position {
            let count = at_most(hole_ends - self.position);
            buffer[..count].fill(0);
            count
        } else {
            let left = chunk.map_or(0, |chunk| chunk.offset + chunk.length - self.position);
            let count = at_most(left);
            match self.tape.read(&mut buffer[..count])? {
                0 if count > 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => count,
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}
