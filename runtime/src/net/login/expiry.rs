//! Reads from the response to a login when the token expires.
//!
//! A time that cannot be read is ignored, because a server rejects an expired
//! token with 401.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::time::Duration;

/// Returns the time from `now` to this time (RFC 3339), at which a token expires.
pub(in crate::net) fn until(text: &str, now: Timestamp) -> Option<Duration> {
    let left = time(text.trim())?.duration_since(now);
    Some(left.try_into().unwrap_or_default())
}

/// Returns the lifetime of a token that expires after this number of seconds.
pub(super) fn in_seconds(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite())?;
    Duration::try_from_secs_f64(seconds.clamp(0.0, 1e9)).ok()
}

/// Returns how long the call that logged in uses a token with this lifetime: the margin is subtracted, but at most a
/// fifth, because the call has no other token. Later calls leave the whole margin (`token_store`).
pub(super) fn usable(lifetime: Duration, margin: Duration) -> Duration {
    lifetime - margin.min(lifetime / 5)
}

/// Parses a time of RFC 3339. A time without a zone is read as UTC. Returns `None` for a time
/// before 1970, which some servers write for a token that does not expire.
fn time(text: &str) -> Option<Timestamp> {
    // A date alone, or one with the name of a zone, is not a time of RFC 3339.
    if !text.contains(':') || text.contains('[') {
        return None;
    }
    let text = with_nanoseconds(text);
    let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
    text.parse().ok().or_else(in_utc).filter(|time| *time >= Timestamp::UNIX_EPOCH)
}

/// Shortens a fraction of a second to the nine digits that a timestamp has.
fn with_nanoseconds(text: &str) -> String {
    let Some((seconds, rest)) = text.split_once('.') else { return text.to_owned() };
    let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &rest[..(rest.len() - zone.len()).min(9)];
    format!("{seconds}.{digits}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_of_rfc_3339_are_parsed_and_others_are_rejected() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-11-16T07:34:56.123456Z", Some(1_794_814_496)),
            ("2026-11-16 07:34:56", Some(1_794_814_496)),
            ("2026-11-16t09:34:56+02:00", Some(1_794_814_496)),
            ("2026-11-15T23:04:56.5-08:30", Some(1_794_814_496)),
            ("2024-03-01T00:00:00Z", Some(1_709_251_200)),
            ("1969-12-31T23:59:59Z", None),
            ("0001-01-01T00:00:00Z", None),
            ("2026-11-16T07:34:56.1234567890123Z", Some(1_794_814_496)),
            ("2026-11-16T07:34:56[Europe/Berlin]", None),
            ("2026-11-16", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-16T09:34:56+0200", Some(1_794_814_496)),
            ("2026-11-31T00:00:00Z", None),
            ("2026-11-16T07:34:56Zjunk", None),
            ("tomorrow", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(time(text).map(Timestamp::as_second), expected, "{text}");
        }
    }

    #[test]
    fn a_token_is_not_used_shortly_before_it_expires() {
        let now = Timestamp::from_second(1_794_814_496).unwrap();
        let cases = [
            (until("2026-11-16T08:34:56Z", now), Some(3540)),
            (until("2026-11-16T07:35:06Z", now), Some(8)),
            (until("2020-01-01T00:00:00Z", now), Some(0)),
            (until("1960-01-01T00:00:00Z", now), None),
            (in_seconds("3600"), Some(3540)),
            (in_seconds("10.0"), Some(8)),
            (in_seconds("-5"), Some(0)),
            (in_seconds("1e300"), Some(999_999_940)),
            (in_seconds("NaN"), None),
            (in_seconds("soon"), None),
        ];
        for (index, (found, expected)) in cases.into_iter().enumerate() {
            assert_eq!(found.map(|left| usable(left, Duration::from_secs(60)).as_secs()), expected, "case {index}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,30}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}[.0-9Z+:é-]{0,9}") {
            until(&text, Timestamp::now());
            in_seconds(&text);
        }
    }
}
