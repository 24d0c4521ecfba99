//! Deletes what a call created if the caller did not get the response.
//!
//! Such a caller does not know the resource and would never delete it: the next `create-env` would
//! fail because the address is taken. So the guest's own delete method runs in a fresh instance,
//! within `cleanup_seconds`. Only what the requests of this call created is deleted: a guest may
//! also return what it found. Stemcells stay, because light ones are shared, and so do networks and
//! the disks of `update_disk`.

use crate::agent::AgentSession;
use crate::bindings::bosh::cpi::types::ErrorKind;
use crate::call::execute::{self, FinishedRun, LinkedGuest, NoAnswer};
use crate::call::leave_to_exit;
use crate::host::{Capabilities, GuestState};
use crate::limits::Limits;
use crate::rpc::arguments::Call;
use crate::sandbox::call_clock::CallClock;
use std::sync::Arc;
use wasm_cpi_checks::Check;

/// A resource that a call created, and how to delete it again.
pub struct Created {
    cid: String,
    /// How to delete it, or the reason why it stays.
    undo: Result<Box<Undo>, &'static str>,
}

/// A call of the guest's delete method that is ready to run.
struct Undo {
    call: Call,
    capabilities: Capabilities,
    /// The session of the call that is undone, which may have written to the registry.
    agent: Arc<AgentSession>,
    guest: LinkedGuest,
    limits: Limits,
}

/// What became of a resource whose caller does not know it.
pub enum UndoOutcome {
    Deleted,
    /// It stays, for this reason.
    Kept(&'static str),
    /// It could not be deleted, for this reason.
    Failed(String),
}

impl UndoOutcome {
    /// Returns the keyword of the audit log.
    pub fn keyword(&self) -> &'static str {
        match self {
            UndoOutcome::Deleted => "deleted",
            UndoOutcome::Kept(_) => "kept",
            UndoOutcome::Failed(_) => "failed",
        }
    }
}

impl Created {
    /// Prepares to delete what a call created.
    pub fn new(cid: String, run: FinishedRun) -> Created {
        let undo = match prepare(&cid, &run) {
            Ok((call, capabilities)) => {
                let FinishedRun { ended, capabilities: of_call, guest, store, .. } = run;
                leave_to_exit(store);
                let (agent, limits) = (of_call.agent, ended.limits);
                Ok(Box::new(Undo { call, capabilities, agent, guest, limits }))
            }
            Err(why) => {
                leave_to_exit(run);
                Err(why)
            }
        };
        Created { cid, undo }
    }

    /// Returns the cloud ID of the resource.
    pub fn cid(&self) -> &str {
        &self.cid
    }

    /// Deletes the resource, unless it has to stay. Blocks this thread.
    pub fn undo(self) -> UndoOutcome {
        match self.undo {
            Ok(undo) => undo.run().map_or_else(UndoOutcome::Failed, |()| UndoOutcome::Deleted),
            Err(why) => UndoOutcome::Kept(why),
        }
    }
}

/// Returns the call that deletes a resource, with its capabilities, or why the resource stays.
fn prepare(cid: &str, run: &FinishedRun) -> Result<(Call, Capabilities), &'static str> {
    let call = deletion(&run.ended.call, cid)?;
    if !Check::UndoOwn.accepts(run.capabilities.gate.has_created(cid)) {
        return Err("no response in this call shows that the call created it");
    }
    let capabilities = run.store.data().capabilities.as_ref().ok_or("the call had no capabilities")?;
    let capabilities = capabilities.for_undo(call.method().name(), call.registry_ids());
    Ok((call, capabilities))
}

/// Returns the call that deletes what a call created, or why it stays.
fn deletion(call: &Call, cid: &str) -> Result<Call, &'static str> {
    let cid = cid.to_owned();
    match call {
        Call::CreateVm { .. } => Ok(Call::DeleteVm { vm: cid }),
        Call::CreateDisk { .. } => Ok(Call::DeleteDisk { disk: cid }),
        Call::SnapshotDisk { .. } => Ok(Call::DeleteSnapshot { snapshot: cid }),
        Call::CreateStemcell { .. } => Err("stemcells stay, because light ones are shared"),
        Call::CreateNetwork { .. } => Err("networks are not deleted automatically; delete it if nothing uses it"),
        Call::UpdateDisk { .. } => Err("`update_disk` returns a disk that holds data"),
        _ => Err("the method creates nothing"),
    }
}

/// Returns true if requests of this call can be undone, so that it must be recorded what they create.
pub fn is_undoable(call: &Call) -> bool {
    deletion(call, "").is_ok()
}

impl Undo {
    fn run(self) -> Result<(), String> {
        let Undo { call, capabilities, agent, guest, limits } = self;
        let clock = Arc::new(CallClock::of_undo(&limits));
        let state = GuestState::new(&limits, Arc::clone(&clock), capabilities);
        let mut store = state.into_store(&guest.engine, &limits);
        let answer = execute::run(&guest, &mut store, &call, &clock, &limits);
        leave_to_exit(store);
        match answer {
            Ok(_) => {}
            // It does not exist any more, so nothing is left to delete.
            Err(NoAnswer::Guest(error)) if matches!(error.kind, ErrorKind::VmNotFound | ErrorKind::DiskNotFound(_)) => {
            }
            Err(NoAnswer::Guest(error)) => return Err(format!("guest: {}", error.message)),
            Err(NoAnswer::Failed(failure) | NoAnswer::Stopped(failure)) => return Err(failure.to_string()),
        }
        let left = guest.runtime.block_on(agent.settle_registry(None, clock.hard_deadline()));
        leave_to_exit(guest);
        match left {
            Ok(left) if left.is_empty() => Ok(()),
            Ok(left) => Err(left.join("; ")),
            Err(failure) => Err(failure.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::method::{Method, MethodName};
    use serde_json::{Value, json};

    #[test]
    fn each_method_that_returns_a_new_id_says_what_becomes_of_it() {
        let why = |method: &str, arguments: Value| {
            let MethodName::Known(method) = MethodName::parse(method) else { panic!("{method}") };
            assert_ne!(method, Method::Info);
            let call = Call::parse(method, arguments.as_array().unwrap().clone(), 2).unwrap();
            deletion(&call, "id").map(|call| call.method().name()).unwrap_or_else(|why| why)
        };
        for (method, arguments, expected) in [
            ("create_vm", json!(["a", "s", {}, {}, [], {}]), "delete_vm"),
            ("create_disk", json!([1, {}, null]), "delete_disk"),
            ("snapshot_disk", json!(["d", {}]), "delete_snapshot"),
            ("create_stemcell", json!(["image", {}]), "stemcells stay"),
            ("create_network", json!([{"type": "manual"}]), "networks are not deleted automatically"),
            ("update_disk", json!(["d", 1, {}]), "`update_disk` returns a disk that holds data"),
            ("attach_disk", json!(["v", "d"]), "the method creates nothing"),
        ] {
            let found = why(method, arguments);
            assert!(found.starts_with(expected), "{method}: {found}");
        }
    }
}
