//! Times in the notation of the services.

use jiff::Timestamp;
use std::time::SystemTime;

/// Formats a time like `2026-01-31T12:00:00`, in UTC. The services append `Z` or
/// fractions of a second.
pub(super) fn format_time(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

pub(super) fn now() -> String {
    format_time(SystemTime::now())
}
