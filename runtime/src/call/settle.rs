//! Sixth step: the answer is judged, what must not stay is undone, and an early end is
//! explained.

use crate::audit::{Audit, Used};
use crate::bindings::bosh::cpi::types;
use crate::call::execute::Executed;
use crate::call::invoke::InvokeError;
use crate::call::{CallError, Record};
use crate::failure::{Failure, Who};
use crate::limits::Limits;
use crate::log::{Level, escape};
use crate::rpc::answer::{Answer, with_cid};
use crate::rpc::method::Method;
use crate::rpc::shape;
use crate::sandbox::ending::Why;
use crate::vault::Vault;
use serde_json::Value;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::AGENT;
use wasm_cpi_policy::strict_json;

/// How a call ended, and what its guest used.
pub struct Settled {
    pub result: Result<Value, CallError>,
    /// Absent if no guest ran.
    pub used: Option<Used>,
}

impl Settled {
    /// A result for which no guest ran.
    pub fn without_guest(result: Value) -> Settled {
        Settled { result: Ok(result), used: None }
    }
}

/// Turns the guest's answer into the caller's result.
pub fn settle(mut executed: Executed, record: &Record) -> Settled {
    let answer = std::mem::replace(&mut executed.answer, Ok(Answer::Nothing));
    let accepted = answer.and_then(|answer| Ok(accept(answer, &executed, record)?));
    let accepted = match executed.call.method() {
        Method::CreateVm => create_vm(accepted, &executed, record),
        _ => accepted,
    };
    let result = match accepted {
        Ok(accepted) => Ok(accepted.result),
        Err(error) => explain(error, &executed, record),
    };
    let Executed { used, ending, runtime, .. } = executed;
    // A call is a process: to end the runtime would only delay the response.
    std::mem::forget(runtime);
    Settled { result, used: Some(Used { wall: ending.elapsed(), ..used }) }
}

/// An answer that may be passed on.
struct Accepted {
    /// The cloud ID of what was created.
    created: Option<String>,
    /// In the caller's shape.
    result: Value,
}

fn accept(answer: Answer, executed: &Executed, record: &Record) -> Result<Accepted, Failure> {
    let created = answer.created().map(str::to_owned);
    let result = answer.for_caller(executed.request.api_version);
    bounded(&result, &executed.limits).map_err(|failure| match &created {
        Some(cid) => with_cid(failure, cid),
        None => failure,
    })?;
    without_secrets(&result, &record.vault, &record.audit)?;
    match executed.ending.why() {
        Some(Why::Abort(failure)) => Err(failure),
        _ => Ok(Accepted { created, result }),
    }
}

/// Rejects what clients cannot parse: nested too deeply for Ruby, or without end.
fn bounded(result: &Value, limits: &Limits) -> Result<(), Failure> {
    if strict_json::depth(result) as u64 > limits.result_depth {
        return Err(Failure::limit("result_depth", limits.result_depth, "the nesting of the guest's result"));
    }
    if result.to_string().len() as u64 > limits.result_kib * 1024 {
        return Err(Failure::limit("result_kib", limits.result_kib, "the guest's result"));
    }
    Ok(())
}

/// A result reaches the Director's database and logs. It is passed on as it is or not at
/// all: an altered cloud ID would be one that nobody can delete.
fn without_secrets(result: &Value, vault: &Vault, audit: &Audit) -> Result<(), Failure> {
    let leak = vault.leak_in(result.to_string().as_bytes());
    let Some(name) = leak.filter(|_| Check::ResultWithheld.on()) else { return Ok(()) };
    audit.result_leak(&name);
    Err(Failure::guest(format!(
        "the result was withheld, as it holds the value of `{name}`; if that is no secret, list it under `expose` in the policy"
    )))
}

/// Rejects a VM that cannot be reached, and removes the registry's settings of VMs that are
/// not returned.
fn create_vm(
    accepted: Result<Accepted, InvokeError>,
    executed: &Executed,
    record: &Record,
) -> Result<Accepted, InvokeError> {
    let accepted = accepted.and_then(|accepted| {
        reachable(accepted.created.as_deref().unwrap_or_default(), executed)?;
        Ok(accepted)
    });
    let returned = accepted.as_ref().ok().and_then(|accepted| accepted.created.as_deref());
    let deadline = executed.ending.hard_deadline();
    let left = executed.runtime.block_on(executed.agent.finish(returned, deadline))?;
    left.iter().for_each(|what| record.log.write(Level::Warn, what));
    accepted
}

/// Rejects a VM whose user-data was made but never sent: its Agent would never be heard
/// of. Where the policy has no slot for it, there was nowhere to send it.
fn reachable(cid: &str, executed: &Executed) -> Result<(), Failure> {
    let Executed { policy, gate, agent, .. } = executed;
    let has_slot =
        policy.http.iter().any(|grant| grant.slots.iter().any(|slot| slot.takes.iter().any(|name| name == AGENT)));
    let sent = gate.sent().iter().any(|name| name == AGENT);
    if !Check::VmUnreachable.on() || !has_slot || sent {
        return Ok(());
    }
    let how = if agent.bootstraps().is_empty() {
        "without calling `agent.bootstrap`"
    } else {
        "without sending the user-data of `agent.bootstrap`"
    };
    Err(Failure::guest(format!(
        "create_vm made `{}` {how}: nobody could reach that VM; a bug in the guest",
        escape(cid, 255)
    )))
}

/// Says why the call did not succeed: the guest's own error, or why it ended early, and what
/// it may have left behind.
fn explain(error: InvokeError, executed: &Executed, record: &Record) -> Result<Value, CallError> {
    let failure = match (error, executed.ending.why()) {
        (InvokeError::Guest(error), None) => return guest_error(error, executed, record),
        (InvokeError::Guest(error), Some(why)) => {
            let failure = why.failure();
            Failure {
                message: format!("{}; the guest ended in time and said: {}", failure.message, error.message),
                ..failure
            }
        }
        (InvokeError::Failure(failure), Some(why)) if matches!(failure.who, Who::Limit | Who::Runtime) => Failure {
            message: format!(
                "{}; the guest did not end by itself within cleanup_seconds ({})",
                why.failure().message,
                executed.limits.cleanup_seconds
            ),
            ..failure
        },
        (InvokeError::Failure(failure), _) => failure,
    };
    let changes = executed.gate.changes();
    if changes.is_empty() {
        return Err(failure.into());
    }
    let message =
        format!("{}; requests of this call that may have changed something: {}", failure.message, changes.join(", "));
    Err(Failure { message, ..failure }.into())
}

/// The guest's own error in the terms of the wire. The Director takes one of them for success.
fn guest_error(error: types::Error, executed: &Executed, record: &Record) -> Result<Value, CallError> {
    let from_director = executed.request.request_id.is_some();
    let Some(error) = shape::guest_error(error, executed.call.method(), from_director) else {
        return Ok(Value::Null);
    };
    record.log.write(Level::Info, &format!("guest: {}: {}", error.kind.name(), error.message));
    Err(CallError::Wire { who: Who::Guest, error })
}
