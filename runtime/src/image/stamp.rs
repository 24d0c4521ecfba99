//! Recognises an image that is changed in place while it is sent.
//!
//! What was sent would be a mixture of two files, and the server would accept it as complete.

use super::ImageError;
use std::fs::File;
use std::io;
use std::sync::Arc;
use wasm_cpi_checks::Check;

/// The open image as it was when a body was started.
pub(super) struct ImageStamp {
    file: Arc<File>,
    before: Times,
}

/// Size, and the times of the last change of content and of metadata.
#[derive(PartialEq, Eq)]
struct Times {
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Times {
    /// Uses `fstat`, which the lock-down allows; the standard library would use `statx`.
    fn of(file: &File) -> io::Result<Times> {
        let stat = rustix::fs::fstat(file)?;
        let (modified, changed) = ((stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec));
        Ok(Times { size: stat.st_size, modified, changed })
    }
}

impl ImageStamp {
    pub(super) fn of(file: &Arc<File>) -> io::Result<ImageStamp> {
        Ok(ImageStamp { file: Arc::clone(file), before: Times::of(file)? })
    }

    /// Rejects a file that has changed since.
    pub(super) fn check(&self) -> io::Result<()> {
        let now = Times::of(&self.file)?;
        let unchanged = Check::ImageUnchanged.ensure(now == self.before, || {
            ImageError::invalid("the stemcell image was changed while it was sent; leave it as it is, and try again")
        });
        unchanged.map_err(io::Error::other)
    }
}
