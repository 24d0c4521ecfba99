//! SDK for guests: BOSH CPIs that run as sandboxed wasm components.
//!
//! A guest implements [`Cpi`], says what it needs with [`needs!`] and exports
//! itself with [`export_cpi!`]. Everything it can do beyond computing is a
//! function of the modules below, one per import of `wit/`. All of them go
//! through [`host::Host`], so that tests run natively against a [`fake::Fake`].
//!
//! Guests written with the SDK never see a secret: properties that the operator
//! did not expose, and the Agent's settings, are [`Seal`]s.

pub mod agent;
pub mod bindings;
pub mod clock;
pub mod config;
mod cpi;
mod error;
mod export;
#[cfg(not(target_family = "wasm"))]
pub mod fake;
pub mod host;
pub mod http;
pub mod image;
mod json;
pub mod log;
mod needs;
mod panic;
pub mod poll;
pub mod random;
pub mod registry;
mod types;

pub use cpi::{Cpi, METHODS, describe};
pub use error::{Error, ErrorKind};
#[doc(hidden)]
pub use export::{Adapter, exported};
pub use json::Json;
#[doc(hidden)]
pub use needs::section;
pub use types::{
    Cid, CreatedNetwork, CreatedVm, Description, DiskHint, Metadata, Network, NetworkSpec, Seal, VmRequest, VmSize,
};

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
