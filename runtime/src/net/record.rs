//! What a call's requests came to: counts against the limits, what they
//! changed, and when the guest was caught with a secret.

use crate::failure::{Failure, Who};
use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// One request for logs: no query, no header, no body, no secret.
#[derive(Clone, Debug)]
pub struct HttpEvent {
    pub method: String,
    /// Origin and path; empty if the URL was none.
    pub target: String,
    /// The grant that allowed it, or `login NAME`.
    pub grant: Option<String>,
    pub outcome: Result<u16, HttpErrorKind>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub elapsed: Duration,
}

impl fmt::Display for HttpEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.method, self.target)?;
        match &self.outcome {
            Ok(status) => write!(f, "{status}")?,
            Err(kind) => write!(f, "{kind}")?,
        }
        let grant = self.grant.as_deref().unwrap_or("no grant");
        let ms = self.elapsed.as_secs_f64() * 1000.0;
        write!(f, " ({grant}; {} B out, {} B in, {ms:.1} ms)", self.bytes_sent, self.bytes_received)
    }
}

#[derive(Default)]
pub(super) struct Record(Mutex<State>);

#[derive(Default)]
struct State {
    usage: NetUsage,
    /// Bytes of bodies that count against `http_total_mib`.
    total: u64,
    changes: Vec<String>,
    /// Names of secrets that arrived in a slot.
    filled: Vec<String>,
    leaks: u32,
    /// Of the last secret that was found in an answer.
    leaked: String,
}

impl Record {
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

    /// A request was answered with 2xx: what it changed, and which secrets it held.
    pub(super) fn succeeded(&self, change: Option<String>, filled: Vec<String>) {
        let mut state = self.lock();
        if state.changes.len() < MAX_CHANGES {
            state.changes.extend(change);
        }
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
        (state.leaks >= MAX_LEAKS).then(|| {
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
        self.lock().changes.clone()
    }

    pub(super) fn filled(&self) -> Vec<String> {
        self.lock().filled.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
