//! Sixth step: checks the answer, and removes registry settings that must not stay. `explanation`
//! words the error of a call that failed.

use crate::audit::Used;
use crate::call::assemble::CallCapabilities;
use crate::call::execute::{Executed, FinishedRun, NoAnswer};
use crate::call::leak::{further_calls_refused, with_leak};
use crate::call::undo::Created;
use crate::call::{CallError, Record, explanation, leave_to_exit};
use crate::failure::Failure;
use crate::leak_message;
use crate::limits::Limits;
use crate::log::{Level, escape};
use crate::rpc::answer::{Answer, with_cid};
use crate::rpc::method::Method;
use crate::sandbox::call_clock::EndReason;
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
pub fn settle(executed: Executed, record: &Record) -> Settled {
    let Executed { answer, used, run } = executed;
    let accepted = answer.and_then(|answer| Ok(accept(answer, &run, record)?));
    let accepted = match run.ended.call.method() {
        Method::CreateVm => finish_create_vm(accepted, &run, record),
        _ => accepted,
    };
    let (result, created) = match accepted {
        Ok(Accepted { created, result }) => (Ok(result), created),
        Err(error) => (explanation::outcome_without_answer(error, &run, record), None),
    };
    let used = Used { wall: run.ended.clock.elapsed(), ..used };
    let created = match created {
        Some(cid) => Some(Created::new(cid, run)),
        None => {
            leave_to_exit(run);
            None
        }
    };
    Settled { result, used: Some(used), created }
}

/// An answer that may be returned to the caller.
struct Accepted {
    /// The cloud ID of what was created.
    created: Option<String>,
    /// The result in the form of the caller's API version.
    result: Value,
}

fn accept(answer: Answer, run: &FinishedRun, record: &Record) -> Result<Accepted, Failure> {
    let created = answer.created().map(str::to_owned);
    let result = answer.for_caller(run.ended.request.api_version);
    check_size(&result, &run.ended.limits).map_err(|failure| match &created {
        Some(cid) => with_cid(failure, cid),
        None => failure,
    })?;
    check_for_secrets(&result, run, record)?;
    match run.ended.clock.end_reason_with(run.capabilities.gate.leak().as_ref()) {
        Some(why @ EndReason::Leak(_)) => Err(with_leak(why.failure(), &why, run)),
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
fn check_for_secrets(result: &Value, run: &FinishedRun, record: &Record) -> Result<(), Failure> {
    let leak = record.vault.leak_in(result.to_string().as_bytes());
    let leak = leak.map_err(|stopped| Failure::runtime(format!("the result was withheld: {stopped}")))?;
    Check::ResultWithheld.reject(leak, |name| {
        record.audit.result_leak(&name);
        let latch = run.capabilities.latch.as_ref().map(|latch| latch.record(&name, "the result"));
        let what = leak_message::withheld("the result", &name, leak_message::REMEDY);
        Failure::guest(match latch {
            None => what,
            Some(Ok(())) => format!("{what}; {}", further_calls_refused(run)),
            Some(Err(error)) => format!("{what}; {}", leak_message::not_recorded(&error)),
        })
    })
}

/// Rejects a VM that cannot be reached, and removes the registry's settings of VMs that are
/// not returned.
fn finish_create_vm(
    accepted: Result<Accepted, NoAnswer>,
    run: &FinishedRun,
    record: &Record,
) -> Result<Accepted, NoAnswer> {
    let accepted = accepted.and_then(|accepted| {
        check_reachable(accepted.created.as_deref().unwrap_or_default(), run)?;
        Ok(accepted)
    });
    let returned = accepted.as_ref().ok().and_then(|accepted| accepted.created.as_deref());
    let deadline = run.ended.clock.hard_deadline();
    let left = run.guest.runtime.block_on(run.capabilities.agent.settle_registry(returned, deadline))?;
    left.iter().for_each(|what| record.log.write(Level::Warn, what));
    accepted
}

/// Rejects a VM whose user-data was never sent, if a grant has a slot for it.
fn check_reachable(cid: &str, run: &FinishedRun) -> Result<(), Failure> {
    let CallCapabilities { policy, gate, agent, .. } = &run.capabilities;
    let has_slot =
        policy.http.iter().any(|grant| grant.slots.iter().any(|slot| slot.takes.iter().any(|name| name == AGENT)));
    let sent = gate.delivered_secrets().iter().any(|name| name == AGENT);
    Check::VmUnreachable.ensure(!has_slot || sent, || {
        let how = if agent.bootstrap_seals().is_empty() {
            "without calling `agent.bootstrap`"
        } else {
            "without sending the user-data of `agent.bootstrap`"
        };
        let why = "so the VM's Agent could never be reached; this is a bug in the guest";
        Failure::guest(format!("`create_vm` created `{}` {how}, {why}", escape(cid, 255)))
    })
}
