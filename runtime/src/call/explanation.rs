//! Words the error of a failed call for its caller: the guest's own error, or the reason for its early
//! end, with what the guest did not see and what may have changed.

use crate::bindings::bosh::cpi::types;
use crate::call::execute::{FinishedRun, NoAnswer};
use crate::call::leak::with_leak;
use crate::call::{CallError, Record};
use crate::failure::{Failure, Who};
use crate::log::Level;
use crate::rpc::response::{self, WireError};
use crate::sandbox::call_clock::EndReason;
use serde_json::Value;
use wasm_cpi_checks::Check;

/// Returns the error of a call without an answer: the guest's own error, or the reason for its early end
/// and the requests that may have changed something. Returns `Ok(null)` for the one error of a guest
/// that means success to the Director: a missing stemcell in `delete_stemcell`.
pub(super) fn outcome_without_answer(error: NoAnswer, run: &FinishedRun, record: &Record) -> Result<Value, CallError> {
    let failure = match (error, run.ended.clock.end_reason_with(run.capabilities.gate.leak().as_ref())) {
        (NoAnswer::Guest(error), None) => return error_of_guest(error, run, record),
        (NoAnswer::Guest(error), Some(why)) => {
            let failure = early_end(&why, run);
            Failure {
                message: format!("{}; the guest cleaned up in time and reported: {}", failure.message, error.message),
                ..failure
            }
        }
        (NoAnswer::Stopped(failure), why) => {
            let failure = match &why {
                Some(why) => Failure { detail: failure.detail, ..early_end(why, run) },
                None => failure,
            };
            let again = run.capabilities.gate.leak().is_some_and(|leak| leak.count > 1);
            let stopped = if again {
                "the guest got a second credential while it cleaned up, so it was stopped".to_owned()
            } else {
                format!("the guest did not end within `cleanup_seconds` ({})", run.ended.limits.cleanup_seconds)
            };
            Failure { message: format!("{}; {stopped}", failure.message), ..failure }
        }
        (NoAnswer::Failed(failure), Some(why)) => with_end_reason(failure, &why, run),
        (NoAnswer::Failed(failure), None) => failure,
    };
    let failure = Failure { message: with_hidden_errors(failure.message, run), ..failure };
    let changes = run.capabilities.gate.changes();
    if changes.is_empty() {
        return Err(failure.into());
    }
    let message =
        format!("{}; requests of this call that may have changed something: {}", failure.message, changes.join(", "));
    Err(Failure { message, ..failure }.into())
}

/// Adds the error responses that the guest did not see, because its requests held secrets. They are
/// redacted, and often the only explanation.
fn with_hidden_errors(message: String, run: &FinishedRun) -> String {
    let hidden = run.capabilities.gate.hidden_errors();
    if hidden.is_empty() {
        return message;
    }
    format!("{message}; the guest did not see all of these responses: {}", hidden.join("; "))
}

/// Returns the failure of a call that was asked to end. A leak comes first, and then what the call was ending
/// for already, if it is something else.
fn early_end(why: &EndReason, run: &FinishedRun) -> Failure {
    let failure = with_leak(why.failure(), why, run);
    match run.ended.clock.end_reason().filter(|first| first != why) {
        Some(first) => {
            let message = format!("{}; the call was ending already: {}", failure.message, first.failure().message);
            Failure { message, ..failure }
        }
        None => failure,
    }
}

/// Returns the failure of a call that was already ending. The end reason comes before the failure if it is a leak, or
/// if a limit or the runtime failed afterwards, because it is what the operator has to know.
fn with_end_reason(failure: Failure, why: &EndReason, run: &FinishedRun) -> Failure {
    let first = match (failure.who, why) {
        // The failure is the leak itself.
        (_, EndReason::Leak(_)) if failure.check == Some(Check::Tripwire) => return failure,
        (_, EndReason::Leak(_)) => early_end(why, run),
        (Who::Limit | Who::Runtime, _) => why.failure(),
        _ => return failure,
    };
    Failure { who: first.who, message: format!("{}; then {}", first.message, failure.message), ..failure }
}

/// Adds what would allow the last request that was denied. The guest does not see it, so its error
/// cannot hold it.
fn with_hint(error: WireError, hint: Option<String>) -> WireError {
    match hint {
        Some(hint) => {
            let message = format!("{}; about the last denied request: {hint}", error.message);
            WireError { message, ..error }
        }
        None => error,
    }
}

/// Returns the guest's own error as an error of the protocol, or success for the one error that
/// means success to the Director.
fn error_of_guest(error: types::Error, run: &FinishedRun, record: &Record) -> Result<Value, CallError> {
    let from_director = run.ended.request.request_id.is_some();
    let error = types::Error { message: with_hidden_errors(error.message, run), ..error };
    let Some(error) = response::wire_error_of_guest(error, run.ended.call.method(), from_director) else {
        return Ok(Value::Null);
    };
    record.log.write(Level::Info, &format!("guest: {}: {}", error.kind.name(), error.message));
    Err(CallError::Protocol { who: Who::Guest, error: with_hint(with_cause(error, run), run.capabilities.gate.hint()) })
}

/// Adds the cause of the last failed request to the guest's error. The guest could not do it: it gets
/// only the kind of a failure, because the cause may depend on a secret.
fn with_cause(error: WireError, run: &FinishedRun) -> WireError {
    let (of_request, of_host_call) = (run.capabilities.gate.last_failure(), &run.last_host_call_cause);
    // The gate records a failed login, and so does the host call `http.session` that made it: it is
    // shown once.
    let same_login = of_request.login.is_some() && of_request.login == of_host_call.login;
    let mut causes = vec![of_request.text.as_str()];
    if !same_login {
        causes.push(&of_host_call.text);
    }
    causes.retain(|cause| !cause.is_empty());
    if causes.is_empty() {
        return error;
    }
    let message = format!("{}; the last request that failed: {}", error.message, causes.join("; "));
    WireError { message, ..error }
}
