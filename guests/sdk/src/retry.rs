//! Repeats a request while the cloud throttles it, or does not know yet what was just created. The guest
//! decides by the cloud's error whether that is so:
//!
//! ```
//! use std::time::Duration;
//! use wasm_cpi_sdk::fake::{Answer, Fake};
//! use wasm_cpi_sdk::http::{self, RequestError};
//! use wasm_cpi_sdk::query_api::{self, Operation};
//! use wasm_cpi_sdk::retry::{Repeat, Retry};
//!
//! fn repeat(error: &RequestError) -> Repeat {
//!     match query_api::error_code(error).as_deref() {
//!         Some("RequestLimitExceeded" | "Throttling") => Repeat::Throttled,
//!         Some("InvalidVolume.NotFound") => Repeat::Later,
//!         _ => Repeat::Never,
//!     }
//! }
//!
//! let throttled = "<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>";
//! let host = Fake::new()
//!     .on_operation("DeleteVolume", Answer::xml(503, throttled))
//!     .on_operation("DeleteVolume", Answer::xml(200, "<DeleteVolumeResponse/>"))
//!     .install();
//! let operation = Operation::new("DeleteVolume", "2016-11-15").set("VolumeId", "vol-1");
//! Retry::for_at_most(Duration::from_secs(120))
//!     .run(repeat, || http::post("https://ec2.example/").operation(&operation).send()?.ok())
//!     .unwrap();
//! assert_eq!(host.requests().len(), 2);
//! ```
//!
//! The closure builds and sends one request, without [`http::Request::retries`](crate::http::Request::retries):
//! two counts of retries would multiply. Where [`Repeat::Later`] follows an error after which the request may
//! have been processed, the operation must have the same effect twice, for example because it has a token of
//! [`crate::idempotency`].

use std::time::Duration;

use crate::http::{Cause, RequestError, TransportError};
use crate::{clock, log, random};

/// What the guest decides about a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The error is final.
    Never,
    /// The same request can succeed later.
    Later,
    /// The cloud did not process the request, because there were too many. Pauses are longer then.
    Throttled,
}

/// The pauses and the budget of retries. Each pause is twice as long as the one before, and is shortened by
/// a random part of up to a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The first pause.
    pub first_pause: Duration,
    /// The shortest pause after a request that was throttled.
    pub throttled_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// The time after which a failed request is not repeated, by the clock of the call: requests count, too.
    pub budget: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(500),
            throttled_pause: Duration::from_secs(2),
            longest_pause: Duration::from_secs(30),
            budget: Duration::from_secs(2 * 60),
        }
    }
}

impl Retry {
    /// Returns the default with another budget.
    pub fn for_at_most(budget: Duration) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Calls `send` until it succeeds, `decide` says that its error is final, the budget is used up, or the
    /// call is ending. Returns the last outcome. `decide` is not asked about a request that the host refused,
    /// and about a response that cannot be read: these errors are final.
    pub fn run<T>(
        self,
        decide: impl Fn(&RequestError) -> Repeat,
        mut send: impl FnMut() -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let start = clock::monotonic();
        let mut pause = self.first_pause;
        loop {
            let error = match send() {
                Err(error) if can_succeed_later(&error) => error,
                outcome => return outcome,
            };
            pause = match decide(&error) {
                Repeat::Never => return Err(error),
                Repeat::Later => pause,
                Repeat::Throttled => pause.max(self.throttled_pause),
            };
            let left = self.budget.saturating_sub(clock::monotonic().saturating_sub(start));
            if left.is_zero() {
                log::warn(format_args!("{error}; not repeated again after {} s", self.budget.as_secs()));
                return Err(error);
            }
            let next = random::jittered(pause.min(self.longest_pause)).min(left);
            log::debug(format_args!("{error}; repeating in {} ms", next.as_millis()));
            // A sleep fails if the call is ending: return the error, which has the cloud's message.
            if clock::sleep(next).is_err() {
                return Err(error);
            }
            pause = (pause * 2).min(self.longest_pause);
        }
    }
}

