#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

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
pub mod idempotency;
pub mod image;
mod json;
pub mod log;
mod needs;
mod panic;
pub mod poll;
pub mod query_api;
pub mod random;
pub mod registry;
pub mod retry;
mod types;
pub mod xml;

pub use cpi::{Cpi, METHODS, description};
pub use error::{Error, ErrorKind, RetryAdvice};
#[doc(hidden)]
pub use export::{Adapter, check_guest};
pub use json::Json;
#[doc(hidden)]
pub use needs::section;
pub use types::{
    Cid, CreatedNetwork, CreatedVm, Description, DiskHint, Metadata, Network, NetworkSpec, Seal, VmRequest, VmSize,
};
