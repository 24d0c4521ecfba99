//! Waiting for the cloud: asks, sleeps longer each time, asks again, until
//! there is an answer, the time is up, or the call is ending.

use std::time::Duration;

use crate::{Error, clock};

/// How to wait. `Poll::default()` suits most things that take seconds to
/// minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The first pause; each next one is half as long again.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// When to give up.
    pub timeout: Duration,
}

impl Default for Poll {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(15), timeout: Duration::from_secs(15 * 60) }
    }
}

impl Poll {
    /// The default, with another timeout.
    pub fn for_at_most(timeout: Duration) -> Self {
        Self { timeout, ..Self::default() }
    }

    /// Calls `ask` until it answers something. `what` completes the sentence
    /// "waiting for …". Ends early with `ask`'s error, and with an error of
    /// kind `cloud` when the time is up or the call is ending.
    pub fn until<T>(self, what: &str, mut ask: impl FnMut() -> Result<Option<T>, Error>) -> Result<T, Error> {
        let start = clock::monotonic();
        let mut pause = self.first;
        loop {
            if let Some(answer) = ask()? {
                return Ok(answer);
            }
            let waited = clock::monotonic().saturating_sub(start);
            if waited >= self.timeout {
                return Err(Error::cloud(format!("waited {} s for {what} and gave up", waited.as_secs())));
            }
            clock::sleep(pause.min(self.timeout - waited))
                .map_err(|cancelled| Error::from(cancelled).context(format_args!("waiting for {what}")))?;
            pause = (pause * 3 / 2).min(self.longest);
        }
    }
}

/// [`Poll::until`] with the default pauses.
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
    fn an_answer_at_once_takes_no_time() {
        let host = Fake::new().install();
        assert_eq!(until("a server", || Ok(Some(7))), Ok(7));
        assert!(host.sleeps().is_empty());
    }

    #[test]
    fn it_gives_up_when_the_time_is_up_and_asks_a_last_time_then() {
        let host = Fake::new().install();
        let mut asked = 0;
        let error = Poll::for_at_most(Duration::from_secs(4))
            .until("disk `d` to attach", || {
                asked += 1;
                Ok(None::<()>)
            })
            .unwrap_err();
        assert_eq!(error.message, "waited 4 s for disk `d` to attach and gave up");
        assert_eq!((asked, host.sleeps()), (4, vec![1000, 1500, 1500]));
    }

    #[test]
    fn a_cancelled_sleep_becomes_an_error_that_says_why() {
        let _host = Fake::new().end_after_ms(2000, "wall_seconds is used up").install();
        let error = until("a server", || Ok(None::<()>)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cloud);
        assert_eq!(error.message, "waiting for a server: the call was cut short: wall_seconds is used up");
    }

    #[test]
    fn an_error_of_the_question_ends_it() {
        let _host = Fake::new().install();
        assert_eq!(until("x", || Err::<Option<()>, _>(Error::vm_not_found("v"))), Err(Error::vm_not_found("v")));
    }
}
