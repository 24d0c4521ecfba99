//! Settings for the BOSH Agent inside a VM.
//!
//! The host builds them, because they hold credentials of the whole fleet. A guest adds what the
//! cloud decided, and gets a seal instead of the settings. Two versions decide whether the settings
//! are sent in the VM's user-data or through the registry; `mode` makes this decision.

mod additions;
mod config;
mod networks;
mod secrets;
mod session;
mod settings;
mod size;

pub use additions::{Additions, DiskHint, Encoding, NetworkAddition};
pub use config::{AgentConfig, endpoints_of_env};
pub use secrets::VISIBLE_ENV;
pub use session::{AgentError, AgentErrorKind, AgentParts, AgentSession};

use crate::failure::Failure;
use serde_json::{Map, Value};

/// The way on which settings reach the Agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The VM's user-data holds all settings.
    Registryless,
    /// The VM's user-data holds the address of the registry, and the registry holds the settings.
    Registry,
}

/// The VM of a `create_vm`, as the Director describes it.
#[derive(Clone)]
pub struct VmSpec {
    pub agent_id: String,
    /// The networks by name; each value is an object.
    pub networks: Map<String, Value>,
    pub env: Value,
}

/// Returns `Registryless` only if both the caller and the stemcell can work without a registry. A
/// stemcell without a version has version 1.
pub fn mode(api_version: u32, stemcell_api_version: Option<u32>) -> Mode {
    if api_version >= 2 && stemcell_api_version.unwrap_or(1) >= 2 { Mode::Registryless } else { Mode::Registry }
}

impl Mode {
    /// Fails if this call needs a registry and the config has none. It is called before anything is
    /// created.
    pub fn check(self, method: &str, registry_is_configured: bool) -> Result<(), Failure> {
        let uses_registry = ["create_vm", "delete_vm", "attach_disk", "detach_disk"].contains(&method);
        if self == Mode::Registryless || registry_is_configured || !uses_registry {
            return Ok(());
        }
        Err(Failure::config(format!(
            "`{method}` needs a registry, as api_version or vm.stemcell.api_version of the request is below 2, but \
             `registry` is missing; add \"registry\": {{\"endpoint\": …, \"user\": …, \"password\": …}} to the CPI's \
             config, or use a newer stemcell"
        )))
    }
}

#[cfg(test)]
mod tests;
