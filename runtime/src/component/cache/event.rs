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
    Rejected { what: String, check: Option<Check> },
    /// The guest is not prepared. Reported before compiling, which takes time and may fail.
    Compiling,
    /// The compiled guest cannot be stored.
    NotStored(String),
    /// The new stamp of a file cannot be stored.
    NotStamped(String),
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
            CacheEvent::Rejected { .. } => "doubted",
            CacheEvent::Compiling => "compiling",
            CacheEvent::NotStored(_) => "not-kept",
            CacheEvent::NotStamped(_) => "not-stamped",
        }
    }

    /// Returns the check that refused what lies in the cache, if one did.
    pub fn check(&self) -> Option<Check> {
        match self {
            CacheEvent::Unusable(error) => error.check(),
            CacheEvent::Rejected { check, .. } => *check,
            CacheEvent::Compiling | CacheEvent::NotStored(_) | CacheEvent::NotStamped(_) => None,
        }
    }
}

impl From<&CacheError> for CacheEvent {
    fn from(error: &CacheError) -> CacheEvent {
        CacheEvent::Rejected { what: error.to_string(), check: error.check() }
    }
}

impl fmt::Display for CacheEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheEvent::Unusable(what) => write!(f, "{what}; the cache is not used"),
            CacheEvent::Rejected { what, .. } => write!(f, "{what}; the guest is prepared again"),
            CacheEvent::Compiling => f.write_str("the guest is not prepared; it is compiled now"),
            CacheEvent::NotStored(why) => {
                write!(f, "the prepared guest cannot be stored, so every call compiles it again: {why}")
            }
            CacheEvent::NotStamped(why) => {
                write!(
                    f,
                    "the new time stamp of the guest's file cannot be stored, so every call hashes the file again: {why}"
                )
            }
        }
    }
}
