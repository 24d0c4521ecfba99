//! Runs a BOSH CPI as a sandboxed WebAssembly component.
//!
//! [`run`] serves one call of the Director: `commands::run` lists its steps, and each step is
//! a file in `call`. The modules form layers, and a module uses only layers below its own;
//! ARCHITECTURE.md lists them. The crate `wasm-cpi-policy` decides what a guest may do.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![allow(unreachable_pub, reason = "`pub` is for the layers above; this file decides what the crate exports")]
#![cfg_attr(
    not(feature = "compiler"),
    allow(dead_code, unused_imports, reason = "only the tool uses some items; its build finds dead code")
)]

mod agent;
mod audit;
mod bindings;
mod call;
mod caller;
mod commands;
mod component;
mod config;
mod effective_policy;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guest_of_job;
mod host;
mod image;
mod leak_latch;
mod leak_message;
mod limits;
mod lock_down;
mod log;
mod net;
mod registry;
#[cfg(feature = "compiler")]
mod registry_server;
mod rpc;
mod sandbox;
mod signals;
mod startup;
mod token_store;
mod trust;
mod vault;

#[cfg(feature = "compiler")]
pub use commands::cli::main;
pub use commands::run::run;
pub use config::ConfigSource;
