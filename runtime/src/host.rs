//! What a guest can ask of the host: one file per interface of `wit/`.
//!
//! Each translates between the generated types and a domain module, and nothing
//! else: no policy, no IO. A guest's mistake is an answer, never a trap.

mod agent;
mod clock;
mod config;
mod http;
mod image;
mod log;
#[cfg(feature = "holes")]
pub mod mutants;
mod note;
mod random;
mod registry;
mod state;
pub mod wasi;

pub use note::{Counts, Ended, HostCall, HostCallObserver};
pub use state::State;

use crate::agent::AgentSession;
use crate::bindings::Cpi;
use crate::bindings::bosh::cpi::config::CallInfo;
use crate::image::Image;
use crate::log::GuestLog;
use crate::net::gate::Gate;
use crate::registry::GuestRegistry;
use std::sync::Arc;
use wasmtime::component::{Component, HasSelf, Linker};

/// The capabilities of one call.
pub struct Capabilities {
    /// The visible properties, JSON text.
    pub properties: String,
    pub call: CallInfo,
    pub gate: Arc<Gate>,
    pub agent: Arc<AgentSession>,
    pub registry: Arc<GuestRegistry>,
    /// In `create_stemcell` only.
    pub image: Option<Arc<Image>>,
    pub log: Arc<GuestLog>,
    /// Sees every host call, for the audit log and `wasm-cpi call`.
    pub observer: Option<HostCallObserver>,
}

/// Links our own interfaces, and what the component imports of WASI's fixed list.
pub fn link(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    Cpi::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    wasi::link(linker, component)?;
    #[cfg(feature = "holes")]
    mutants::any_import(linker, component)?;
    Ok(())
}

impl State {
    /// The call is ending: what waiting host functions answer.
    fn cancelled(&self) -> Option<String> {
        self.ending.why().map(|why| why.word())
    }
}

impl crate::bindings::bosh::cpi::types::Host for State {}