/// Returns true if the same request may have another outcome later.
fn can_succeed_later(error: &RequestError) -> bool {
    match &error.cause {
        Cause::Build(_) | Cause::Decode(_) => false,
        Cause::Status { .. } => true,
        Cause::Transport { kind, .. } => match kind {
            TransportError::Dns
            | TransportError::Connect
            | TransportError::Timeout
            | TransportError::Protocol
            | TransportError::Truncated => true,
            TransportError::Denied(_)
            | TransportError::InvalidRequest
            | TransportError::Limit(_)
            | TransportError::Tls
            | TransportError::Cancelled => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::bosh::cpi::http::Denial;
    use crate::fake::{Answer, Fake, Installed};
    use crate::http;

    const URL: &str = "https://cloud.example/";

    /// Sends a GET. It can succeed after status 404 or 503 and after no response; 503 is throttling.
    fn send(retry: Retry) -> Result<http::Response, RequestError> {
        let decide = |error: &RequestError| match error.status() {
            Some(503) => Repeat::Throttled,
            Some(404) | None => Repeat::Later,
            Some(_) => Repeat::Never,
        };
        retry.run(decide, || http::get(URL).send()?.ok())
    }

    fn answering(statuses: &[u16]) -> Installed {
        let answers = statuses.iter().map(|status| Answer::text(*status, ""));
        answers.fold(Fake::new(), |fake, answer| fake.on("GET", URL, answer)).install()
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_are_shortened_by_at_most_half() {
        for (status, pauses) in [(404, [500, 1000, 2000, 4000, 8000]), (503, [2000, 4000, 8000, 16000, 30000])] {
            let host = answering(&[status, status, status, status, status, 200]);
            send(Retry::default()).unwrap();
            let sleeps = host.sleeps();
            assert_eq!(sleeps.len(), pauses.len());
            for (slept, pause) in sleeps.iter().zip(pauses) {
                assert!((pause / 2..=pause).contains(slept), "{status}: {sleeps:?}");
            }
        }
    }

    #[test]
    fn throttling_makes_the_pauses_longer_from_then_on() {
        let host = answering(&[404, 503, 404, 200]);
        send(Retry::default()).unwrap();
        let sleeps = host.sleeps();
        for (slept, pause) in sleeps.iter().zip([500, 2000, 4000]) {
            assert!((pause / 2..=pause).contains(slept), "{sleeps:?}");
        }
    }

    #[test]
    fn the_budget_counts_time_and_the_last_error_is_returned() {
        let host = answering(&[503]);
        let error = send(Retry::for_at_most(Duration::from_secs(10))).unwrap_err();
        assert_eq!(error.status(), Some(503));
        assert_eq!(host.sleeps().iter().sum::<u64>(), 10_000);
        let (_, last) = host.logs().pop().unwrap();
        assert_eq!(last, "GET https://cloud.example/: the cloud answered 503; not repeated again after 10 s");
    }

    #[test]
    fn a_final_error_and_an_ending_call_end_the_retries() {
        let host = answering(&[503, 400]);
        assert_eq!(send(Retry::default()).unwrap_err().status(), Some(400));
        assert_eq!(host.requests().len(), 2);
        let host = Fake::new().on("GET", URL, Answer::text(503, "")).end_after_ms(500).install();
        assert_eq!(send(Retry::default()).unwrap_err().status(), Some(503));
        assert_eq!(host.requests().len(), 1);
    }

    #[test]
    fn a_response_that_cannot_be_read_is_final() {
        let host = answering(&[200]);
        let sent = || http::get(URL).send()?.ok()?.xml(|root| root.required("a").cloned());
        let error = Retry::default().run(|_| Repeat::Later, sent).unwrap_err();
        assert!(matches!(error.cause, Cause::Decode(_)), "{error}");
        assert_eq!(host.requests().len(), 1);
    }

    #[test]
    fn only_requests_that_can_succeed_later_are_repeated() {
        for (kind, again) in [
            (TransportError::Connect, true),
            (TransportError::Timeout, true),
            (TransportError::Denied(Denial::Host), false),
            (TransportError::InvalidRequest, false),
            (TransportError::Limit("http_requests".into()), false),
            (TransportError::Tls, false),
            (TransportError::Cancelled, false),
        ] {
            let name = format!("{kind:?}");
            let failed = Answer::fail(kind, "failed", false);
            let host = Fake::new().on("GET", URL, failed).on("GET", URL, Answer::text(200, "")).install();
            assert_eq!(send(Retry::default()).is_ok(), again, "{name}");
            assert_eq!(host.requests().len(), if again { 2 } else { 1 }, "{name}");
        }
    }
}
