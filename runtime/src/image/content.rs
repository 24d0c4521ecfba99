//! The bytes of one member of an archive. Gaps of sparse files are filled with zeros.

use super::archive::TarStream;
use std::io::{self, Read};

/// A range of a member that is stored in the archive. All other bytes are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Reads one member.
pub(super) struct Content {
    stream: TarStream,
    chunks: std::vec::IntoIter<Chunk>,
    current: Option<Chunk>,
    position: u64,
    size: u64,
}

impl Content {
    /// `stream` is positioned at the member's first stored byte. `chunks` are sorted and within
    /// `size`.
    pub(super) fn new(stream: TarStream, chunks: Vec<Chunk>, size: u64) -> Self {
        Content { stream, chunks: chunks.into_iter(), current: None, position: 0, size }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the chunk that contains the position, or else the next one.
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
        let gap_end = chunk.map_or(self.size, |chunk| chunk.offset);
        let count = if gap_end > self.position {
            let count = at_most(gap_end - self.position);
            buffer[..count].fill(0);
            count
        } else {
            let left = chunk.map_or(0, |chunk| chunk.offset + chunk.length - self.position);
            let count = at_most(left);
            match self.stream.read(&mut buffer[..count])? {
                0 if count > 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => count,
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}
