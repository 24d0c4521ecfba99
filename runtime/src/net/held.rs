//! A file that may be opened early and read late.
//!
//! Once a call is locked down it can open nothing. What it may have to read
//! then is held open by that time, and read when it is needed: from the
//! beginning, every time, so that what an operator changes in place is seen.

use std::fs::{File, Metadata};
use std::io::{Error, Result};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    /// With what it was when it was opened, as that cannot be asked later; or the
    /// error's number, if it could not be opened.
    file: OnceLock<std::result::Result<(File, Metadata), Option<i32>>>,
}

impl Held {
    /// Opens nothing yet.
    pub(super) fn new(path: impl Into<PathBuf>) -> Held {
        Held { path: path.into(), file: OnceLock::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it now. An error waits until somebody reads.
    pub(super) fn hold(&self) {
        self.file.get_or_init(|| open(&self.path).map_err(|error| error.raw_os_error()));
    }

    /// What is said of the very file that is read from now on.
    pub(super) fn judged<T>(&self, judge: impl FnOnce(&Metadata) -> T) -> Result<T> {
        self.hold();
        match self.file.get() {
            Some(Ok((_, metadata))) => Ok(judge(metadata)),
            Some(Err(code)) => Err(unopened(*code)),
            None => Err(unopened(None)),
        }
    }

    /// The first `max` bytes.
    pub(super) fn read(&self, max: usize) -> Result<Vec<u8>> {
        match self.file.get() {
            Some(Ok((file, _))) => read(file, max),
            Some(Err(code)) => Err(unopened(*code)),
            None => read(&open(&self.path)?.0, max),
        }
    }
}

fn unopened(code: Option<i32>) -> Error {
    code.map_or_else(|| Error::other("it cannot be opened"), Error::from_raw_os_error)
}

/// Not waiting for the other end of what turns out to be a pipe.
fn open(path: &Path) -> Result<(File, Metadata)> {
    let file = File::options().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn read(file: &File, max: usize) -> Result<Vec<u8>> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; max.min(16 * 1024)]);
    while bytes.len() < max {
        let wanted = chunk.len().min(max - bytes.len());
        match file.read_at(&mut chunk[..wanted], bytes.len() as u64) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_file_is_read_anew_each_time_and_needs_its_name_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::write(&path, "one").unwrap();
        let held = Held::new(&path);
        held.hold();
        assert_eq!(held.read(99).unwrap(), b"one");
        std::fs::write(&path, "another").unwrap();
        assert_eq!(held.read(99).unwrap(), b"another");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(held.read(4).unwrap(), b"anot");
    }

    #[test]
    fn what_could_not_be_opened_says_why_when_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("late");
        let (held, not_held) = (Held::new(&path), Held::new(&path));
        held.hold();
        std::fs::write(&path, "late").unwrap();
        assert_eq!(held.read(9).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        assert_eq!(not_held.read(9).unwrap(), b"late");
    }

    #[test]
    fn more_than_one_chunk_is_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        std::fs::write(&path, vec![7; 50_000]).unwrap();
        let held = Held::new(&path);
        assert_eq!([held.read(40_000).unwrap().len(), held.read(99_999).unwrap().len()], [40_000, 50_000]);
    }
}
