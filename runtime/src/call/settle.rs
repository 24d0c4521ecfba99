//! Sixth step: checks the answer, removes registry settings that must not stay, and explains an
//! early end.

use crate::audit::Used;
use crate::bindings::bosh::cpi::types;
use crate::call::authorise::forget_command;
use crate::call::execute::Executed;
use crate::call::invoke::InvokeError;
use crate::call::undo::Created;
use crate::call::{CallError, Record};
use crate::failure::{Failure, Who};
use crate::limits::Limits;
use crate::log::{Level, escape};
use crate::rpc::answer::{Answer, with_cid};
use crate::rpc::method::Method;
use crate::rpc::response::WireError;
use crate::rpc::shape;
use crate::sandbox::ending::EndReason;
use serde_json::Value;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::AGENT;
use wasm_cpi_policy::strict_json;

/// The result of a call, and what its guest used.
pub struct Settled {
    pub result: Result<Value, CallError>,
    /// Absent if no guest ran.
    pub used: Option<Used>,
    /// What the call created, in case that the caller does not get the result.
    pub created: Option<Created>,
}

impl Settled {
    /// Returns a result for which no guest ran.
    pub fn without_guest(result: Value) -> Settled {
        Settled { result: Ok(result), used: None, created: None }
    }

    /// Returns the error of a call that failed before or without its guest.
    pub fn failed(error: CallError) -> Settled {
        Settled { result: Err(error), used: None, created: None }
    }
}

/// Turns the guest's answer into the caller's result.
pub fn settle(mut executed: Executed, record: &Record) -> Settled {
    let answer = std::mem::replace(&mut executed.answer, Ok(Answer::Nothing));
    let accepted = answer.and_then(|answer| Ok(accept(answer, &executed, record)?));
    let accepted = match executed.call.method() {
        Method::CreateVm => finish_create_vm(accepted, &executed, record),
        _ => accepted,
    };
    let (result, created) = match accepted {
        Ok(Accepted { created, result }) => (Ok(result), created),
        Err(error) => (error_for_caller(error, &executed, record), None),
    };
    let Executed { used, limits, call, gate, agent, ending, store, sandbox, .. } = executed;
    let created = match created {
        Some(cid) => Some(Created::new(cid, &call, &gate, store.data().host.as_ref(), agent, sandbox, limits)),
        None => {
            // The process ends after this call, so dropping it would only delay the response.
            std::mem::forget(sandbox);
            None
        }
    };
    std::mem::forget(store);
    Settled { result, used: Some(Used { wall: ending.elapsed(), ..used }), created }
}

/// An answer that may be returned to the caller.
struct Accepted {
    /// The cloud ID of what was created.
    created: Option<String>,
    /// The result in the form of the caller's API version.
    result: Value,
}

fn accept(answer: Answer, executed: &Executed, record: &Record) -> Result<Accepted, Failure> {
    let created = answer.created().map(str::to_owned);
    let result = answer.for_caller(executed.request.api_version);
    check_size(&result, &executed.limits).map_err(|failure| match &created {
        Some(cid) => with_cid(failure, cid),
        None => failure,
    })?;
    check_for_secrets(&result, executed, record)?;
    match executed.ending.reason() {
        Some(why @ EndReason::Abort(_)) => Err(with_leak(why.failure(), &why, executed)),
        // An answer in the cleanup time counts: what it names exists, so the caller must know it.
        _ => Ok(Accepted { created, result }),
    }
}

/// Rejects a result that is too large, or nested too deeply for Ruby's parser.
fn check_size(result: &Value, limits: &Limits) -> Result<(), Failure> {
    if strict_json::depth(result) as u64 > limits.result_depth {
        return Err(Failure::limit("result_depth", limits.result_depth, "the nesting of the guest's result"));
    }
    if result.to_string().len() as u64 > limits.result_kib * 1024 {
        return Err(Failure::limit("result_kib", limits.result_kib, "the guest's result"));
    }
    Ok(())
}

/// Rejects a result that holds a secret, because it reaches the Director's database and logs.
/// The secret is not replaced, because a changed cloud ID could not be deleted any more.
fn check_for_secrets(result: &Value, executed: &Executed, record: &Record) -> Result<(), Failure> {
    Check::ResultWithheld.reject(record.vault.leak_in(result.to_string().as_bytes()), |name| {
        record.audit.result_leak(&name);
        let latch = executed.latch.as_ref().map(|latch| latch.record(&name, "the result"));
        let then = match latch {
            None => String::new(),
            Some(Ok(())) => after_leak(executed),
            Some(Err(error)) => format!("; that later calls must be refused could not be recorded ({error})"),
        };
        let remedy = "remove the place that holds it from answers with `drop` of the grant, or capture it with `captures`; \
                      only if it is not a secret, list it under `expose`";
        let what = format!("the result was withheld, because it holds the credential `{name}`; {remedy}{then}");
        Failure::guest(what)
    })
}

/// Says what follows for later calls.
fn after_leak(executed: &Executed) -> String {
    let command = forget_command(&executed.source);
    format!("; further calls of this module are refused until you have looked at this and run `{command}`")
}

/// Adds to the failure of a call that ends because of a leak what follows for later calls.
fn with_leak(failure: Failure, why: &EndReason, executed: &Executed) -> Failure {
    let leaked = matches!(why, EndReason::Abort(_)) && executed.gate.leak().is_some();
    if !leaked || executed.latch.is_none() {
        return failure;
    }
    Failure { message: format!("{}{}", failure.message, after_leak(executed)), ..failure }
}

