//! The registry as guests use it: secrets are sealed, only disks and networks can be changed, and
//! only IDs of the call can be accessed.

use super::session::{RegistrySession, SessionError};
use super::settings;
use crate::vault::Vault;
use std::sync::Arc;
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::strict_json;

const MAX_DEPTH: usize = 64;

/// The reason why an operation of the guest fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GuestRegistryError {
    pub kind: GuestRegistryErrorKind,
    /// The message for the guest: fixed words, and what the guest itself sent.
    pub message: String,
    /// What the registry said, for operators; empty if the message says everything.
    pub detail: String,
    /// The check that refused, if it is a named one. The guest does not see it.
    pub check: Option<Check>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestRegistryErrorKind {
    Denied,
    NotFound,
    Invalid,
    Unavailable,
}

impl From<SessionError> for GuestRegistryError {
    fn from(error: SessionError) -> Self {
        let kind = match error {
            SessionError::Denied { .. } => GuestRegistryErrorKind::Denied,
            SessionError::Id(_) | SessionError::Settings(_) => GuestRegistryErrorKind::Invalid,
            SessionError::NotFound(_) => GuestRegistryErrorKind::NotFound,
            SessionError::Failed(_) => GuestRegistryErrorKind::Unavailable,
        };
        GuestRegistryError { kind, message: error.for_guest(), detail: error.detail(), check: error.check() }
    }
}

/// The registry of one call.
pub struct GuestRegistry {
    session: Arc<RegistrySession>,
    vault: Arc<Vault>,
}

impl GuestRegistry {
    pub fn new(session: Arc<RegistrySession>, vault: Arc<Vault>) -> Self {
        GuestRegistry { session, vault }
    }

    /// Returns the registry of a call that deletes what this call created, with these IDs as its
    /// arguments.
    pub fn for_undo(&self, ids: Vec<String>) -> GuestRegistry {
        GuestRegistry { session: Arc::new(self.session.for_undo(ids)), vault: Arc::clone(&self.vault) }
    }

    /// Returns the session, which the import `agent` shares.
    pub fn session(&self) -> Arc<RegistrySession> {
        Arc::clone(&self.session)
    }

    /// Returns the settings as JSON text, with seals instead of secrets.
    pub async fn get(&self, id: &str, deadline: Instant) -> Result<String, GuestRegistryError> {
        self.session.check_declared(id)?;
        let settings = self.session.read(id, deadline).await?;
        Ok(settings::seal_settings(id, &settings, &self.vault).to_string())
    }

    /// Stores the guest's disks and networks, and keeps everything else.
    pub async fn put(&self, id: &str, given: &str, deadline: Instant) -> Result<(), GuestRegistryError> {
        self.session.check_declared(id)?;
        self.session.check_size(id, given.len())?;
        let given = strict_json::parse(given, MAX_DEPTH).map_err(|error| GuestRegistryError {
            kind: GuestRegistryErrorKind::Invalid,
            message: format!("settings are not JSON: {error}"),
            detail: String::new(),
            check: error.check(),
        })?;
        let change =
            |stored| settings::apply_change(&stored, &settings::seal_settings(id, &stored, &self.vault), &given);
        if self.session.creates() && !self.session.wrote(id) {
            // The guest does not name the VM here, so the ID stands for it.
            self.session.create(id, id, change, deadline).await?;
        } else {
            self.session.update(id, change, deadline).await?;
        }
        Ok(())
    }

    /// Deletes the settings.
    pub async fn delete(&self, id: &str, deadline: Instant) -> Result<(), GuestRegistryError> {
        self.session.check_declared(id)?;
        Ok(self.session.delete(id, deadline).await?)
    }
}

#[cfg(test)]
mod tests;
