//! The host as one trait with one method per import. In a wasm build the host is
//! the runtime. In a native build it is the host that the current thread
//! installed, or an empty [`crate::fake::Fake`] if it installed none.
//!
//! Guests normally call the other modules. This one is for fakes, and for guests
//! that need the imports without the SDK's conversions.

#[cfg(target_family = "wasm")]
mod imports;

use std::rc::Rc;

use crate::bindings::bosh::cpi::{agent, config, http, image, log, registry};
use crate::types::DiskHint;

/// The imports of the world `cpi`. The files in `wit/` document each function.
pub trait Host {
    /// Calls `config.properties`.
    fn properties(&self) -> String;
    /// Calls `config.call`.
    fn call(&self) -> config::CallInfo;

    /// Calls `http.send`.
    fn http_send(&self, request: &http::Request) -> Result<http::Response, http::Error>;
    /// Calls `http.send-all`.
    fn http_send_all(&self, requests: &[http::Request]) -> Vec<Result<http::Response, http::Error>>;
    /// Calls `http.send-blocks`.
    fn http_send_blocks(&self, upload: &http::BlockUpload) -> Result<http::BlocksSent, http::BlocksError>;
    /// Calls `http.session`.
    fn http_session(&self, name: &str) -> Result<String, http::Error>;

    /// Calls `agent.bootstrap`.
    fn agent_bootstrap(&self, settings: &agent::Settings) -> Result<String, agent::Error>;
    /// Calls `agent.created`.
    fn agent_created(&self, vm: &str, registry_key: &str) -> Result<(), agent::Error>;
    /// Calls `agent.attached`.
    fn agent_attached(&self, registry_key: &str, disk: &str, hint: &DiskHint) -> Result<(), agent::Error>;
    /// Calls `agent.detached`.
    fn agent_detached(&self, registry_key: &str, disk: &str) -> Result<(), agent::Error>;
    /// Calls `agent.deleted`.
    fn agent_deleted(&self, registry_key: &str) -> Result<(), agent::Error>;

    /// Calls `registry.get`.
    fn registry_get(&self, id: &str) -> Result<String, registry::Error>;
    /// Calls `registry.put`.
    fn registry_put(&self, id: &str, settings: &str) -> Result<(), registry::Error>;
    /// Calls `registry.delete`.
    fn registry_delete(&self, id: &str) -> Result<(), registry::Error>;

    /// Calls `image.size`.
    fn image_size(&self) -> Result<u64, image::Error>;
    /// Calls `image.sha256`.
    fn image_sha256(&self) -> Result<String, image::Error>;
    /// Calls `image.read`.
    fn image_read(&self, offset: u64, length: u32) -> Result<Vec<u8>, image::Error>;
    /// Calls `image.members`.
    fn image_members(&self) -> Result<Vec<image::Member>, image::Error>;
    /// Calls `image.read-member`.
    fn image_read_member(&self, name: &str, length: u32) -> Result<Vec<u8>, image::Error>;

    /// Calls `log.log`.
    fn log(&self, level: log::Level, message: &str);

    /// Calls `clock.now-ms`.
    fn now_ms(&self) -> u64;
    /// Calls `clock.monotonic-ns`.
    fn monotonic_ns(&self) -> u64;
    /// Calls `clock.sleep`.
    fn sleep(&self, ms: u64) -> Result<(), String>;
    /// Calls `clock.ending`.
    fn ending(&self) -> Option<String>;

    /// Calls `random.bytes`.
    fn random(&self, count: u32) -> Vec<u8>;
}

/// Returns the host of the current thread.
#[cfg(target_family = "wasm")]
pub fn current() -> Rc<dyn Host> {
    Rc::new(imports::Imports)
}

/// Returns the host of the current thread.
#[cfg(not(target_family = "wasm"))]
pub fn current() -> Rc<dyn Host> {
    CURRENT.with(|current| Rc::clone(&current.borrow()))
}

#[cfg(not(target_family = "wasm"))]
thread_local! {
    static CURRENT: std::cell::RefCell<Rc<dyn Host>> =
        std::cell::RefCell::new(Rc::new(crate::fake::Fake::new()));
}

/// Makes `host` the host of the current thread until the guard is dropped.
#[cfg(not(target_family = "wasm"))]
pub fn install(host: Rc<dyn Host>) -> Guard {
    Guard { previous: Some(CURRENT.with(|current| current.replace(host))) }
}

/// Restores the previous host when it is dropped.
#[cfg(not(target_family = "wasm"))]
#[must_use = "the host is removed when the guard is dropped"]
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
