//! The import `agent` of one call, for both ways that settings can take.
//!
//! In registry-less mode only `bootstrap` does anything. With a registry,
//! `created` writes the settings under the name that the Agent will ask for,
//! and `finish` deletes them again unless their VM is the call's result.

use super::additions::{Additions, DiskHint};
use super::config::AgentConfig;
use super::{Mode, VmSpec, secrets, settings};
use crate::failure::Failure;
use crate::registry::settings::{attach, detach};
use crate::registry::{RegistryConfig, RegistrySession, SessionError};
use crate::vault::Vault;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::{Layer, Secret};

/// For deleting what a call wrote that came to nothing, at least.
const UNDOING: Duration = Duration::from_secs(10);

/// One VM needs one; a guest may try another size or name.
const MAX_BOOTSTRAPS: usize = 16;

/// In all of a call's user-data, in every encoding on the way: no platform takes
/// more, and every copy of a secret costs memory to look for.
const MAX_SETTINGS: usize = 1024 * 1024;

const TOO_MUCH: &str =
    "the agent settings of this call take more than a mebibyte in all; make `env`, networks or encodings smaller";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Registry(String),
}

impl From<SessionError> for AgentError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Denied(_) | SessionError::Id(_) | SessionError::Settings(_) => {
                AgentError::Refused(error.to_string())
            }
            SessionError::NotFound(_) | SessionError::Failed(_) => AgentError::Registry(error.to_string()),
        }
    }
}

pub struct AgentSession {
    mode: Mode,
    config: AgentConfig,
    /// In `create_vm` only.
    spec: Option<VmSpec>,
    registry_config: Option<RegistryConfig>,
    registry: Arc<RegistrySession>,
    vault: Arc<Vault>,
    made: Mutex<Made>,
}

/// The user-data of this call.
#[derive(Default)]
struct Made {
    seals: Vec<String>,
    bytes: usize,
}

impl AgentSession {
    pub fn new(
        mode: Mode,
        config: AgentConfig,
        spec: Option<VmSpec>,
        registry_config: Option<RegistryConfig>,
        registry: Arc<RegistrySession>,
        vault: Arc<Vault>,
    ) -> Self {
        // In every call: a cloud may show what another call once sent it.
        for (name, secret) in secrets::of(&config, spec.as_ref()) {
            vault.keep(&name, secret);
        }
        for (name, secret) in registry_config.iter().flat_map(RegistryConfig::secrets) {
            vault.keep(name, secret);
        }
        AgentSession { mode, config, spec, registry_config, registry, vault, made: Mutex::default() }
    }

    /// User-data for the VM of this `create_vm`, as a seal.
    pub fn bootstrap(&self, additions: &Additions) -> Result<String, AgentError> {
        let Some(spec) = &self.spec else {
            return Err(AgentError::Refused("`agent.bootstrap` is for `create_vm` only".into()));
        };
        if self.bootstraps().len() >= MAX_BOOTSTRAPS {
            return Err(AgentError::Refused(format!(
                "`agent.bootstrap` was called {MAX_BOOTSTRAPS} times in this call"
            )));
        }
        let full = settings::full(&self.config, spec, additions).map_err(AgentError::Refused)?;
        if Value::Object(full.clone()).to_string().len() > MAX_SETTINGS {
            return Err(AgentError::Refused(TOO_MUCH.into()));
        }
        let data = match self.mode {
            Mode::Registryless => settings::with_dns(&full),
            Mode::Registry => {
                let registry = self.registry_config.as_ref().map(RegistryConfig::for_agent);
                let data = settings::pointing_to(registry.unwrap_or_default(), &full, &additions.vm_name);
                self.registry.prepare(full)?;
                data
            }
        };
        let mut stages =
            settings::encode(&data, &additions.encodings, additions.max_bytes).map_err(AgentError::Refused)?;
        let mut made = self.made();
        made.bytes += stages.iter().map(String::len).sum::<usize>();
        if Check::AgentTotal.on() && made.bytes > MAX_SETTINGS {
            return Err(AgentError::Refused(TOO_MUCH.into()));
        }
        let text = stages.pop().unwrap_or_default();
        for stage in stages {
            self.vault.keep("agent", Secret::new(stage));
        }
        let seal = self.vault.seal("agent", Secret::new(text), Layer::Call);
        made.seals.push(seal.clone());
        #[cfg(feature = "holes")]
        if let Some(sealed) = self.vault.open(&seal).filter(|_| !Check::SealedAgent.on()) {
            return Ok(sealed.secret.reveal().to_owned());
        }
        Ok(seal)
    }

    /// Seals of all user-data that was made: a VM without one cannot be reached.
    pub fn bootstraps(&self) -> Vec<String> {
        self.made().seals.clone()
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn created(&self, vm: &str, key: &str, deadline: Instant) -> Result<(), AgentError> {
        match self.mode {
            Mode::Registryless => Ok(()),
            Mode::Registry => Ok(self.registry.create(key, vm, Ok, deadline).await?),
        }
    }

    pub async fn attached(&self, key: &str, disk: &str, hint: &DiskHint, deadline: Instant) -> Result<(), AgentError> {
        let hint = hint.to_json().map_err(AgentError::Refused)?;
        if self.mode == Mode::Registryless {
            return Ok(());
        }
        let change = |mut settings| {
            attach(&mut settings, disk, hint);
            Ok(settings)
        };
        Ok(self.registry.update(key, change, deadline).await?)
    }

    pub async fn detached(&self, key: &str, disk: &str, deadline: Instant) -> Result<(), AgentError> {
        if self.mode == Mode::Registryless {
            return Ok(());
        }
        let change = |mut settings| {
            detach(&mut settings, disk);
            Ok(settings)
        };
        match self.registry.update(key, change, deadline).await {
            // A VM without settings has no disk in them either.
            Err(SessionError::NotFound(_)) => Ok(()),
            result => Ok(result?),
        }
    }

    pub async fn deleted(&self, key: &str, deadline: Instant) -> Result<(), AgentError> {
        match self.mode {
            Mode::Registryless => Ok(()),
            Mode::Registry => Ok(self.registry.delete(key, deadline).await?),
        }
    }

    /// At the end of a call: `returned` is the VM that `create_vm` answers, None
    /// if it failed. Answers what could not be undone, as sentences.
    pub async fn finish(&self, returned: Option<&str>, deadline: Instant) -> Result<Vec<String>, Failure> {
        if self.spec.is_none() {
            return Ok(Vec::new());
        }
        // A guest that had to be stopped has used up all the time there was.
        let left = self.registry.undo(returned, deadline.max(Instant::now() + UNDOING)).await;
        match (self.mode, returned) {
            (Mode::Registry, Some(vm)) if Check::VmUnregistered.on() && !self.registry.has_settings_for(vm) => Err(Failure::guest(format!(
                "`create_vm` returned `{vm}` without `agent.created` for it: its Agent would find no settings in the \
                 registry; the guest must call it once the VM exists"
            ))
            .with_detail(left.join("\n"))),
            _ => Ok(left),
        }
    }
}

#[cfg(test)]
mod tests;
