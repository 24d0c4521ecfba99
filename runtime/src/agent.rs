//! Settings for the BOSH Agent inside a VM.
//!
//! The host builds them, since they hold the keys of the fleet: guests only say
//! what the cloud decided and get a seal back. Whether the settings travel in
//! the VM's user-data or through the registry follows from two versions and is
//! decided here, once.

mod additions;
mod config;
mod networks;
mod secrets;
mod session;
mod settings;

pub use additions::{Additions, DiskHint, Encoding, NetworkAddition};
pub use config::{AgentConfig, endpoints_of_env};
pub use session::{AgentError, AgentSession};

use crate::failure::Failure;
use serde_json::{Map, Value};

/// How settings reach the Agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All of them in the VM's user-data.
    Registryless,
    /// User-data says where the registry is; the settings are there.
    Registry,
}

/// What the Director said about the VM of a `create_vm`.
#[derive(Clone)]
pub struct VmSpec {
    pub agent_id: String,
    /// By name, each an object.
    pub networks: Map<String, Value>,
    pub env: Value,
}

/// Both sides must know how to do without the registry. A stemcell that does
/// not say is of version 1.
pub fn mode(api_version: u32, stemcell_api_version: Option<u32>) -> Mode {
    if api_version >= 2 && stemcell_api_version.unwrap_or(1) >= 2 { Mode::Registryless } else { Mode::Registry }
}

impl Mode {
    /// Fails if this call cannot do its work without a registry and none is
    /// configured: before anything is created.
    pub fn check(self, method: &str, registry_is_configured: bool) -> Result<(), Failure> {
        let uses_it = ["create_vm", "delete_vm", "attach_disk", "detach_disk"].contains(&method);
        if self == Mode::Registryless || registry_is_configured || !uses_it {
            return Ok(());
        }
        Err(Failure::config(format!(
            "`{method}` needs a registry, as api_version or vm.stemcell.api_version of the request is below 2, and \
             `registry` is missing; add \"registry\": {{\"endpoint\": …, \"user\": …, \"password\": …}} to the CPI's \
             config, or use a newer stemcell"
        )))
    }
}

#[cfg(test)]
mod tests;
