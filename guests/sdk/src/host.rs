//! Everything a guest can ask of its host, as one trait with one method per
//! import. On wasm the host is the runtime; elsewhere it is what the current
//! thread installed, and an empty [`crate::fake::Fake`] if it installed nothing.
//!
//! The other modules are what guests normally call; this one is for fakes, and
//! for guests that want the imports as they are.

#[cfg(target_family = "wasm")]
mod imports;

use std::rc::Rc;

use crate::bindings::bosh::cpi::{agent, config, http, image, log, registry};
use crate::types::DiskHint;

/// The imports of the world `cpi`. What each answers is documented in `wit/`.
pub trait Host {
    fn properties(&self) -> String;
    fn call(&self) -> config::CallInfo;

    fn http_send(&self, request: &http::Request) -> Result<http::Response, http::Error>;
    fn http_session(&self, name: &str) -> Result<String, http::Error>;

    fn agent_bootstrap(&self, settings: &agent::Settings) -> Result<String, agent::Error>;
    fn agent_created(&self, vm: &str, registry_key: &str) -> Result<(), agent::Error>;
    fn agent_attached(&self, registry_key: &str, disk: &str, hint: &DiskHint) -> Result<(), agent::Error>;
    fn agent_detached(&self, registry_key: &str, disk: &str) -> Result<(), agent::Error>;
    fn agent_deleted(&self, registry_key: &str) -> Result<(), agent::Error>;

    fn registry_get(&self, id: &str) -> Result<String, registry::Error>;
    fn registry_put(&self, id: &str, settings: &str) -> Result<(), registry::Error>;
    fn registry_delete(&self, id: &str) -> Result<(), registry::Error>;

    fn image_size(&self) -> Result<u64, image::Error>;
    fn image_sha256(&self) -> Result<String, image::Error>;
    fn image_read(&self, offset: u64, length: u32) -> Result<Vec<u8>, image::Error>;
    fn image_members(&self) -> Result<Vec<image::Member>, image::Error>;
    fn image_read_member(&self, name: &str, length: u32) -> Result<Vec<u8>, image::Error>;

    fn log(&self, level: log::Level, message: &str);

    fn now_ms(&self) -> u64;
    fn monotonic_ns(&self) -> u64;
    fn sleep(&self, ms: u64) -> Result<(), String>;
    fn ending(&self) -> Option<String>;

    fn random(&self, count: u32) -> Vec<u8>;
}

/// The host of this thread.
#[cfg(target_family = "wasm")]
pub fn current() -> Rc<dyn Host> {
    Rc::new(imports::Imports)
}

/// The host of this thread.
#[cfg(not(target_family = "wasm"))]
pub fn current() -> Rc<dyn Host> {
    CURRENT.with(|current| Rc::clone(&current.borrow()))
}

#[cfg(not(target_family = "wasm"))]
thread_local! {
    static CURRENT: std::cell::RefCell<Rc<dyn Host>> =
        std::cell::RefCell::new(Rc::new(crate::fake::Fake::new()));
}

/// Makes `host` the host of this thread until the guard is dropped.
#[cfg(not(target_family = "wasm"))]
pub fn install(host: Rc<dyn Host>) -> Guard {
    Guard { previous: Some(CURRENT.with(|current| current.replace(host))) }
}

/// Puts the previous host back when dropped.
#[cfg(not(target_family = "wasm"))]
#[must_use = "the host is only in place while this lives"]
pub struct Guard {
    previous: Option<Rc<dyn Host>>,
}

#[cfg(not(target_family = "wasm"))]
impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(previous) = self.previous.take() {
            CURRENT.with(|current| current.replace(previous));
        }
    }
}
