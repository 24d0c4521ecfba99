//! Clocks and sleep. A sleep that fails means that the call is ending: undo what
//! is half done, and return the error.

use std::fmt;
use std::time::Duration;

use crate::{Error, host};

/// The call is ending: a deadline passed, a limit was reached, or the call was
/// stopped. It holds the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled(
    /// The reason, for people.
    pub String,
);

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the call is ending: {}", self.0)
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

/// Sleeps, or returns early with the reason why the call is ending.
pub fn sleep(time: Duration) -> Result<(), Cancelled> {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    host::current().sleep(ms).map_err(Cancelled)
}

/// Returns the reason why the call is ending, or `None` while it is not. Check it
/// from time to time in long computations.
pub fn ending() -> Option<Cancelled> {
    host::current().ending().map(Cancelled)
}
