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
mod random;
mod registry;

use crate::agent::AgentSession;
use crate::bindings::Cpi;
use crate::bindings::bosh::cpi::config::CallInfo;
use crate::image::Image;
use crate::log::GuestLog;
use crate::net::gate::Gate;
use crate::registry::GuestRegistry;
use crate::sandbox::state::State;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::component::{HasSelf, Linker};

/// The capabilities of one call.
pub struct Host {
    /// The visible properties, JSON text.
    pub properties: String,
    pub call: CallInfo,
    pub gate: Arc<Gate>,
    pub agent: Arc<AgentSession>,
    pub registry: Arc<GuestRegistry>,
    /// In `create_stemcell` only.
    pub image: Option<Arc<Image>>,
    pub log: Arc<GuestLog>,
    /// Told of every host call, for `wasm-cpi call`.
    pub watch: Option<Watch>,
}

/// What a guest asked for, how long it took, and how many bytes it gave or got.
#[derive(Clone, Copy, Debug)]
pub struct HostCall {
    pub name: &'static str,
    pub elapsed: Duration,
    pub bytes: usize,
}

pub type Watch = Box<dyn Fn(&HostCall) + Send + Sync>;

pub fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    Cpi::add_to_linker::<_, HasSelf<State>>(linker, |state| state)
}

impl State {
    /// Tells whoever watches of a call that began at `since`.
    fn noted(&self, name: &'static str, since: Instant, bytes: usize) {
        if let Some(watch) = self.host.as_ref().and_then(|host| host.watch.as_ref()) {
            watch(&HostCall { name, elapsed: since.elapsed(), bytes });
        }
    }

    /// The call is ending: what waiting host functions answer.
    fn cancelled(&self) -> Option<String> {
        self.ending.why().map(|why| why.word())
    }
}

impl crate::bindings::bosh::cpi::types::Host for State {}
