//! What is recorded of the HTTP requests of a call: counters for the limits, requests that may
//! have changed something, delivered secrets, and leaks.

mod change;

use crate::failure::Cause;
use crate::limits::Limits;
use crate::net::error::HttpError;
use change::Change;
pub(super) use change::Outcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasm_cpi_checks::Check;

/// The number of changes that are listed; further ones are only counted.
const MAX_CHANGES: usize = 200;
/// The number of hidden error responses that are kept: the last ones explain a failure best.
const MAX_HIDDEN: usize = 3;

/// The number of requests of a call, and the sizes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpCounts {
    pub requests: u64,
    /// Blocks of uploads, which do not count as requests.
    pub blocks: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

/// The record of the HTTP requests of a call.
#[derive(Clone, Default)]
pub(super) struct HttpRecord(Arc<Mutex<RecordState>>);

/// Bytes of a body that count against `http_total_mib`. They count no longer if the request is not sent.
pub(super) struct Reservation {
    record: HttpRecord,
    bytes: u64,
    used: AtomicBool,
}

impl Reservation {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lets the bytes count for good. Returns false if they did already.
    pub(super) fn use_up(&self) -> bool {
        !self.used.swap(true, Ordering::Relaxed)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.use_up() {
            let mut state = self.record.lock();
            state.total = state.total.saturating_sub(self.bytes);
        }
    }
}

#[derive(Default)]
struct RecordState {
    counts: HttpCounts,
    /// Bytes of bodies that count against `http_total_mib`.
    total: u64,
    changes: Vec<Change>,
    /// The number of changes that are not in the list.
    more_changes: u64,
    /// Names of the secrets that a server received in a slot, or may have received.
    delivered: Vec<String>,
    /// What would allow the last request that was denied.
    hint: Option<String>,
    /// Error responses that the guest did not see, redacted.
    hidden: Vec<String>,
    leak: Option<Leak>,
    /// The cause of the last failure, for operators.
    last_failure: Cause,
}

impl RecordState {
    /// Returns how many bytes of bodies the call may still send and receive.
    fn bytes_left(&self, limits: &Limits) -> u64 {
        limits.http_total_mib.saturating_mul(1024 * 1024).saturating_sub(self.total)
    }
}

/// A response that held a credential and was withheld.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The name of the credential.
    pub secret: String,
    /// What held it, for example `the response to GET https://…`.
    pub place: String,
    /// The number of responses of this call that held a credential.
    pub count: u32,
}

impl HttpRecord {
    /// Counts a request, or rejects it if the limit is reached.
    pub(super) fn start_request(&self, limits: &Limits) -> Result<(), HttpError> {
        let mut state = self.lock();
        if state.counts.requests >= limits.http_requests {
            return Err(HttpError::limit(
                "http_requests",
                limits.http_requests,
                "the number of HTTP requests of the call",
            ));
        }
        state.counts.requests += 1;
        Ok(())
    }

    /// Rejects an upload in so many blocks if they would exceed the limit together with those that were sent.
    pub(super) fn expect_room_for_blocks(&self, count: u64, limits: &Limits) -> Result<(), HttpError> {
        if self.lock().counts.blocks.saturating_add(count) > limits.http_blocks {
            return Err(HttpError::limit("http_blocks", limits.http_blocks, "the number of blocks of the call"));
        }
        Ok(())
    }

    /// Counts a block that is sent.
    pub(super) fn count_block(&self) {
        self.lock().counts.blocks += 1;
    }

    /// Counts the body of a request before it is sent, so that requests which are sent at once cannot exceed the
    /// limit together. Returns `None` if the limit is reached.
    pub(super) fn reserve(&self, bytes: u64, limits: &Limits) -> Option<Reservation> {
        let mut state = self.lock();
        (bytes <= state.bytes_left(limits)).then(|| {
            state.total = state.total.saturating_add(bytes);
            Reservation { record: self.clone(), bytes, used: AtomicBool::new(false) }
        })
    }

    /// Records a request of which logs show `reported` bytes and `counted` bytes count against the
    /// limit.
    pub(super) fn record_sent(&self, reported: u64, counted: u64) {
        let mut state = self.lock();
        state.counts.bytes_sent = state.counts.bytes_sent.saturating_add(reported);
        state.total = state.total.saturating_add(counted);
    }

    pub(super) fn record_received(&self, bytes: u64) {
        let mut state = self.lock();
        state.counts.bytes_received = state.counts.bytes_received.saturating_add(bytes);
    }

