//! Times as the services write them.

use jiff::Timestamp;
use std::time::SystemTime;

/// Writes a time like `2026-01-31T12:00:00`, in UTC; services add `Z` or fractions as they like.
pub(super) fn written(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

pub(super) fn now() -> String {
    written(SystemTime::now())
}