/// Rejects a VM that cannot be reached, and removes the registry's settings of VMs that are
/// not returned.
fn finish_create_vm(
    accepted: Result<Accepted, InvokeError>,
    executed: &Executed,
    record: &Record,
) -> Result<Accepted, InvokeError> {
    let accepted = accepted.and_then(|accepted| {
        check_reachable(accepted.created.as_deref().unwrap_or_default(), executed)?;
        Ok(accepted)
    });
    let returned = accepted.as_ref().ok().and_then(|accepted| accepted.created.as_deref());
    let deadline = executed.ending.hard_deadline();
    let left = executed.sandbox.runtime.block_on(executed.agent.finish(returned, deadline))?;
    left.iter().for_each(|what| record.log.write(Level::Warn, what));
    accepted
}

/// Rejects a VM whose user-data was never sent, if a grant has a slot for it.
fn check_reachable(cid: &str, executed: &Executed) -> Result<(), Failure> {
    let Executed { policy, gate, agent, .. } = executed;
    let has_slot =
        policy.http.iter().any(|grant| grant.slots.iter().any(|slot| slot.takes.iter().any(|name| name == AGENT)));
    let sent = gate.delivered_secrets().iter().any(|name| name == AGENT);
    Check::VmUnreachable.ensure(!has_slot || sent, || {
        let how = if agent.bootstrap_seals().is_empty() {
            "without calling `agent.bootstrap`"
        } else {
            "without sending the user-data of `agent.bootstrap`"
        };
        let why = "the VM's Agent could never be reached; a bug in the guest";
        Failure::guest(format!("create_vm made `{}` {how}: {why}", escape(cid, 255)))
    })
}

/// Returns why the call failed: the guest's own error, or the reason for its early end and the
/// requests that may have changed something.
fn error_for_caller(error: InvokeError, executed: &Executed, record: &Record) -> Result<Value, CallError> {
    let failure = match (error, executed.ending.reason()) {
        (InvokeError::Guest(error), None) => return guest_error(error, executed, record),
        (InvokeError::Guest(error), Some(why)) => {
            let failure = with_leak(why.failure(), &why, executed);
            Failure {
                message: format!("{}; the guest ended in time and reported: {}", failure.message, error.message),
                ..failure
            }
        }
        (InvokeError::Stopped(failure), why) => {
            let failure = match &why {
                Some(why) => with_leak(failure, why, executed),
                None => failure,
            };
            let again = executed.gate.leak().is_some_and(|leak| leak.count > 1);
            let stopped = if again {
                "the guest got another one while it cleaned up, so it was stopped".to_owned()
            } else {
                format!("the guest did not end by itself within cleanup_seconds ({})", executed.limits.cleanup_seconds)
            };
            Failure { message: format!("{}; {stopped}", failure.message), ..failure }
        }
        (InvokeError::Failure(failure), Some(why)) => with_end_reason(failure, &why),
        (InvokeError::Failure(failure), None) => failure,
    };
    let failure = Failure { message: with_hidden_errors(failure.message, executed), ..failure };
    let changes = executed.gate.changes();
    if changes.is_empty() {
        return Err(failure.into());
    }
    let message =
        format!("{}; requests of this call that may have changed something: {}", failure.message, changes.join(", "));
    Err(Failure { message, ..failure }.into())
}

/// Adds the error answers that the guest did not see, because its requests held secrets. They are
/// redacted, and often the only explanation.
fn with_hidden_errors(message: String, executed: &Executed) -> String {
    let hidden = executed.gate.hidden_errors();
    if hidden.is_empty() {
        return message;
    }
    format!("{message}; the guest did not see all of: {}", hidden.join("; "))
}

/// Returns the failure of a call that was already ending. The reason for that comes first if the
/// guest then reached a limit or the runtime failed, because it is what the operator has to know.
fn with_end_reason(failure: Failure, why: &EndReason) -> Failure {
    match (failure.who, why) {
        (Who::Limit | Who::Runtime, EndReason::Limit { .. } | EndReason::Signal(_) | EndReason::CallerGone) => {
            let first = why.failure();
            Failure { who: first.who, message: format!("{}; then {}", first.message, failure.message), ..failure }
        }
        _ => failure,
    }
}

/// Adds what would allow the last request that was denied. The guest does not see it, so its error
/// cannot hold it.
fn with_hint(error: WireError, hint: Option<String>) -> WireError {
    match hint {
        Some(hint) => {
            let message = format!("{}; wasm-cpi on the last request that was denied: {hint}", error.message);
            WireError { message, ..error }
        }
        None => error,
    }
}

/// Returns the guest's own error as an error of the protocol, or success for the one error that
/// means success to the Director.
fn guest_error(error: types::Error, executed: &Executed, record: &Record) -> Result<Value, CallError> {
    let from_director = executed.request.request_id.is_some();
    let error = types::Error { message: with_hidden_errors(error.message, executed), ..error };
    let Some(error) = shape::guest_error(error, executed.call.method(), from_director) else {
        return Ok(Value::Null);
    };
    record.log.write(Level::Info, &format!("guest: {}: {}", error.kind.name(), error.message));
    Err(CallError::Wire { who: Who::Guest, error: with_hint(with_cause(error, executed), executed.gate.hint()) })
}

/// Adds the cause of the last failed request to the guest's error. The guest could not do it: it gets
/// only the kind of a failure, because the cause may depend on a secret.
fn with_cause(error: WireError, executed: &Executed) -> WireError {
    // A login is made for a request or for `http.session`, which is also a host call.
    let cause = match (executed.gate.last_failure(), &executed.cause) {
        (of_request, of_host_call) if of_request.contains(of_host_call.as_str()) => of_request,
        (of_request, of_host_call) if of_request.is_empty() => of_host_call.clone(),
        (of_request, of_host_call) => format!("{of_request}; {of_host_call}"),
    };
    if cause.is_empty() {
        return error;
    }
    WireError { message: format!("{}; the last request that failed: {cause}", error.message), ..error }
}
