//! Reports host calls to the audit log and `wasm-cpi call`.
//!
//! Every host call is reported except reads of clocks and of `config.call`, which are only counted. One
//! that was in progress when the guest was stopped is reported as well. The audit log has lines for
//! `http.session`, `agent`, `registry` and `image`, and counts the others; `wasm-cpi call` shows all
//! that are reported.

use crate::bindings::bosh::cpi::{agent, image, registry};
use crate::failure::Cause;
use crate::host::GuestState;
use crate::log::{GuestLog, Level};
use crate::net::error::{HttpError, HttpErrorKind};
use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wasm_cpi_checks::{Check, with_code};
use wasm_cpi_policy::DenialReason;

/// A host call that has ended.
#[derive(Clone, Debug)]
pub struct HostCall<'a> {
    /// The interface and the function, for example `registry.get`.
    pub name: &'static str,
    /// What the call is about, in the guest's words, for example a VM's ID; empty if there is nothing to name.
    pub target: &'a str,
    pub outcome: HostCallOutcome,
    /// The check that refused it, if one did.
    pub check: Option<Check>,
    pub elapsed: Duration,
    /// The bytes that the guest sent or got.
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCallOutcome {
    Succeeded,
    /// The gate denied a request or a login. Interfaces without reasons for denials have `Refused`.
    Denied(DenialReason),
    /// It was refused before anything was done. Holds the name of the variant of the WIT error, for
    /// example `invalid`.
    Refused(Cow<'static, str>),
    /// It was tried and failed. Holds the name of the variant of the WIT error.
    Failed(Cow<'static, str>),
}

/// A function that is called when a host call ends.
pub type HostCallObserver = Arc<dyn Fn(&HostCall<'_>) + Send + Sync>;

/// The numbers of host calls that the audit log only counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCallCounts {
    pub config: u64,
    pub log: u64,
    pub clock: u64,
    pub random: u64,
}

/// The cause of the last failed host call, for operators only; empty if it succeeded.
#[derive(Clone, Default)]
pub struct LastFailure(Arc<Mutex<Cause>>);

impl LastFailure {
    fn set(&self, cause: Cause) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = cause;
    }

    pub fn get(&self) -> Cause {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// A host call in progress. It is reported when it ends, or as cancelled when this is dropped.
pub(super) struct PendingHostCall {
    observer: Option<HostCallObserver>,
    /// Where causes go that the guest does not see; `None` in `describe`.
    for_operators: Option<OperatorReport>,
    name: &'static str,
    target: String,
    since: Instant,
}

/// Where the cause of a failure is reported and kept.
struct OperatorReport {
    log: Arc<GuestLog>,
    last_failure: LastFailure,
}

impl GuestState {
    /// Returns a host call that begins now.
    pub(super) fn start_host_call(&self, name: &'static str, target: &str) -> PendingHostCall {
        let observer = self.capabilities.as_ref().and_then(|capabilities| capabilities.observer.clone());
        let target = if observer.is_some() { target.to_owned() } else { String::new() };
        let for_operators = self.capabilities.as_ref().map(|capabilities| OperatorReport {
            log: Arc::clone(&capabilities.log),
            last_failure: capabilities.last_failure.clone(),
        });
        PendingHostCall { observer, for_operators, name, target, since: Instant::now() }
    }
}

impl PendingHostCall {
    /// Reports the answer, and returns it without the check that refused, for the guest.
    pub(super) fn finish<T, E: HostCallError>(
        self,
        answer: Result<T, HostError<E>>,
        bytes: impl Fn(&T) -> usize,
    ) -> Result<T, E> {
        match answer {
            Ok(value) => {
                if let Some(report) = &self.for_operators {
                    report.last_failure.set(Cause::default());
                }
                self.succeed(bytes(&value));
                Ok(value)
            }
            Err(HostError { error, check, cause }) => {
                if let Some(OperatorReport { log, last_failure }) = &self.for_operators {
                    if !cause.text.is_empty() {
                        let text = format!("{}: {}", self.name, cause.text);
                        log.write_runtime_line(Level::Warn, &with_code(&text, check));
                    }
                    last_failure.set(cause);
                }
                self.end(error.outcome(), check, 0);
                Err(error)
            }
        }
    }

    /// Reports a call that cannot fail.
    pub(super) fn succeed(self, bytes: usize) {
        self.end(HostCallOutcome::Succeeded, None, bytes);
    }

    /// Reports a host call that returned early, because the guest's call is ending.
    pub(super) fn cancel(self) {
        self.end(HostCallOutcome::Failed(CANCELLED), None, 0);
    }

    fn end(mut self, outcome: HostCallOutcome, check: Option<Check>, bytes: usize) {
        if let Some(observer) = self.observer.take() {
            let elapsed = self.since.elapsed();
            observer(&HostCall { name: self.name, target: &self.target, outcome, check, elapsed, bytes });
        }
    }
}

impl Drop for PendingHostCall {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.take() {
            let (outcome, elapsed) = (HostCallOutcome::Failed(CANCELLED), self.since.elapsed());
            observer(&HostCall { name: self.name, target: &self.target, outcome, check: None, elapsed, bytes: 0 });
        }
    }
}

const CANCELLED: Cow<'static, str> = Cow::Borrowed("cancelled");

/// An error for the guest, and what the guest does not see: the check that refused, and the cause.
pub(super) struct HostError<E> {
    pub(super) error: E,
    pub(super) check: Option<Check>,
    /// What a server said, for operators; its text is empty if the error says everything.
    pub(super) cause: Cause,
}

impl<E> From<E> for HostError<E> {
    fn from(error: E) -> HostError<E> {
        HostError { error, check: None, cause: Cause::default() }
    }
}

/// An error of an interface that a report can name.
pub(super) trait HostCallError {
    fn outcome(&self) -> HostCallOutcome;
}

fn refused(word: &'static str) -> HostCallOutcome {
    HostCallOutcome::Refused(word.into())
}

fn failed(word: &'static str) -> HostCallOutcome {
    HostCallOutcome::Failed(word.into())
}

impl HostCallError for agent::Error {
    fn outcome(&self) -> HostCallOutcome {
        match self {
            agent::Error::Refused(_) => refused("refused"),
            agent::Error::Registry(_) => failed("registry"),
            agent::Error::Cancelled(_) => HostCallOutcome::Failed(CANCELLED),
        }
    }
}

impl HostCallError for registry::Error {
    fn outcome(&self) -> HostCallOutcome {
        match self {
            registry::Error::Denied(_) => refused("denied"),
            registry::Error::Invalid(_) => refused("invalid"),
            registry::Error::NotFound => failed("not-found"),
            registry::Error::Unavailable(_) => failed("unavailable"),
            registry::Error::Cancelled(_) => HostCallOutcome::Failed(CANCELLED),
        }
    }
}

impl HostCallError for image::Error {
    fn outcome(&self) -> HostCallOutcome {
        match self {
            image::Error::Denied(_) => refused("denied"),
            image::Error::Invalid(_) => refused("invalid"),
            image::Error::Io(_) => failed("io"),
            image::Error::Cancelled(_) => HostCallOutcome::Failed(CANCELLED),
        }
    }
}

impl HostCallError for HttpError {
    fn outcome(&self) -> HostCallOutcome {
        match self.kind {
            HttpErrorKind::Denied(reason) => HostCallOutcome::Denied(reason),
            HttpErrorKind::InvalidRequest | HttpErrorKind::Limit(_) => {
                HostCallOutcome::Refused(self.kind.to_string().into())
            }
            _ => HostCallOutcome::Failed(self.kind.to_string().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_ended_early_is_reported_as_cancelled_and_not_as_a_success() {
        let ends: [fn(PendingHostCall); 3] = [|call| call.succeed(0), PendingHostCall::cancel, drop];
        let reported = ends.map(|end| {
            let outcomes = Arc::new(Mutex::new(Vec::new()));
            let kept = Arc::clone(&outcomes);
            let observer: HostCallObserver = Arc::new(move |call| kept.lock().unwrap().push(call.outcome.clone()));
            let (name, since) = ("clock.sleep", Instant::now());
            end(PendingHostCall { observer: Some(observer), for_operators: None, name, target: String::new(), since });
            outcomes.lock().unwrap().clone()
        });
        let cancelled = vec![HostCallOutcome::Failed(CANCELLED)];
        assert_eq!(reported, [vec![HostCallOutcome::Succeeded], cancelled.clone(), cancelled]);
    }
}
