//! The import `agent` of one call, for both modes.
//!
//! In registry-less mode only `bootstrap` has an effect. With a registry, `created` writes the
//! settings under the key that the Agent will use, and `settle_registry` deletes them again
//! unless their VM is the call's result.

use super::additions::{Additions, DiskHint};
use super::config::AgentConfig;
use super::{Mode, VmSpec, secrets, settings, size};
use crate::failure::Failure;
use crate::registry::settings::{attach, detach};
use crate::registry::{RegistryConfig, RegistrySession, SessionError};
use crate::vault::Vault;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::AGENT;
use wasm_cpi_policy::secret::{Layer, Secret};

/// The least time for deleting the settings that a failed call wrote.
const UNDO_TIME: Duration = Duration::from_secs(10);

/// The most bootstraps of a call. A VM needs one; a guest may try again with another name.
const MAX_BOOTSTRAPS: usize = 8;

/// The reason why agent settings are not built or stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    pub kind: AgentErrorKind,
    /// What the guest reads: fixed words, and what the guest itself sent.
    pub message: String,
    /// What the registry said, for operators; empty if the message says everything.
    pub detail: String,
    /// The check that refused, if it is a named one.
    pub check: Option<Check>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentErrorKind {
    /// The guest is not allowed to do this.
    Refused,
    /// The registry failed.
    Registry,
}

impl AgentError {
    pub(super) fn refused(message: impl Into<String>) -> AgentError {
        AgentError { kind: AgentErrorKind::Refused, message: message.into(), detail: String::new(), check: None }
    }
}

impl RefusedBy for AgentError {
    fn refused_by(self, check: Check) -> AgentError {
        AgentError { check: self.check.or(Some(check)), ..self }
    }
}

impl From<String> for AgentError {
    fn from(message: String) -> Self {
        AgentError::refused(message)
    }
}

impl From<SessionError> for AgentError {
    fn from(error: SessionError) -> Self {
        let kind = match error {
            SessionError::Denied { .. } | SessionError::Id(_) | SessionError::Settings(_) => AgentErrorKind::Refused,
            SessionError::NotFound(_) | SessionError::Failed(_) => AgentErrorKind::Registry,
        };
        AgentError { kind, message: error.for_guest(), detail: error.detail(), check: error.check() }
    }
}

/// What the agent settings of a call are made of.
pub struct AgentParts {
    pub mode: Mode,
    pub config: AgentConfig,
    /// The VM; only `create_vm` has it.
    pub spec: Option<VmSpec>,
    pub registry_config: Option<RegistryConfig>,
    pub registry: Arc<RegistrySession>,
    pub vault: Arc<Vault>,
}

/// The agent settings of one call.
pub struct AgentSession {
    mode: Mode,
    config: AgentConfig,
    /// The VM; only `create_vm` has it.
    spec: Option<VmSpec>,
    registry_config: Option<RegistryConfig>,
    registry: Arc<RegistrySession>,
    vault: Arc<Vault>,
    /// The seals of the user-data that was built in this call.
    seals: Mutex<Vec<String>>,
}

impl AgentSession {
    pub fn new(parts: AgentParts) -> Self {
        let AgentParts { mode, config, spec, registry_config, registry, vault } = parts;
        // They are registered in every call, because a cloud may show what another call sent.
        for (name, secret) in secrets::find(&config, spec.as_ref()) {
            vault.register(&name, secret);
        }
        for (name, secret) in registry_config.iter().flat_map(RegistryConfig::secrets) {
            vault.register(name, secret);
        }
        AgentSession { mode, config, spec, registry_config, registry, vault, seals: Mutex::default() }
    }

    /// Fails if the settings of this `create_vm` could be larger than the platform or the registry
    /// accepts. It is called before the guest runs, so that the guest learns nothing about their
    /// size. `max_bytes` is the smallest `max_bytes` of the slots that take agent settings.
    pub fn check_size(&self, max_bytes: Option<u64>) -> Result<(), Failure> {
        let Some(spec) = &self.spec else { return Ok(()) };
        let full = settings::build(&self.config, spec, &Additions::default())
            .map_err(|error| Failure::runtime(format!("agent settings cannot be built: {error}")))?;
        size::check_user_data(&self.user_data(&full, ""), max_bytes)?;
        match self.mode {
            Mode::Registryless => Ok(()),
            Mode::Registry => self.registry.check_room(&full, size::RESERVE),
        }
    }

    /// Returns the session of a call that deletes what this call created.
    pub fn for_undo(&self, registry: Arc<RegistrySession>) -> AgentSession {
        AgentSession {
            mode: self.mode,
            config: self.config.clone(),
            spec: None,
            registry_config: self.registry_config.clone(),
            registry,
            vault: Arc::clone(&self.vault),
            seals: Mutex::default(),
        }
    }