    /// Counts the body of a response against the limit: as many bytes as the guest gets, because
    /// what was captured or removed would otherwise be measured. Returns false if the limit is reached.
    pub(super) fn count_response(&self, shown: u64, received: u64, limits: &Limits) -> bool {
        let counted = Check::CountedResponses.choose(shown, received);
        let mut state = self.lock();
        let left = state.bytes_left(limits);
        state.total = state.total.saturating_add(counted);
        counted <= left
    }

    /// Records a request that may change something before it is sent. Returns its number.
    pub(super) fn record_change(&self, request: String) -> usize {
        let mut state = self.lock();
        if state.changes.len() < MAX_CHANGES {
            state.changes.push(Change { request, outcome: Outcome::Unanswered });
            return state.changes.len() - 1;
        }
        state.more_changes += 1;
        MAX_CHANGES
    }

    pub(super) fn record_outcome(&self, number: usize, outcome: Outcome) {
        if let Some(change) = self.lock().changes.get_mut(number) {
            change.outcome = outcome;
        }
    }

    /// Records the secrets of a request that was handled, or may have been.
    pub(super) fn record_delivered(&self, secret_names: &[String]) {
        let mut state = self.lock();
        for name in secret_names {
            if !state.delivered.contains(name) {
                state.delivered.push(name.clone());
            }
        }
    }

    /// Keeps the last error responses that the guest did not see. Repetitions count once.
    pub(super) fn record_hidden(&self, response: String) {
        let mut state = self.lock();
        state.hidden.retain(|known| *known != response);
        state.hidden.push(response);
        if state.hidden.len() > MAX_HIDDEN {
            state.hidden.remove(0);
        }
    }

    pub(super) fn hidden_errors(&self) -> Vec<String> {
        self.lock().hidden.clone()
    }

    /// Records a leak and returns it. The first one of a call is kept.
    pub(super) fn record_leak(&self, secret: &str, place: String) -> Leak {
        let mut state = self.lock();
        let first = state.leak.take().unwrap_or(Leak { secret: secret.to_owned(), place, count: 0 });
        let leak = Leak { count: first.count + 1, ..first };
        state.leak = Some(leak.clone());
        leak
    }

    pub(super) fn leak(&self) -> Option<Leak> {
        self.lock().leak.clone()
    }

    /// Keeps why the last request failed, or that it succeeded, because the guest's message does not tell the cause.
    /// Keeps the hint until another request is denied.
    pub(super) fn record_end(&self, error: Option<&HttpError>) {
        let mut state = self.lock();
        state.last_failure = error.map(HttpError::cause).unwrap_or_default();
        if let Some(hint) = error.and_then(|error| error.hint.clone()) {
            state.hint = Some(hint);
        }
    }

    pub(super) fn last_failure(&self) -> Cause {
        self.lock().last_failure.clone()
    }

    pub(super) fn hint(&self) -> Option<String> {
        self.lock().hint.clone()
    }

    pub(super) fn counts(&self) -> HttpCounts {
        self.lock().counts
    }

    pub(super) fn changes(&self) -> Vec<String> {
        let state = self.lock();
        let mut described: Vec<String> = state.changes.iter().filter_map(Change::describe).collect();
        if state.more_changes > 0 {
            described.push(format!("and {} more", state.more_changes));
        }
        described
    }

    pub(super) fn delivered(&self) -> Vec<String> {
        self.lock().delivered.clone()
    }

    fn lock(&self) -> MutexGuard<'_, RecordState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_listed_unless_the_outcome_shows_that_nothing_changed() {
        let record = HttpRecord::default();
        for outcome in [
            Outcome::Answered(201),
            Outcome::Answered(404),
            Outcome::Answered(504),
            Outcome::NotSent,
            Outcome::Unanswered,
            Outcome::Incomplete(3),
        ] {
            let number = record.record_change("POST /a".into());
            record.record_outcome(number, outcome);
        }
        record.record_change("PUT /b".into());
        let expected = [
            "POST /a -> 201",
            "POST /a -> 504",
            "POST /a without a response",
            "POST /a, of which 3 were accepted",
            "PUT /b without a response",
        ]
        .map(String::from);
        assert_eq!(record.changes(), expected);
        let mut last = 0;
        for _ in 0..2 * MAX_CHANGES {
            last = record.record_change("PUT /c".into());
        }
        record.record_outcome(last, Outcome::NotSent);
        assert!(record.changes().len() <= MAX_CHANGES);
        assert_eq!(record.changes().last().unwrap(), "and 207 more");
    }
}
