//! Time. A sleep that fails means that the call is ending: undo what is half
//! done, and return the error.

use std::fmt;
use std::time::Duration;

use crate::{Error, host};

/// Why a call is ending: a deadline passed, or somebody stopped it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled(pub String);

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the call was cut short: {}", self.0)
    }
}

impl std::error::Error for Cancelled {}

impl From<Cancelled> for Error {
    fn from(cancelled: Cancelled) -> Self {
        Self::cloud(cancelled.to_string())
    }
}

/// Milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> u64 {
    host::current().now_ms()
}

/// Time on a clock that never goes back.
pub fn monotonic() -> Duration {
    Duration::from_nanos(host::current().monotonic_ns())
}

pub fn sleep(time: Duration) -> Result<(), Cancelled> {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    host::current().sleep(ms).map_err(Cancelled)
}

/// Why the call is ending, if it is. Long computations should ask now and then.
pub fn ending() -> Option<Cancelled> {
    host::current().ending().map(Cancelled)
}
