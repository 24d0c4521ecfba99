//! The registry as guests see it: secrets sealed, only disks and networks
//! writable, only IDs of the call.

use super::session::{RegistrySession, SessionError};
use super::settings;
use crate::vault::Vault;
use std::sync::Arc;
use std::time::Instant;
use wasm_cpi_policy::strict_json;

const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestRegistryError {
    #[error("{0}")]
    Denied(String),
    #[error("the registry has no settings for this ID")]
    NotFound,
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Unavailable(String),
}

impl From<SessionError> for GuestRegistryError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Denied(what) => GuestRegistryError::Denied(what),
            SessionError::Id(_) | SessionError::Settings(_) => GuestRegistryError::Invalid(error.to_string()),
            SessionError::NotFound(_) => GuestRegistryError::NotFound,
            SessionError::Failed(failure) => GuestRegistryError::Unavailable(failure.to_string()),
        }
    }
}

pub struct GuestRegistry {
    session: Arc<RegistrySession>,
    vault: Arc<Vault>,
}

impl GuestRegistry {
    pub fn new(session: Arc<RegistrySession>, vault: Arc<Vault>) -> Self {
        GuestRegistry { session, vault }
    }

    /// Settings as JSON text.
    pub async fn get(&self, id: &str, deadline: Instant) -> Result<String, GuestRegistryError> {
        self.session.check_declared(id)?;
        let settings = self.session.read(id, deadline).await?;
        Ok(settings::sealed(&settings, &self.vault).to_string())
    }

    pub async fn put(&self, id: &str, given: &str, deadline: Instant) -> Result<(), GuestRegistryError> {
        self.session.check_declared(id)?;
        self.session.check_size(id, given.len())?;
        let given = strict_json::parse(given, MAX_DEPTH)
            .map_err(|error| GuestRegistryError::Invalid(format!("settings are not JSON: {error}")))?;
        let change = |stored| settings::changed(&stored, &settings::sealed(&stored, &self.vault), &given);
        if self.session.creates() && !self.session.made(id) {
            // Without word of a VM, the ID stands for it.
            self.session.create(id, id, change, deadline).await?;
        } else {
            self.session.update(id, change, deadline).await?;
        }
        Ok(())
    }

    pub async fn delete(&self, id: &str, deadline: Instant) -> Result<(), GuestRegistryError> {
        self.session.check_declared(id)?;
        Ok(self.session.delete(id, deadline).await?)
    }
}

#[cfg(test)]
mod tests;
