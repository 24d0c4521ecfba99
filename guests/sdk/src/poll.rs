//! Waits for the cloud: asks, sleeps, and asks again, until there is an answer,
//! the timeout passes, or the call is ending. Each sleep is longer than the one
//! before. [`Poll::with_jitter`] is for APIs that limit the requests of an account: many calls of a
//! deployment wait at the same time.
//!
//! ```
//! use std::time::Duration;
//! use serde_json::{Value, json};
//! use wasm_cpi_sdk::fake::{Answer, Fake};
//! use wasm_cpi_sdk::{http, poll::Poll};
//!
//! const SERVER: &str = "https://cloud.example/servers/s-1";
//!
//! let host = Fake::new()
//!     .on("GET", SERVER, Answer::json(200, json!({"status": "building"})))
//!     .on("GET", SERVER, Answer::json(200, json!({"status": "running"})))
//!     .install();
//! Poll::for_at_most(Duration::from_secs(60))
//!     .until("server `s-1` to run", || {
//!         let server: Value = http::get(SERVER).retries(3).send()?.ok()?.json()?;
//!         Ok((server["status"] == "running").then_some(()))
//!     })
//!     .unwrap();
//! assert_eq!(host.sleeps(), [1000]);
//! ```

use std::time::Duration;

use crate::{Error, clock, random};

/// The pauses and the timeout of a wait. `Poll::default()` suits most waits of
/// seconds to minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The first pause. Each pause is one and a half times the one before.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// True if each pause is a random time, from half of its length up to its length.
    pub jitter: bool,
    /// The time after which the wait fails, by the clock of the call: requests count, too.
    pub timeout: Duration,
    /// What an operator can do about a timeout. It ends the error's message.
    pub remedy: Option<&'static str>,
}

impl Default for Poll {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(15),
            jitter: false,
            timeout: Duration::from_secs(15 * 60),
            remedy: None,
        }
    }
}

impl Poll {
    /// Returns the default with another timeout.
    pub fn for_at_most(timeout: Duration) -> Self {
        Self { timeout, ..Self::default() }
    }

    /// Returns these settings with random pauses.
    #[must_use]
    pub fn with_jitter(self) -> Self {
        Self { jitter: true, ..self }
    }

    /// Calls `ask` until it returns a value. `what` completes the sentence
    /// "waiting for …". Fails at once with an error of `ask`, and with an error
    /// of kind `cloud` when the timeout passes or the call is ending.
    pub fn until<T>(self, what: &str, mut ask: impl FnMut() -> Result<Option<T>, Error>) -> Result<T, Error> {
        let start = clock::monotonic();
        let mut pause = self.first_pause;
        loop {
            if let Some(answer) = ask()? {
                return Ok(answer);
            }
            let waited = clock::monotonic().saturating_sub(start);
            if waited >= self.timeout {
                let remedy = self.remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
                let seconds = waited.as_secs();
                return Err(Error::cloud(format!("timed out after {seconds} s waiting for {what}{remedy}")));
            }
            let next = if self.jitter { random::jittered(pause) } else { pause };
            clock::sleep(next.min(self.timeout - waited))
                .map_err(|cancelled| Error::from(cancelled).context(format_args!("waiting for {what}")))?;
            pause = (pause * 3 / 2).min(self.longest_pause);
        }
    }
}

/// Calls [`Poll::until`] of the default.
pub fn until<T>(what: &str, ask: impl FnMut() -> Result<Option<T>, Error>) -> Result<T, Error> {
    Poll::default().until(what, ask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::fake::Fake;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let host = Fake::new().install();
        let mut left = 10;
        until("a server", || {
            left -= 1;
            Ok((left == 0).then_some(()))
        })
        .unwrap();
        assert_eq!(host.sleeps(), [1000, 1500, 2250, 3375, 5062, 7593, 11390, 15000, 15000]);
    }

    #[test]
    fn jitter_shortens_pauses_by_at_most_half() {
        let host = Fake::new().install();
        let wait =
            || Poll::for_at_most(Duration::from_secs(60)).with_jitter().until("x", || Ok(None::<()>)).unwrap_err();
        assert_eq!(wait().message, "timed out after 60 s waiting for x");
        let first = host.sleeps();
        for (slept, pause) in first.iter().zip([1000, 1500, 2250, 3375]) {
            assert!((pause / 2..=pause).contains(slept), "{first:?}");
        }
        wait();
        assert_ne!(host.sleeps()[first.len()..][..4], first[..4]);
    }

    #[test]
    fn an_immediate_answer_causes_no_sleep() {
        let host = Fake::new().install();
        assert_eq!(until("a server", || Ok(Some(7))), Ok(7));
        assert!(host.sleeps().is_empty());
    }

    #[test]
    fn a_timeout_fails_after_asking_a_last_time_and_names_the_remedy() {
        let host = Fake::new().install();
        let mut asked = 0;
        let error = Poll { remedy: Some("raise `x`"), ..Poll::for_at_most(Duration::from_secs(4)) }
            .until("disk `d` to attach", || {
                asked += 1;
                Ok(None::<()>)
            })
            .unwrap_err();
        assert_eq!(error.message, "timed out after 4 s waiting for disk `d` to attach; raise `x`");
        assert_eq!((asked, host.sleeps()), (4, vec![1000, 1500, 1500]));
    }

    #[test]
    fn a_cancelled_sleep_becomes_an_error() {
        let _host = Fake::new().end_after_ms(2000).install();
        let error = until("a server", || Ok(None::<()>)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cloud);
        assert!(error.message.starts_with("waiting for a server: the call is ending"), "{error}");
    }

    #[test]
    fn an_error_of_ask_ends_the_wait() {
        let _host = Fake::new().install();
        assert_eq!(until("x", || Err::<Option<()>, _>(Error::vm_not_found("v"))), Err(Error::vm_not_found("v")));
    }
}
