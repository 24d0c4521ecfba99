//! The host functions of a guest: one file per interface of `wit/`.
//!
//! Each file only translates between the generated types and a domain module. It decides no
//! policy, and opens no file or socket. A mistake of the guest is returned as an error and never
//! traps.

mod agent;
mod clock;
mod config;
mod host_call;
mod http;
mod image;
mod log;
#[cfg(feature = "mutation-testing")]
pub mod mutants;
mod random;
mod registry;
mod state;
pub mod wasi;

pub use host_call::{HostCall, HostCallCounts, HostCallObserver, HostCallOutcome, LastFailure};
pub use state::GuestState;

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
    /// The visible properties, as JSON text.
    pub properties: String,
    pub call: CallInfo,
    pub gate: Arc<Gate>,
    pub agent: Arc<AgentSession>,
    pub registry: Arc<GuestRegistry>,
    /// The stemcell image, in `create_stemcell` only.
    pub image: Option<Arc<Image>>,
    pub log: Arc<GuestLog>,
    pub last_failure: LastFailure,
    /// Called for every host call that is reported, for the audit log and `wasm-cpi call`.
    pub observer: Option<HostCallObserver>,
}

impl Capabilities {
    /// Returns the capabilities of a call that deletes what this call created: the same gate, with
    /// the same grants, tokens and limits, and the registry for the IDs of that call.
    pub fn for_undo(&self, method: &str, ids: Vec<String>) -> Capabilities {
        let registry = Arc::new(self.registry.for_undo(ids));
        Capabilities {
            properties: self.properties.clone(),
            call: CallInfo { method: method.to_owned(), ..self.call.clone() },
            gate: Arc::clone(&self.gate),
            agent: Arc::new(self.agent.for_undo(registry.session())),
            registry,
            image: None,
            log: Arc::clone(&self.log),
            last_failure: LastFailure::default(),
            observer: self.observer.clone(),
        }
    }
}

/// Links the interfaces of `bosh:cpi`, and those of the fixed WASI list that the component imports.
pub fn link(linker: &mut Linker<GuestState>, component: &Component) -> wasmtime::Result<()> {
    Cpi::add_to_linker::<_, HasSelf<GuestState>>(linker, |state| state)?;
    wasi::link(linker, component)?;
    #[cfg(feature = "mutation-testing")]
    mutants::any_import(linker, component)?;
    Ok(())
}

impl crate::bindings::bosh::cpi::types::Host for GuestState {}
