//! A file that can be opened before lock-down and read after it.
//!
//! A call that is locked down cannot open files, so those that it may read later
//! are opened before. Each read starts at the start of the file, so that changes
//! which an operator makes in place are seen.

use std::fs::{File, Metadata};
use std::io::{Error, Result};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A file that is opened at most once.
#[derive(Debug)]
pub(super) struct PreopenedFile {
    path: PathBuf,
    /// The open file with its metadata, which cannot be read after lock-down; or the number
    /// of the error, if it could not be opened.
    file: OnceLock<std::result::Result<(File, Metadata), Option<i32>>>,
}

impl PreopenedFile {
    /// Does not open the file yet.
    pub(super) fn new(path: impl Into<PathBuf>) -> PreopenedFile {
        PreopenedFile { path: path.into(), file: OnceLock::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file. An error is reported when the file is read.
    pub(super) fn open(&self) {
        self.file.get_or_init(|| open(&self.path).map_err(|error| error.raw_os_error()));
    }

    /// Opens the file and returns what `judge` says about its metadata. Later reads use the same file.
    pub(super) fn inspect<T>(&self, judge: impl FnOnce(&Metadata) -> T) -> Result<T> {
        self.open();
        match self.file.get() {
            Some(Ok((_, metadata))) => Ok(judge(metadata)),
            Some(Err(code)) => Err(unopened(*code)),
            None => Err(unopened(None)),
        }
    }

    /// Returns at most the first `max` bytes.
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

/// Opens the file without waiting for a writer, if it is a pipe.
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
    fn an_open_file_is_read_from_its_start_each_time_even_after_it_was_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::write(&path, "one").unwrap();
        let preopened = PreopenedFile::new(&path);
        preopened.open();
        assert_eq!(preopened.read(99).unwrap(), b"one");
        std::fs::write(&path, "another").unwrap();
        assert_eq!(preopened.read(99).unwrap(), b"another");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(preopened.read(4).unwrap(), b"anot");
    }

    #[test]
    fn reading_a_file_that_could_not_be_opened_returns_the_error_of_opening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("late");
        let (preopened, not_open) = (PreopenedFile::new(&path), PreopenedFile::new(&path));
        preopened.open();
        std::fs::write(&path, "late").unwrap();
        assert_eq!(preopened.read(9).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        assert_eq!(not_open.read(9).unwrap(), b"late");
    }

    #[test]
    fn more_than_one_chunk_is_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        std::fs::write(&path, vec![7; 50_000]).unwrap();
        let preopened = PreopenedFile::new(&path);
        assert_eq!([preopened.read(40_000).unwrap().len(), preopened.read(99_999).unwrap().len()], [40_000, 50_000]);
    }
}
