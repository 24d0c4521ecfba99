//! The time that signed requests carry.
//!
//! A server refuses a signature whose time differs too much from its own. If its answer says so, its clock is used for
//! the rest of the call: once, only if TLS proves who answered, and within bounds. Otherwise a server could collect
//! signatures for times of its choice.

use super::refusal::{is_skewed, refusal_code};
use crate::net::exchange::Received;
use jiff::{SignedDuration, Timestamp};
use std::sync::{Mutex, PoisonError};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Scheme;

/// Smaller differences are not why a signature is refused.
const TOLERATED: SignedDuration = SignedDuration::from_secs(300);
const MAX_OFFSET: SignedDuration = SignedDuration::from_hours(24);

/// How far the server's clock is ahead of this machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::net) struct ClockOffset(SignedDuration);

impl ClockOffset {
    /// Returns the time of the server's clock.
    pub(in crate::net) fn now(self) -> Timestamp {
        Timestamp::now().checked_add(self.0).unwrap_or_else(|_| Timestamp::now())
    }
}

/// The offset of one call. It is set once at most.
#[derive(Default)]
pub(in crate::net) struct ServerClock(Mutex<Option<ClockOffset>>);

impl ServerClock {
    pub(in crate::net) fn offset(&self) -> ClockOffset {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
    }

    /// Returns true if the request may be signed once more, because it was refused for the time that it was signed
    /// with, and another one is known now.
    pub(in crate::net) fn corrects(&self, received: &Received, scheme: Scheme, used: ClockOffset) -> bool {
        if !is_skewed(refusal_code(received).as_deref()) || Check::ClockSkew.refuses(scheme != Scheme::Https) {
            return false;
        }
        let mut offset = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *offset {
            Some(known) => known != used,
            None => {
                let found = offset_in(received);
                *offset = found.or(*offset);
                found.is_some()
            }
        }
    }
}

/// Returns how far the clock of the server differs, if it explains the refusal and is within bounds.
fn offset_in(received: &Received) -> Option<ClockOffset> {
    let mut dates = received.headers.iter().filter(|(name, _)| name == "date");
    let (Some((_, date)), None) = (dates.next(), dates.next()) else { return None };
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date.trim()).ok()?;
    let offset = date.duration_since(Timestamp::now());
    let explains = offset.abs() > TOLERATED;
    (explains && Check::ClockSkew.accepts(offset.abs() <= MAX_OFFSET)).then_some(ClockOffset(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str, ahead: i64) -> Received {
        let date = Timestamp::now().checked_add(SignedDuration::from_secs(ahead)).unwrap();
        let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let headers = vec![("date".to_owned(), date), ("content-type".to_owned(), "application/json".to_owned())];
        let body = format!("{{\"__type\": \"{code}\"}}").into_bytes();
        Received { status: 403, headers, body, peer: std::net::Ipv4Addr::LOCALHOST.into(), body_written: 0 }
    }

    #[test]
    fn only_a_plausible_difference_over_https_corrects_the_clock() {
        for (code, ahead, scheme, corrected) in [
            ("RequestTimeTooSkewed", 3600, Scheme::Https, true),
            ("SignatureDoesNotMatch", -3600, Scheme::Https, true),
            ("RequestExpired", 86_000, Scheme::Https, true),
            ("RequestExpired", 87_000, Scheme::Https, false),
            ("RequestExpired", -87_000, Scheme::Https, false),
            ("RequestExpired", 200, Scheme::Https, false),
            ("RequestExpired", 3600, Scheme::Http, false),
            ("UnauthorizedOperation", 3600, Scheme::Https, false),
        ] {
            let clock = ServerClock::default();
            let found = clock.corrects(&refused(code, ahead), scheme, clock.offset());
            assert_eq!(found, corrected, "{code} {ahead} {scheme:?}");
            let offset = clock.offset().0.as_secs();
            assert!(if corrected { (offset - ahead).abs() < 5 } else { offset == 0 }, "{offset}");
        }
    }

    #[test]
    fn the_clock_is_corrected_once_and_requests_that_were_signed_before_may_be_repeated() {
        let clock = ServerClock::default();
        let before = clock.offset();
        assert!(clock.corrects(&refused("RequestExpired", 3600), Scheme::Https, before));
        let after = clock.offset();
        assert!(clock.corrects(&refused("RequestExpired", 3600), Scheme::Https, before));
        assert!(!clock.corrects(&refused("RequestExpired", 7200), Scheme::Https, after));
        assert_eq!(clock.offset(), after);
    }
}