    /// Returns a seal for the user-data of the VM of this `create_vm`.
    pub fn bootstrap(&self, additions: &Additions) -> Result<String, AgentError> {
        let Some(spec) = &self.spec else {
            return Err(AgentError::refused(
                "`agent.bootstrap` is for `create_vm` only; do not call it in other methods",
            ));
        };
        Check::AgentBootstraps.ensure(self.bootstrap_seals().len() < MAX_BOOTSTRAPS, || {
            let times = MAX_BOOTSTRAPS;
            AgentError::refused(format!("`agent.bootstrap` was called {times} times in this call; call it less often"))
        })?;
        size::check_encodings(&additions.encodings)?;
        size::check_additions(additions)?;
        let full = settings::build(&self.config, spec, additions)?;
        let data = self.user_data(&full, &additions.vm_name);
        if self.mode == Mode::Registry {
            self.registry.prepare(full)?;
        }
        let base = settings::build(&self.config, spec, &Additions::default())?;
        let mut stages = settings::encode(data, self.user_data(&base, ""), &additions.encodings);
        let text = stages.pop().unwrap_or_default();
        for stage in stages {
            self.vault.register(AGENT, Secret::new(stage));
        }
        let seal = self.vault.seal(AGENT, Secret::new(text), Layer::Call);
        self.seals().push(seal.clone());
        #[cfg(feature = "mutation-testing")]
        if let Some(sealed) = self.vault.open(&seal).filter(|_| Check::SealedAgent.is_off()) {
            return Ok(sealed.secret.reveal().to_owned());
        }
        Ok(seal)
    }

    /// Returns the seals of all user-data of this call. A VM that was created without one cannot be
    /// reached.
    pub fn bootstrap_seals(&self) -> Vec<String> {
        self.seals().clone()
    }

    fn seals(&self) -> MutexGuard<'_, Vec<String>> {
        self.seals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the user-data of a VM with these settings.
    fn user_data(&self, full: &Map<String, Value>, vm_name: &str) -> Map<String, Value> {
        match self.mode {
            Mode::Registryless => settings::registryless_user_data(full),
            Mode::Registry => {
                let registry = self.registry_config.as_ref().map(RegistryConfig::for_agent);
                settings::registry_user_data(registry.unwrap_or_default(), full, vm_name)
            }
        }
    }

    /// Writes the settings of the new VM to the registry, if it is used.
    pub async fn created(&self, vm: &str, key: &str, deadline: Instant) -> Result<(), AgentError> {
        match self.mode {
            Mode::Registryless => Ok(()),
            Mode::Registry => Ok(self.registry.create(key, vm, Ok, deadline).await?),
        }
    }

    /// Adds a disk to the VM's settings in the registry, if it is used.
    pub async fn attached(&self, key: &str, disk: &str, hint: &DiskHint, deadline: Instant) -> Result<(), AgentError> {
        let hint = hint.to_json()?;
        size::check_disk(disk, &hint)?;
        if self.mode == Mode::Registryless {
            return Ok(());
        }
        let change = |mut settings| {
            attach(&mut settings, disk, hint);
            Ok(settings)
        };
        Ok(self.registry.update(key, change, deadline).await?)
    }

    /// Removes a disk from the VM's settings in the registry, if it is used.
    pub async fn detached(&self, key: &str, disk: &str, deadline: Instant) -> Result<(), AgentError> {
        if self.mode == Mode::Registryless {
            return Ok(());
        }
        let change = |mut settings| {
            detach(&mut settings, disk);
            Ok(settings)
        };
        match self.registry.update(key, change, deadline).await {
            // Without settings there is no disk to remove.
            Err(SessionError::NotFound(_)) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Deletes the VM's settings in the registry, if it is used.
    pub async fn deleted(&self, key: &str, deadline: Instant) -> Result<(), AgentError> {
        match self.mode {
            Mode::Registryless => Ok(()),
            Mode::Registry => Ok(self.registry.delete(key, deadline).await?),
        }
    }

    /// Deletes the registry settings that this `create_vm` wrote for other VMs than `returned`, which is
    /// `None` if it failed. Rejects a returned VM without settings in the registry. Returns a sentence
    /// for each setting that could not be deleted.
    pub async fn settle_registry(&self, returned: Option<&str>, deadline: Instant) -> Result<Vec<String>, Failure> {
        if self.spec.is_none() {
            return Ok(Vec::new());
        }
        // A guest that was stopped has used all of the call's time.
        let left = self.registry.undo(returned, deadline.max(Instant::now() + UNDO_TIME)).await;
        let unregistered = returned.filter(|vm| self.mode == Mode::Registry && !self.registry.has_settings_for(vm));
        Check::VmUnregistered.reject(unregistered, |vm| {
            let what = format!(
                "`create_vm` returned `{vm}` without calling `agent.created` for it, so its Agent would find no settings in \
                 the registry; the guest must call `agent.created` once the VM exists"
            );
            Failure::guest(what).with_detail(left.join("\n"))
        })?;
        Ok(left)
    }
}

#[cfg(test)]
mod tests;
