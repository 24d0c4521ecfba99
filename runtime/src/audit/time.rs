//! A moment as RFC 3339 writes it: UTC, with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// Of a clock before 1970, the beginning of 1970.
pub(super) fn rfc3339(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second, ms) = (second / 3600, second / 60 % 60, second % 60, since.subsec_millis());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The date that is so many days after 1970-01-01. Years are counted from March,
/// so that a leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let january_or_february = month >= 10;
    let year = era * 400 + year + u64::from(january_or_february);
    (year, if january_or_february { month - 9 } else { month + 3 }, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_001, "2000-03-01T00:00:00.001Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (1_794_834_061_120, "2026-11-16T13:01:01.120Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(ms)), text);
        }
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = date(0);
        for days in 1..200_000 {
            let (year, month, day) = date(days);
            let follows = (year, month, day) == (last.0, last.1, last.2 + 1)
                || (day == 1 && (year, month) == (last.0, last.1 + 1))
                || ((month, day) == (1, 1) && year == last.0 + 1 && (last.1, last.2) == (12, 31));
            assert!(follows, "{last:?} then {:?}", (year, month, day));
            last = (year, month, day);
        }
    }
}
