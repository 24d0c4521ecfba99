//! Runs a BOSH CPI as a sandboxed WebAssembly component.
//!
//! The modules follow one request: `commands` reads it, `rpc` understands it,
//! `config` and `policy` say what is allowed, `component` has the guest's code
//! ready, `sandbox` runs it, `host` answers what it asks, over `net`, `agent`,
//! `registry` and `image`; `vault` keeps every secret out of its sight. See
//! ARCHITECTURE.md.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod agent;
pub mod arena;
pub mod audit;
pub mod bindings;
pub mod commands;
pub mod component;
pub mod config;
pub mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod granted;
pub mod hardening;
pub mod holes;
pub mod host;
pub mod image;
pub mod invisible;
pub mod limits;
pub mod log;
pub mod net;
pub mod place;
pub mod policy;
pub mod registry;
#[cfg(feature = "compiler")]
pub mod registry_server;
pub mod rpc;
pub mod sandbox;
pub mod secret;
pub mod session;
pub mod signals;
pub mod strict_json;
pub mod trust;
pub mod vault;
