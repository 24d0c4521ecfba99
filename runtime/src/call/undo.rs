//! Deletes what a call created if the caller did not get the response.
//!
//! Such a caller does not know the resource and would never delete it: the next `create-env` would
//! fail because the address is taken. So the guest's own delete method runs in a fresh instance,
//! within `cleanup_seconds`. Only what the requests of this call created is deleted: a guest may
//! also return what it found. Stemcells stay, because light ones are shared.

use crate::agent::AgentSession;
use crate::bindings::bosh::cpi::types::ErrorKind;
use crate::call::execute::{self, Sandbox};
use crate::call::invoke::InvokeError;
use crate::host::{Capabilities, State};
use crate::limits::Limits;
use crate::net::gate::Gate;
use crate::rpc::arguments::Call;
use crate::sandbox::ending::Ending;
use std::sync::Arc;
use wasm_cpi_checks::Check;

/// A resource that a call created, and how to delete it again.
pub struct Created {
    cid: String,
    /// The reason why it stays, if it does.
    undo: Result<Box<Undo>, &'static str>,
}

/// A call of the guest's delete method that is ready to run.
struct Undo {
    call: Call,
    capabilities: Capabilities,
    /// The session of the call that is undone, which may have written to the registry.
    agent: Arc<AgentSession>,
    sandbox: Sandbox,
    limits: Limits,
}

/// What became of a resource whose caller does not know it.
pub enum Fate {
    Deleted,
    /// It stays, for this reason.
    Kept(&'static str),
    /// It could not be deleted, for this reason.
    Left(String),
}

impl Fate {
    /// Returns the keyword of the audit log.
    pub fn keyword(&self) -> &'static str {
        match self {
            Fate::Deleted => "deleted",
            Fate::Kept(_) => "kept",
            Fate::Left(_) => "failed",
        }
    }
}

impl Created {
    /// Prepares to delete what `call` created. `capabilities` are those of that call.
    pub fn new(
        cid: String,
        call: &Call,
        gate: &Gate,
        capabilities: Option<&Capabilities>,
        agent: Arc<AgentSession>,
        sandbox: Sandbox,
        limits: Limits,
    ) -> Created {
        let undo = deletion(call, &cid).and_then(|call| {
            if !Check::UndoOwn.accepts(gate.has_created(&cid)) {
                return Err("no answer to a request of this call shows that it was created by it");
            }
            let capabilities = capabilities.ok_or("the call had no capabilities")?;
            let capabilities = capabilities.for_undo(call.method().name(), call.ids());
            Ok(Box::new(Undo { call, capabilities, agent, sandbox, limits }))
        });
        Created { cid, undo }
    }

    /// Returns the cloud ID of the resource.
    pub fn cid(&self) -> &str {
        &self.cid
    }

    /// Deletes the resource, unless it has to stay. Blocks this thread.
    pub fn undo(self) -> Fate {
        match self.undo {
            Ok(undo) => undo.run().map_or_else(Fate::Left, |()| Fate::Deleted),
            Err(why) => Fate::Kept(why),
        }
    }
}

/// Returns the call that deletes what a call created, or why it stays.
fn deletion(call: &Call, cid: &str) -> Result<Call, &'static str> {
    let cid = cid.to_owned();
    match call {
        Call::CreateVm { .. } => Ok(Call::DeleteVm { vm: cid }),
        Call::CreateDisk { .. } => Ok(Call::DeleteDisk { disk: cid }),
        Call::SnapshotDisk { .. } => Ok(Call::DeleteSnapshot { snapshot: cid }),
        Call::CreateStemcell { .. } => Err("stemcells stay, because light ones are shared"),
        _ => Err("only VMs, disks and snapshots are deleted again"),
    }
}

/// Returns true if requests of this call can be undone, so that it must be recorded what they create.
pub fn is_undoable(call: &Call) -> bool {
    deletion(call, "").is_ok()
}

impl Undo {
    fn run(self) -> Result<(), String> {
        let Undo { call, capabilities, agent, sandbox, limits } = self;
        let ending = Arc::new(Ending::of_undo(&limits));
        let state = State::new(&limits, Arc::clone(&ending), capabilities);
        let mut store = state.into_store(&sandbox.engine, &limits);
        let answer = execute::run(&sandbox, &mut store, &call, &ending, &limits);
        // The process ends after this, so dropping it would only take time.
        std::mem::forget(store);
        match answer {
            Ok(_) => {}
            // It is gone, which is all that was wanted.
            Err(InvokeError::Guest(error))
                if matches!(error.kind, ErrorKind::VmNotFound | ErrorKind::DiskNotFound(_)) => {}
            Err(InvokeError::Guest(error)) => return Err(format!("guest: {}", error.message)),
            Err(InvokeError::Failure(failure) | InvokeError::Stopped(failure)) => return Err(failure.to_string()),
        }
        let left = sandbox.runtime.block_on(agent.finish(None, ending.hard_deadline()));
        std::mem::forget(sandbox);
        match left {
            Ok(left) if left.is_empty() => Ok(()),
            Ok(left) => Err(left.join("; ")),
            Err(failure) => Err(failure.to_string()),
        }
    }
}
