//! What happens to the cache, for the log and the audit log.

use super::CacheError;
use crate::log::Level;
use std::fmt;
use wasm_cpi_checks::Check;

/// An event of the cache that is logged and audited.
pub enum CacheEvent {
    /// The directory cannot be used, so every call compiles the guest.
    Unusable(CacheError),
    /// A file in the cache is not trusted, or cannot be loaded.
    Doubted { what: String, check: Option<Check> },
    /// The guest is not prepared. Reported before compiling, which takes time and may fail.
    Compiling,
    /// The compiled guest cannot be stored.
    NotKept(String),
    /// The new stamp of a file cannot be stored.
    NotStamped { file: StampedFile, why: String },
}

/// A file whose stamp the cache stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampedFile {
    Guest,
    Artifact,
}

impl fmt::Display for StampedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StampedFile::Guest => "the guest's file",
            StampedFile::Artifact => "the prepared guest in the cache",
        })
    }
}

impl CacheEvent {
    /// Returns the level of the line in the log.
    pub fn level(&self) -> Level {
        if matches!(self, CacheEvent::Compiling) { Level::Debug } else { Level::Warn }
    }

    /// Returns the name of the event in the audit log.
    pub fn name(&self) -> &'static str {
        match self {
            CacheEvent::Unusable(_) => "unusable",
            CacheEvent::Doubted { .. } => "doubted",
            CacheEvent::Compiling => "compiling",
            CacheEvent::NotKept(_) => "not-kept",
            CacheEvent::NotStamped { .. } => "not-stamped",
        }
    }

    /// Returns the check that refused what lies in the cache, if one did.
    pub fn check(&self) -> Option<Check> {
        match self {
            CacheEvent::Unusable(error) => error.check(),
            CacheEvent::Doubted { check, .. } => *check,
            CacheEvent::Compiling | CacheEvent::NotKept(_) | CacheEvent::NotStamped { .. } => None,
        }
    }
}

impl From<&CacheError> for CacheEvent {
    fn from(error: &CacheError) -> CacheEvent {
        CacheEvent::Doubted { what: error.to_string(), check: error.check() }
    }
}

impl fmt::Display for CacheEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheEvent::Unusable(what) => write!(f, "{what}; the cache is not used"),
            CacheEvent::Doubted { what, .. } => write!(f, "{what}; the guest is prepared again"),
            CacheEvent::Compiling => f.write_str("the guest is not prepared; it is compiled now"),
            CacheEvent::NotKept(why) => {
                write!(f, "the prepared guest cannot be stored, so every call compiles it again: {why}")
            }
            CacheEvent::NotStamped { file, why } => {
                write!(
                    f,
                    "the new time stamp of {file} cannot be stored, so every call hashes it again: {why}; make the \
                     cache directory writable for this user"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_whose_stamp_cannot_be_stored_is_named() {
        for (file, name) in [(StampedFile::Guest, "of the guest's file"), (StampedFile::Artifact, "in the cache")] {
            let text = CacheEvent::NotStamped { file, why: "read-only".into() }.to_string();
            assert!(text.contains(name) && text.contains("read-only; make"), "{text}");
        }
    }
}
