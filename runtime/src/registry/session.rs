//! The registry within one call: which IDs may be touched, and what is undone.
//!
//! `create_vm` may only add: an ID that exists is refused, and what was added
//! is deleted again unless it belongs to the VM that the call returns. All
//! other calls touch the IDs that the caller named, and those that the
//! operator's policy grants on top.

use super::client::{InvalidId, RegistryClient, check_id};
use super::settings::SettingsRefusal;
use crate::failure::{Failure, Who};
use serde_json::{Map, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::RegistryRights;

type Settings = Map<String, Value>;

pub struct RegistrySession {
    client: Option<RegistryClient>,
    rights: RegistryRights,
    /// IDs among the call's arguments.
    own: Vec<String>,
    /// The call is `create_vm`.
    creates: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What a new ID gets: the settings of the VM that is being created.
    prepared: Option<Settings>,
    made: Vec<Made>,
}

struct Made {
    id: String,
    vm: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Not an ID of this call.
    #[error("{0}")]
    Denied(String),
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error(transparent)]
    Settings(#[from] SettingsRefusal),
    #[error("the registry has no settings for `{0}`")]
    NotFound(String),
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl RegistrySession {
    pub fn new(client: Option<RegistryClient>, rights: RegistryRights, own: Vec<String>, creates: bool) -> Self {
        RegistrySession { client, rights, own, creates, state: Mutex::default() }
    }

    pub fn creates(&self) -> bool {
        self.creates
    }

    /// Settings for IDs to come. Too large for the registry is said here,
    /// before a VM exists.
    pub(crate) fn prepare(&self, settings: Settings) -> Result<(), SessionError> {
        self.client()?.encode("the new VM", &settings)?;
        self.state().prepared = Some(settings);
        Ok(())
    }

    /// Writes the prepared settings, as `change` altered them, to an ID that is new.
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
            let what = "settings are written after `agent.bootstrap` in `create_vm` only";
            return Err(SessionError::Denied(what.into()));
        };
        let settings = change(prepared)?;
        if Check::RegistryCreateOnly.on() && !self.made(id) && client.get(id, deadline).await?.is_some() {
            return Err(SessionError::Denied(format!(
                "the registry already has settings for `{id}`, which `create_vm` must not touch; \
                 if no VM uses them, delete them there"
            )));
        }
        // Before writing: a request without an answer may have arrived.
        self.forget(id);
        self.state().made.push(Made { id: id.to_owned(), vm: vm.to_owned() });
        Ok(client.put(id, &settings, deadline).await?)
    }

    pub(crate) async fn read(&self, id: &str, deadline: Instant) -> Result<Settings, SessionError> {
        self.allow(id, false)?;
        self.client()?.get(id, deadline).await?.ok_or_else(|| SessionError::NotFound(id.to_owned()))
    }

    /// Reads, alters and writes back. The Director keeps two calls for one VM
    /// apart; the registry has no means to.
    pub(crate) async fn update(
        &self,
        id: &str,
        change: impl FnOnce(Settings) -> Result<Settings, SettingsRefusal>,
        deadline: Instant,
    ) -> Result<(), SessionError> {
        self.allow(id, true)?;
        let settings = change(self.read(id, deadline).await?)?;
        Ok(self.client()?.put(id, &settings, deadline).await?)
    }

    pub(crate) async fn delete(&self, id: &str, deadline: Instant) -> Result<(), SessionError> {
        self.allow(id, true)?;
        self.client()?.delete(id, deadline).await?;
        self.forget(id);
        Ok(())
    }

    pub(crate) fn made(&self, id: &str) -> bool {
        self.state().made.iter().any(|made| made.id == id)
    }

    /// Whether settings were written for this VM.
    pub(crate) fn has_settings_for(&self, vm: &str) -> bool {
        self.state().made.iter().any(|made| made.vm == vm)
    }

    /// Deletes what was added for other VMs than `kept`. Answers what could not
    /// be deleted, as sentences.
    pub(crate) async fn undo(&self, kept: Option<&str>, deadline: Instant) -> Vec<String> {
        let undone: Vec<Made> = {
            let mut state = self.state();
            let keeps = |made: &Made| Some(made.vm.as_str()) == kept || !Check::RegistryUndo.on();
            let (kept, undone) = state.made.drain(..).partition(keeps);
            state.made = kept;
            undone
        };
        let mut left = Vec::new();
        for made in undone {
            if let Ok(client) = self.client()
                && let Err(failure) = client.delete(&made.id, deadline).await
            {
                left.push(format!(
                    "settings for `{}` are left in the registry, delete them there ({failure})",
                    made.id
                ));
            }
        }
        left
    }

    fn allow(&self, id: &str, writing: bool) -> Result<(), SessionError> {
        check_id(id)?;
        if self.made(id) {
            return Ok(());
        }
        if Check::RegistryOwnWrites.on() && self.creates && writing {
            return Err(SessionError::Denied(format!(
                "`create_vm` may change settings only that it wrote itself, and `{id}` is not among them"
            )));
        }
        if self.own.iter().any(|own| own == id) || !Check::RegistryIds.on() {
            return Ok(());
        }
        self.rights.allows(id, &[]).map_err(|denial| SessionError::Denied(denial.to_string()))
    }

    /// Whether guests have the import `registry` at all: the module must have
    /// declared it, even for IDs of the call.
    pub(crate) fn check_declared(&self, id: &str) -> Result<(), SessionError> {
        check_id(id)?;
        self.rights.allows(id, &[id]).map_err(|denial| SessionError::Denied(denial.to_string()))
    }

    /// Whether settings of this size could be stored at all, before they are read.
    pub(crate) fn check_size(&self, id: &str, bytes: usize) -> Result<(), SessionError> {
        Ok(self.client()?.check_size(id, bytes)?)
    }

    fn forget(&self, id: &str) {
        self.state().made.retain(|made| made.id != id);
    }

    fn client(&self) -> Result<&RegistryClient, SessionError> {
        let missing = "`registry` is missing, and this VM's stemcell or caller needs one; \
                       add \"registry\": {\"endpoint\": …, \"user\": …, \"password\": …} to the CPI's config";
        self.client.as_ref().ok_or_else(|| Failure::new(Who::Config, missing).into())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
