//! The clock of a call, and its early end in two stages.
//!
//! When a deadline passes, a signal arrives, the caller is gone or a credential leaks, the guest is
//! asked to end: waiting host calls return `cancelled`, and the guest has `cleanup_seconds` to undo
//! its changes. Only then is it stopped. A guest that is stopped at once in the middle of
//! `create_vm` would leave a VM behind.

use crate::failure::{Failure, Who};
use crate::leak_message;
use crate::limits::{Limits, NamedLimit};
use crate::net::gate::Leak;
use crate::rpc::method::Method;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use wasm_cpi_checks::{Check, RefusedBy};

/// The reason why a call ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    Limit(NamedLimit),
    Signal(&'static str),
    /// Stdout has no reader any more, so no response can be delivered.
    CallerGone,
    /// A response held a credential.
    Leak(Failure),
}

impl EndReason {
    /// Returns the failure that the operator gets.
    pub fn failure(&self) -> Failure {
        match self {
            EndReason::Limit(NamedLimit { name, value }) => Failure::limit(name, value, "the call"),
            EndReason::Signal(name) => Failure::new(Who::Runtime, format!("{name} ended the call")),
            EndReason::CallerGone => {
                Failure::new(Who::Runtime, "the call was ended, because its caller closed stdout before the response")
            }
            EndReason::Leak(failure) => failure.clone(),
        }
    }
}

/// Returns the failure of a call in which a response held a credential.
fn leak_failure(leak: &Leak) -> Failure {
    Failure::new(Who::Policy, leak_message::ended_call(&leak.place, &leak.secret)).refused_by(Check::Tripwire)
}

/// The text that a guest gets when its call ends early. It is the same for every reason, because some
/// reasons depend on a secret; the operator gets the reason.
pub const ENDING: &str = "the call is ending: undo what is unfinished, and return";

/// The error that stops the guest when its time for cleaning up is over.
#[derive(Debug, thiserror::Error)]
#[error("the time for cleaning up is over")]
pub struct CleanupOver;

/// The clock of a call from its start, and the request to end it early.
pub struct CallClock {
    wall_limit: NamedLimit,
    started: Instant,
    wall_deadline: Instant,
    cleanup: Duration,
    /// False if neither a signal nor a lost caller ends it early.
    interruptible: bool,
    requested: Mutex<Option<(EndReason, Instant)>>,
    changed: Notify,
}

impl CallClock {
    /// Starts the clock of a call.
    pub fn new(limits: &Limits, method: Method) -> CallClock {
        let (name, value) = match method {
            Method::CreateStemcell => ("create_stemcell_wall_seconds", limits.create_stemcell_wall_seconds),
            _ => ("wall_seconds", limits.wall_seconds),
        };
        CallClock::start(NamedLimit { name, value }, Duration::from_secs(limits.cleanup_seconds), true)
    }

    /// Starts the clock of a call that deletes what an earlier one created. It has `cleanup_seconds`
    /// in all, and no second stage. What ended the earlier call does not end this one.
    pub fn of_undo(limits: &Limits) -> CallClock {
        let wall_limit = NamedLimit { name: "cleanup_seconds", value: limits.cleanup_seconds };
        CallClock::start(wall_limit, Duration::ZERO, false)
    }

    fn start(wall_limit: NamedLimit, cleanup: Duration, interruptible: bool) -> CallClock {
        let started = Instant::now();
        CallClock {
            started,
            wall_deadline: started + Duration::from_secs(wall_limit.value),
            wall_limit,
            cleanup,
            interruptible,
            requested: Mutex::new(None),
            changed: Notify::new(),
        }
    }

    /// Returns the limit of the wall time.
    pub fn wall_limit(&self) -> NamedLimit {
        self.wall_limit
    }

    /// Returns how long the call has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Asks the guest to end. Only the first reason is kept.
    pub fn request_end(&self, reason: EndReason) {
        let mut requested = self.lock();
        if requested.is_none() {
            *requested = Some((reason, Instant::now()));
            self.changed.notify_waiters();
        }
    }

    /// Ends the time for cleaning up, so that the guest is stopped at once.
    pub fn stop(&self) {
        let mut requested = self.lock();
        if let Some((_, since)) = requested.as_mut() {
            // The clock may not have run for as long as the cleanup would take.
            *since = Instant::now().checked_sub(self.cleanup).unwrap_or(self.started);
            self.changed.notify_waiters();
        }
    }

