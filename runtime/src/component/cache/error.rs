//! Why the cache, or a file in it, is not used.

use crate::trust::Untrusted;
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use wasm_cpi_checks::{Check, RefusedBy};

/// The reason why the cache, or a file in it, is not used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("cache {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("cache {}: {source}", path.display())]
    UntrustedDirectory { path: PathBuf, source: Untrusted },
    #[error("cache {}: {name}: {source}", path.display())]
    Write { path: PathBuf, name: String, source: io::Error },
    #[error("{name} in the cache cannot be opened: {source}")]
    Open { name: String, source: io::Error },
    #[error("{name} in the cache cannot be read: {source}")]
    Read { name: String, source: io::Error },
    #[error("{name} in the cache {source}")]
    UntrustedFile { name: String, source: Untrusted },
    #[error("{name} in the cache {what}")]
    Content { name: String, what: &'static str, check: Option<Check> },
    #[error("the artifact of the prepared guest is missing from the cache")]
    NoArtifact,
}

impl CacheError {
    pub(super) fn content(name: &str, what: &'static str) -> CacheError {
        CacheError::Content { name: name.to_owned(), what, check: None }
    }

    /// Returns the check that refused, if one did.
    pub fn check(&self) -> Option<Check> {
        let is = |source: &io::Error, errno| Errno::from_io_error(source) == Some(errno);
        match self {
            CacheError::UntrustedDirectory { .. } => Some(Check::CacheDirectory),
            CacheError::UntrustedFile { .. } => Some(Check::CacheFile),
            CacheError::Content { check, .. } => *check,
            // The kernel returns these errors for a link that it must not follow.
            CacheError::Directory { source, .. } if is(source, Errno::LOOP) || is(source, Errno::NOTDIR) => {
                Some(Check::CacheDirectoryLink)
            }
            CacheError::Open { source, .. } if is(source, Errno::LOOP) => Some(Check::CacheFileLink),
            _ => None,
        }
    }

    /// Returns true if the directory does not exist, so that it can be created.
    pub fn is_absent(&self) -> bool {
        matches!(self, CacheError::Directory { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl RefusedBy for CacheError {
    fn refused_by(self, check: Check) -> CacheError {
        match self {
            CacheError::Content { name, what, check: known } => {
                CacheError::Content { name, what, check: known.or(Some(check)) }
            }
            other => other,
        }
    }
}
