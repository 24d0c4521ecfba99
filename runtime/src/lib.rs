//! Runs a BOSH CPI as a sandboxed WebAssembly component.
//!
//! [`run`] is one call of the Director: `commands::run` lists its steps, and each step is a
//! file in `call`. The other modules lie in layers, each of which uses only those below
//! it; ARCHITECTURE.md lists them. What a guest may do is decided in the crate
//! `wasm-cpi-policy`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![allow(unreachable_pub, reason = "`pub` is for the modules above; this file decides what leaves the crate")]
#![cfg_attr(
    not(feature = "compiler"),
    allow(dead_code, unused_imports, reason = "some items serve the tool alone; its build finds dead code")
)]

mod agent;
mod audit;
mod bindings;
mod call;
mod commands;
mod component;
mod config;
mod effective_policy;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hardening;
mod host;
mod image;
mod limits;
mod log;
mod net;
mod registry;
#[cfg(feature = "compiler")]
mod registry_server;
mod rpc;
mod sandbox;
mod signals;
mod startup;
mod trust;
mod vault;

#[cfg(feature = "compiler")]
pub use commands::cli::main;
pub use commands::run::run;
pub use config::ConfigArg;
