//! Clocks and sleep. A sleep that fails means that the call is ending: undo what
//! is unfinished, and return the error.
//!
//! ```
//! use std::time::Duration;
//! use wasm_cpi_sdk::{clock, fake::Fake};
//!
//! let _host = Fake::new().end_after_ms(5000).install();
//! assert!(clock::sleep(Duration::from_secs(4)).is_ok());
//! assert!(clock::ending().is_none());
//! let cancelled = clock::sleep(Duration::from_secs(4)).unwrap_err();
//! assert_eq!(clock::ending(), Some(cancelled));
//! ```

use std::fmt;
use std::time::Duration;

use crate::{Error, host};

/// The call is ending: a deadline passed, a limit was reached, or the call was
/// stopped. Holds the host's text, which does not say why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled(
    /// The text of the host.
    pub String,
);

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cancelled {}

impl From<Cancelled> for Error {
    fn from(cancelled: Cancelled) -> Self {
        Self::cloud(cancelled.to_string())
    }
}

/// Returns the milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> u64 {
    host::current().now_ms()
}

/// Returns the time of a clock that never goes back.
pub fn monotonic() -> Duration {
    Duration::from_nanos(host::current().monotonic_ns())
}

/// Sleeps, or returns early with an error if the call is ending.
pub fn sleep(time: Duration) -> Result<(), Cancelled> {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    host::current().sleep(ms).map_err(Cancelled)
}

/// Returns the host's text if the call is ending, and `None` otherwise. Check it
/// from time to time in long computations.
pub fn ending() -> Option<Cancelled> {
    host::current().ending().map(Cancelled)
}
