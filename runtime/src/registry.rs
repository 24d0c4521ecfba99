//! The BOSH registry, from which Agents of stemcells before API version 2 read their settings.
//!
//! `client` implements its HTTP API, `session` decides which IDs a call may access and undoes what
//! a failed `create_vm` wrote, `settings` holds the rules for the documents, and `guest` is the
//! capability that guests import. The host itself uses the registry in `agent`.

mod client;
mod config;
mod guest;
mod session;
pub(crate) mod settings;

pub use client::{RegistryClient, check_id};
pub use config::RegistryConfig;
pub use guest::{GuestRegistry, GuestRegistryError, GuestRegistryErrorKind};
pub use session::{Access, RegistrySession, SessionError};

#[cfg(test)]
pub(crate) mod fake;
