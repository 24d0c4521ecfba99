//! The registry within one call: which IDs the call may access, and what is undone.
//!
//! `create_vm` may only add settings: it cannot use an ID that exists, and settings that it added
//! are deleted again unless they belong to the VM that the call returns. All other calls may access
//! the IDs in their arguments, and those that the operator's policy grants in addition.

use super::client::{InvalidId, RegistryClient, check_id};
use super::settings::{SettingsRefusal, check_values};
use crate::failure::{Failure, Who};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::{RegistryDenial, RegistryRights};

type Settings = Map<String, Value>;

/// The access of one call to the registry.
pub struct RegistrySession {
    client: Option<Arc<RegistryClient>>,
    rights: RegistryRights,
    access: Access,
    state: Mutex<State>,
}

/// What a call may access without a grant.
pub enum Access {
    /// `create_vm` adds settings for new IDs.
    CreateVm,
    /// Other calls use the settings of the IDs in their arguments.
    Ids(Vec<String>),
}

#[derive(Default)]
struct State {
    /// The settings of the VM that is being created, for a new ID.
    prepared: Option<Settings>,
    written: Vec<Written>,
}

/// Settings that this call wrote.
struct Written {
    id: String,
    vm: String,
}

/// The reason why an operation on the registry fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The call may not do this with the ID.
    #[error("{message}")]
    Denied { message: String, check: Option<Check> },
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error(transparent)]
    Settings(#[from] SettingsRefusal),
    #[error("the registry has no settings for `{0}`")]
    NotFound(String),
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl SessionError {
    fn denied(message: impl Into<String>) -> SessionError {
        SessionError::Denied { message: message.into(), check: None }
    }

    /// Returns the text that the guest gets: not what the registry said, nor where it is.
    pub fn for_guest(&self) -> String {
        match self {
            SessionError::Failed(failure) => match failure.who {
                Who::Iaas => "iaas: the registry failed; the log says why".to_owned(),
                Who::Limit => "limit: the settings reached `registry_kib`; if that is legitimate, raise \
                               `limits.registry_kib` in the CPI's config"
                    .to_owned(),
                who => format!("{who}: the registry cannot be used for this; the log says why"),
            },
            other => other.to_string(),
        }
    }

    /// Returns what only operators get; empty if the guest gets everything.
    pub fn detail(&self) -> String {
        match self {
            SessionError::Failed(failure) => failure.to_string(),
            _ => String::new(),
        }
    }

    /// Returns the check that refused, if one did.
    pub fn check(&self) -> Option<Check> {
        match self {
            SessionError::Denied { check, .. } => *check,
            SessionError::Id(_) => Some(Check::RegistryIdForm),
            SessionError::Settings(refusal) => Some(refusal.check()),
            SessionError::NotFound(_) => None,
            SessionError::Failed(failure) => failure.check,
        }
    }
}

impl From<RegistryDenial> for SessionError {
    fn from(denial: RegistryDenial) -> SessionError {
        SessionError::Denied { message: denial.to_string(), check: Some(denial.check()) }
    }
}

impl RefusedBy for SessionError {
    fn refused_by(self, check: Check) -> SessionError {
        match self {
            SessionError::Denied { message, check: known } => {
                SessionError::Denied { message, check: known.or(Some(check)) }
            }
            other => other,
        }
    }
}

impl RegistrySession {
    pub fn new(client: Option<RegistryClient>, rights: RegistryRights, access: Access) -> Self {
        RegistrySession { client: client.map(Arc::new), rights, access, state: Mutex::default() }
    }

    /// Returns the access of a call that deletes what this call created, with these IDs as its
    /// arguments.
    pub fn for_undo(&self, ids: Vec<String>) -> RegistrySession {
        let (client, rights) = (self.client.clone(), self.rights.clone());
        RegistrySession { client, rights, access: Access::Ids(ids), state: Mutex::default() }
    }

    /// Returns true if the call is `create_vm`.
    pub fn creates(&self) -> bool {
        matches!(self.access, Access::CreateVm)
    }

    /// Fails if settings for a new ID, with `room` for what the guest adds, are too large.
    pub(crate) fn check_room(&self, settings: &Settings, room: usize) -> Result<(), Failure> {
        self.client.as_ref().map_or(Ok(()), |client| client.check_parts("the new VM", settings, room))
    }

    /// Keeps the settings for a new ID. Fails if they are too large for the registry, so that no VM is
    /// created in vain.
    pub(crate) fn prepare(&self, settings: Settings) -> Result<(), SessionError> {
        self.client()?.encode("the new VM", &settings)?;
        self.state().prepared = Some(settings);
        Ok(())
    }

    /// Writes the prepared settings, after `change`, to a new ID.
    pub(crate) async fn create(
        &self,
        id: &str,
        vm: &str,
        change: impl FnOnce(Settings) -> Result<Settings, SettingsRefusal>,
        deadline: Instant,
    ) -> Result<(), SessionError> {
        check_id(id)?;
        let client = self.client()?;
        let Some(prepared) = self.state().prepared.clone() else {
            let what = "settings are written after `agent.bootstrap` in `create_vm` only; call that first";
            return Err(SessionError::denied(what));
        };
        let settings = change(prepared)?;
        check_values(&settings)?;
        let exists = !self.wrote(id) && client.get(id, deadline).await?.is_some();
        Check::RegistryCreateOnly.ensure(!exists, || {
            SessionError::denied(format!(
                "the registry already has settings for `{id}`, which `create_vm` must not touch; \
                 if no VM uses them, delete them there"
            ))
        })?;
        // Recorded before writing, because a request that got no answer may have arrived.
        self.forget(id);
        self.state().written.push(Written { id: id.to_owned(), vm: vm.to_owned() });
        Ok(client.put(id, &settings, deadline).await?)
    }

    /// Returns the settings of an ID.
    pub(crate) async fn read(&self, id: &str, deadline: Instant) -> Result<Settings, SessionError> {
        self.check_readable(id)?;
        self.client()?.get(id, deadline).await?.ok_or_else(|| SessionError::NotFound(id.to_owned()))
    }

    /// Reads the settings, changes them and writes them back. The registry cannot lock them; the
    /// Director prevents two calls for one VM at the same time.
    pub(crate) async fn update(
        &self,
        id: &str,
        change: impl FnOnce(Settings) -> Result<Settings, SettingsRefusal>,
        deadline: Instant,
    ) -> Result<(), SessionError> {
        self.check_writable(id)?;
        let settings = change(self.read(id, deadline).await?)?;
        check_values(&settings)?;
        Ok(self.client()?.put(id, &settings, deadline).await?)
    }

    /// Deletes the settings of an ID.
    pub(crate) async fn delete(&self, id: &str, deadline: Instant) -> Result<(), SessionError> {
        self.check_writable(id)?;
        self.client()?.delete(id, deadline).await?;
        self.forget(id);
        Ok(())
    }

    /// Returns true if this call wrote the settings of the ID.
    pub(crate) fn wrote(&self, id: &str) -> bool {
        self.state().written.iter().any(|written| written.id == id)
    }

    /// Returns true if this call wrote settings for the VM.
    pub(crate) fn has_settings_for(&self, vm: &str) -> bool {
        self.state().written.iter().any(|written| written.vm == vm)
    }

    /// Deletes the settings that this call wrote, except those of the VM that it returned. Returns a
    /// sentence for each that could not be deleted.
    pub(crate) async fn undo(&self, returned: Option<&str>, deadline: Instant) -> Vec<String> {
        let undone: Vec<Written> = {
            let mut state = self.state();
            let keeps = |one: &Written| Check::RegistryUndo.accepts(Some(one.vm.as_str()) == returned);
            let (kept, undone) = state.written.drain(..).partition(keeps);
            state.written = kept;
            undone
        };
        let mut left = Vec::new();
        for written in undone {
            if let Ok(client) = self.client()
                && let Err(failure) = client.delete(&written.id, deadline).await
            {
                left.push(format!(
                    "settings for `{}` are left in the registry; delete them there ({failure})",
                    written.id
                ));
            }
        }
        left
    }

    /// Rejects an ID whose settings this call may not read.
    fn check_readable(&self, id: &str) -> Result<(), SessionError> {
        check_id(id)?;
        let is_own = match &self.access {
            Access::CreateVm => false,
            Access::Ids(ids) => ids.iter().any(|own| own == id),
        };
        if self.wrote(id) || Check::RegistryIds.accepts(is_own) {
            return Ok(());
        }
        Ok(self.rights.allows(id, &[])?)
    }

    /// Rejects an ID whose settings this call may not change.
    fn check_writable(&self, id: &str) -> Result<(), SessionError> {
        check_id(id)?;
        Check::RegistryOwnWrites.ensure(!self.creates() || self.wrote(id), || {
            SessionError::denied(format!(
                "`create_vm` may change only settings that it wrote itself, and `{id}` is not among them; call `agent.created` \
                 for the VM first"
            ))
        })?;
        self.check_readable(id)
    }

    /// Rejects all use of the registry by a guest that does not declare it, even for IDs of the call.
    pub(crate) fn check_declared(&self, id: &str) -> Result<(), SessionError> {
        check_id(id)?;
        Ok(self.rights.allows(id, &[id])?)
    }

    /// Rejects settings that are too large to be stored, before they are parsed.
    pub(crate) fn check_size(&self, id: &str, bytes: usize) -> Result<(), SessionError> {
        Ok(self.client()?.check_size(id, bytes)?)
    }

    fn forget(&self, id: &str) {
        self.state().written.retain(|written| written.id != id);
    }

    fn client(&self) -> Result<&RegistryClient, SessionError> {
        let missing = "`registry` is missing, but this VM's stemcell or caller needs one; \
                       add \"registry\": {\"endpoint\": …, \"user\": …, \"password\": …} to the CPI's config";
        self.client.as_deref().ok_or_else(|| Failure::new(Who::Config, missing).into())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
