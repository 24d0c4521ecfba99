//! When a token ends, from what a login answered.
//!
//! What cannot be read is as good as nothing: a token that ended early shows by
//! a 401.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// So long before its end a token is not used any more: requests take time,
/// and clocks differ.
const MARGIN: Duration = Duration::from_secs(60);

/// How long from `now` on the token may be used, by a time of RFC 3339.
pub(super) fn until(text: &str, now: SystemTime) -> Option<Duration> {
    let end = u64::try_from(unix_seconds(text.trim())?).ok()?;
    let end = UNIX_EPOCH.checked_add(Duration::from_secs(end))?;
    Some(usable(end.duration_since(now).unwrap_or_default()))
}

/// The same by a number of seconds.
pub(super) fn in_seconds(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite())?;
    Duration::try_from_secs_f64(seconds.clamp(0.0, 1e9)).ok().map(usable)
}

/// A token of a few seconds is used for most of them.
fn usable(lifetime: Duration) -> Duration {
    lifetime - MARGIN.min(lifetime / 5)
}

fn unix_seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let separator = |at: usize, allowed: &[u8]| text.as_bytes().get(at).is_some_and(|byte| allowed.contains(byte));
    let separated =
        separator(4, b"-") && separator(7, b"-") && separator(10, b"Tt ") && separator(13, b":") && separator(16, b":");
    if !separated {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let sane = (1..=12).contains(&month) && (1..=31).contains(&day) && hour <= 23 && minute <= 59 && second <= 60;
    let rest = text.get(19..)?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let offset = match zone {
        // Without a zone, what servers mean is UTC.
        "" | "Z" | "z" => 0,
        _ => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
            sign * (hours.parse::<u8>().ok()? as i64 * 3600 + minutes.parse::<u8>().ok()? as i64 * 60)
        }
    };
    sane.then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// Days since 1970 in the Gregorian calendar, counting years from March so
/// that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_as_rfc_3339_writes_them() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-11-16T07:34:56.123456Z", Some(1_794_814_496)),
            ("2026-11-16 07:34:56", Some(1_794_814_496)),
            ("2026-11-16t09:34:56+02:00", Some(1_794_814_496)),
            ("2026-11-15T23:04:56.5-08:30", Some(1_794_814_496)),
            ("2024-03-01T00:00:00Z", Some(1_709_251_200)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-16", None),
            ("2026-11-16T07:34Z", None),
            ("2026-11-16T07:34:56+0200", None),
            ("2026-11-16T07:34:56Zjunk", None),
            ("tomorrow", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(unix_seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_token_is_left_a_while_before_it_ends() {
        let now = UNIX_EPOCH + Duration::from_secs(1_794_814_496);
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
            assert_eq!(found.map(|left| left.as_secs()), expected, "case {index}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "\\PC{0,30}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}[.0-9Z+:é-]{0,9}") {
            until(&text, SystemTime::now());
            in_seconds(&text);
        }

        #[test]
        fn days_follow_each_other(day in 0i64..200_000) {
            // Every day is one after another: walk from a date that is known.
            let (mut year, mut left) = (1970, day);
            loop {
                let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
                let length = if leap { 366 } else { 365 };
                if left < length { break; }
                left -= length;
                year += 1;
            }
            prop_assert_eq!(days(year, 1, 1) + left, day);
        }
    }
}
