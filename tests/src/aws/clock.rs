//! The time of the simulated cloud, which can differ from the time of the machine.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::time::{Duration, SystemTime};

/// Returns the time that is this many seconds ahead of the machine's.
pub(super) fn now(ahead: i64) -> SystemTime {
    let by = Duration::from_secs(ahead.unsigned_abs());
    let now = SystemTime::now();
    if ahead < 0 { now - by } else { now + by }
}

/// Formats a time like `2026-01-31T12:00:00.000Z`, as EC2 does.
pub(super) fn format(time: SystemTime) -> String {
    strftime(time, "%Y-%m-%dT%H:%M:%S.000Z")
}

/// Formats a time like `2026-01-31T12:00:00Z`.
pub(super) fn format_seconds(time: SystemTime) -> String {
    strftime(time, "%Y-%m-%dT%H:%M:%SZ")
}

/// Formats a time like `20260131T120000Z`, as signatures have it.
pub(super) fn format_basic(time: SystemTime) -> String {
    strftime(time, "%Y%m%dT%H%M%SZ")
}

/// Formats a time for the header `Date`.
pub(super) fn format_date(time: SystemTime) -> String {
    strftime(time, "%a, %d %b %Y %H:%M:%S GMT")
}

/// Reads a time like `20260131T120000Z`.
pub(super) fn parse_basic(text: &str) -> Option<SystemTime> {
    if text.len() != 16 {
        return None;
    }
    let time = DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(time.into())
}

/// Returns the seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> i64 {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH).as_second()
}

fn strftime(time: SystemTime, form: &str) -> String {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH).strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_signature_is_read_as_it_is_written() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        assert_eq!(format_basic(time), "20150830T123600Z");
        assert_eq!(parse_basic("20150830T123600Z"), Some(time));
        assert_eq!(format_date(time), "Sun, 30 Aug 2015 12:36:00 GMT");
        for wrong in ["20150830T123600", "2015-08-30T12:36Z", "20151330T123600Z", ""] {
            assert_eq!(parse_basic(wrong), None, "{wrong}");
        }
    }
}