    /// Asks the guest to end, because a response held a credential.
    pub fn request_end_after_leak(&self, leak: &Leak) {
        self.request_end(EndReason::Leak(leak_failure(leak)));
    }

    /// Asks the guest to end, because a response held a credential. Stops it at once, and never
    /// returns, if that is repeated while it cleans up: it could otherwise continue to guess.
    pub async fn end_after_leak(&self, leak: &Leak, is_repeated: bool) {
        self.request_end_after_leak(leak);
        if Check::TripwireTwice.refuses(is_repeated) {
            self.stop();
            std::future::pending::<()>().await;
        }
    }

    /// Returns true if signals and a lost caller end the call early.
    pub fn is_interruptible(&self) -> bool {
        self.interruptible
    }

    pub fn request_end_if_wall_time_is_over(&self) {
        if Instant::now() >= self.wall_deadline {
            self.request_end(EndReason::Limit(self.wall_limit));
        }
    }

    /// Returns the reason for the early end, if the call is ending.
    pub fn end_reason(&self) -> Option<EndReason> {
        self.lock().as_ref().map(|(reason, _)| reason.clone())
    }

    /// Returns the reason for the early end. A leak counts first: the call may have been ending for another reason
    /// when a credential leaked, and its result must not be returned then.
    pub fn end_reason_with(&self, leak: Option<&Leak>) -> Option<EndReason> {
        leak.map(|leak| EndReason::Leak(leak_failure(leak))).or_else(|| self.end_reason())
    }

    /// Returns the text that host functions fail with, if the call is ending.
    pub fn message_for_guest(&self) -> Option<String> {
        let requested = self.lock();
        #[cfg(feature = "mutation-testing")]
        if let Some((reason, _)) = requested.as_ref().filter(|_| Check::EndingWords.is_off()) {
            return Some(super::mutants::reason_for_guest(reason));
        }
        requested.as_ref().map(|_| ENDING.to_owned())
    }

    /// Returns the deadline of a host call: the end of the wall time, or of the cleanup.
    pub fn deadline(&self) -> Instant {
        match *self.lock() {
            Some((_, since)) => since + self.cleanup,
            None => self.wall_deadline,
        }
    }

    /// Returns the time when the guest is stopped.
    pub fn hard_deadline(&self) -> Instant {
        match *self.lock() {
            Some((_, since)) => since + self.cleanup,
            None => self.wall_deadline + self.cleanup,
        }
    }

    /// Resolves when the guest is asked to end.
    pub async fn end_requested(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.lock().is_some() {
                return;
            }
            changed.await;
        }
    }

    /// Resolves when an HTTP request that is in progress must be abandoned, so that there is time
    /// left to undo it: after half of the cleanup time.
    pub async fn until_request_must_end(&self) {
        self.end_requested().await;
        let since = self.lock().as_ref().map_or_else(Instant::now, |(_, since)| *since);
        tokio::time::sleep_until((since + self.cleanup / 2).into()).await;
    }

    /// Resolves when an upload of an image that is in progress must be abandoned: at once.
    pub async fn until_upload_must_end(&self) {
        self.end_requested().await;
    }

    /// Resolves when the guest must be stopped.
    pub async fn cleanup_over(&self) {
        self.end_requested().await;
        loop {
            let changed = self.changed.notified();
            tokio::select! {
                () = tokio::time::sleep_until(self.hard_deadline().into()) => return,
                () = changed => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(EndReason, Instant)>> {
        self.requested.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_decides_about_the_result_whatever_ended_the_call_first() {
        let clock = CallClock::new(&Limits::default(), Method::HasVm);
        let leak = Leak { secret: "password".into(), place: "the response to GET https://a.test/".into(), count: 1 };
        assert_eq!(clock.end_reason_with(None), None);
        clock.request_end(EndReason::Signal("SIGTERM"));
        assert_eq!(clock.end_reason_with(None), Some(EndReason::Signal("SIGTERM")));
        let Some(EndReason::Leak(failure)) = clock.end_reason_with(Some(&leak)) else { panic!("the call succeeds") };
        assert_eq!(failure.check, Some(Check::Tripwire));
        assert!(failure.message.contains("held the credential `password`"), "{failure}");
    }
}
