//! The BOSH registry: where Agents of stemcells before API version 2 find their
//! settings.
//!
//! `client` speaks its HTTP API, `session` knows which IDs a call may touch and
//! undoes what a failed `create_vm` wrote, `settings` holds the rules for the
//! documents themselves, and `guest` is the capability that guests import. The
//! host's own use of it is in `agent`.

mod client;
mod config;
mod guest;
mod session;
pub(crate) mod settings;

pub use client::{RegistryClient, check_id};
pub use config::RegistryConfig;
pub use guest::{GuestRegistry, GuestRegistryError};
pub use session::{RegistrySession, SessionError};

#[cfg(test)]
pub(crate) mod fake;
