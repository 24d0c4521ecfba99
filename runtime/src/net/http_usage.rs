//! What a call's requests came to: counts against the limits, what they
//! changed, and when the guest was caught with a secret.

use crate::failure::{Failure, Who};
use crate::limits::Limits;
use crate::net::error::HttpError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wasm_cpi_checks::Check;

/// More than that say no more to anybody.
const MAX_CHANGES: usize = 200;
/// The first leak may be a server that echoes; the second is a guest that tries.
const MAX_LEAKS: u32 = 2;

/// What the requests of a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetUsage {
    pub requests: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

#[derive(Default)]
pub(super) struct HttpUsage(Mutex<State>);

#[derive(Default)]
struct State {
    usage: NetUsage,
    /// Bytes of bodies that count against `http_total_mib`.
    total: u64,
    changes: Vec<Change>,
    /// Requests that may have changed something beyond those.
    more_changes: u64,
    /// Names of secrets that arrived in a slot.
    filled: Vec<String>,
    leaks: u32,
    /// Of the last secret that was found in an answer.
    leaked: String,
}

/// A request that may change something.
struct Change {
    request: String,
    outcome: Outcome,
}

/// What is known of such a request.
pub(super) enum Outcome {
    /// On its way, or never answered: it may have arrived.
    Unanswered,
    Answered(u16),
    NotSent,
}

impl Change {
    /// None if nothing can have come of it.
    fn told(&self) -> Option<String> {
        let request = &self.request;
        match self.outcome {
            Outcome::Unanswered => Some(format!("{request} without an answer")),
            // A gateway that gave up does not know what became of it either.
            Outcome::Answered(status @ (200..=299 | 500..=599)) => Some(format!("{request} -> {status}")),
            Outcome::Answered(_) | Outcome::NotSent => None,
        }
    }
}

impl HttpUsage {
    /// One more request, if there may be one.
    pub(super) fn begin(&self, limits: &Limits) -> Result<(), HttpError> {
        let mut state = self.lock();
        if state.usage.requests >= limits.http_requests {
            return Err(HttpError::limit(
                "http_requests",
                limits.http_requests,
                "the number of HTTP requests of the call",
            ));
        }
        state.usage.requests += 1;
        Ok(())
    }

    /// How many bytes of bodies are left.
    pub(super) fn left(&self, limits: &Limits) -> u64 {
        limits.http_total_mib.saturating_mul(1024 * 1024).saturating_sub(self.lock().total)
    }

    pub(super) fn sent(&self, bytes: u64, counts: bool) {
        let mut state = self.lock();
        state.usage.bytes_sent = state.usage.bytes_sent.saturating_add(bytes);
        state.total = state.total.saturating_add(if counts { bytes } else { 0 });
    }

    pub(super) fn received(&self, bytes: u64) {
        let mut state = self.lock();
        state.usage.bytes_received = state.usage.bytes_received.saturating_add(bytes);
        state.total = state.total.saturating_add(bytes);
    }

    /// A request that may change something is about to be sent; answers its number.
    pub(super) fn changing(&self, request: String) -> usize {
        let mut state = self.lock();
        if state.changes.len() < MAX_CHANGES {
            state.changes.push(Change { request, outcome: Outcome::Unanswered });
            return state.changes.len() - 1;
        }
        state.more_changes += 1;
        MAX_CHANGES
    }

    pub(super) fn changed(&self, number: usize, outcome: Outcome) {
        if let Some(change) = self.lock().changes.get_mut(number) {
            change.outcome = outcome;
        }
    }

    /// A request was carried out, or may have been: which secrets it held.
    pub(super) fn arrived(&self, filled: Vec<String>) {
        let mut state = self.lock();
        for name in filled {
            if !state.filled.contains(&name) {
                state.filled.push(name);
            }
        }
    }

    pub(super) fn leaked(&self, name: &str) {
        let mut state = self.lock();
        state.leaks += 1;
        name.clone_into(&mut state.leaked);
    }

    pub(super) fn ended(&self) -> Option<Failure> {
        let state = self.lock();
        (state.leaks >= MAX_LEAKS && Check::TripwireTwice.on()).then(|| {
            let (leaks, name) = (state.leaks, &state.leaked);
            let what =
                format!("{leaks} answers held secrets (last `{name}`), so that the guest may be fishing for them");
            Failure::new(Who::Policy, format!("{what}; the call was ended: look at what the guest asked for"))
        })
    }

    pub(super) fn usage(&self) -> NetUsage {
        self.lock().usage
    }

    pub(super) fn changes(&self) -> Vec<String> {
        let state = self.lock();
        let mut told: Vec<String> = state.changes.iter().filter_map(Change::told).collect();
        if state.more_changes > 0 {
            told.push(format!("and {} more", state.more_changes));
        }
        told
    }

    pub(super) fn filled(&self) -> Vec<String> {
        self.lock().filled.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_changed_something_is_told_until_it_is_known_that_it_did_not() {
        let record = HttpUsage::default();
        for outcome in [
            Outcome::Answered(201),
            Outcome::Answered(404),
            Outcome::Answered(504),
            Outcome::NotSent,
            Outcome::Unanswered,
        ] {
            let number = record.changing("POST /a".into());
            record.changed(number, outcome);
        }
        record.changing("PUT /b".into());
        let told = ["POST /a -> 201", "POST /a -> 504", "POST /a without an answer", "PUT /b without an answer"]
            .map(String::from);
        assert_eq!(record.changes(), told);
        let last = (0..2 * MAX_CHANGES).map(|_| record.changing("PUT /c".into())).last();
        record.changed(last.unwrap(), Outcome::NotSent);
        assert!(record.changes().len() <= MAX_CHANGES);
        assert_eq!(record.changes().last().unwrap(), "and 206 more");
    }
}
