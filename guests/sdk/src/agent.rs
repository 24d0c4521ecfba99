//! The settings of the BOSH Agent inside a VM. The host builds them, and knows
//! whether they travel in the VM's user-data or through the registry. A guest
//! makes the same calls in both cases, and sends the seal of [`bootstrap`] where
//! the cloud takes user-data.
//!
//! ```
//! use wasm_cpi_sdk::agent::{self, Encoding, Settings};
//! use wasm_cpi_sdk::fake::{AgentEvent, Fake};
//!
//! let host = Fake::new().install();
//! let settings = Settings { encodings: vec![Encoding::Base64], ..agent::settings("vm-1") };
//! let user_data = agent::bootstrap(&settings).unwrap();
//! let body = serde_json::json!({"server": {"name": "vm-1", "user_data": user_data}});
//! assert_eq!(body["server"]["user_data"], user_data.as_str());
//! // The guest sends the body to the cloud. Then the VM exists:
//! agent::created("server-1", "server-1").unwrap();
//! assert_eq!(host.agent_events().len(), 2);
//! assert_eq!(host.agent_events()[0], AgentEvent::Bootstrap(settings));
//! ```

use crate::{DiskHint, Error, Seal, host};

use crate::bindings::bosh::cpi::agent as wire;
pub use crate::bindings::bosh::cpi::agent::{Encoding, NetworkAddition, Settings};

/// Returns settings that hold only the name of the VM. Set the other fields with
/// `Settings { encodings: vec![Encoding::Base64], ..agent::settings("vm-1") }`.
pub fn settings(vm_name: &str) -> Settings {
    Settings {
        vm_name: vm_name.to_owned(),
        system_disk: None,
        ephemeral_disk: None,
        raw_ephemeral_disks: vec![],
        networks: vec![],
        encodings: vec![],
    }
}

/// Returns an addition to the network `name` that changes nothing yet. Set its
/// fields as those of [`settings`].
pub fn addition(name: &str) -> NetworkAddition {
    NetworkAddition {
        name: name.to_owned(),
        mac: None,
        ip: None,
        netmask: None,
        gateway: None,
        dns: vec![],
        use_dhcp: None,
        preconfigured: None,
        alias: None,
        routes: None,
    }
}

/// Returns the user-data for the VM of this `create_vm`, as a seal.
pub fn bootstrap(settings: &Settings) -> Result<Seal, Error> {
    host::current().agent_bootstrap(settings).map(Seal).map_err(|error| failed("building the user-data", error))
}

/// Reports that the VM exists. Its Agent asks the registry by `registry_key`.
pub fn created(vm: &str, registry_key: &str) -> Result<(), Error> {
    host::current().agent_created(vm, registry_key).map_err(|error| failed("storing the VM's agent settings", error))
}

/// Reports that a disk is attached, and how the Agent finds it.
pub fn attached(registry_key: &str, disk: &str, hint: &DiskHint) -> Result<(), Error> {
    host::current()
        .agent_attached(registry_key, disk, hint)
        .map_err(|error| failed("adding the disk to the VM's agent settings", error))
}

/// Reports that a disk is detached.
pub fn detached(registry_key: &str, disk: &str) -> Result<(), Error> {
    host::current()
        .agent_detached(registry_key, disk)
        .map_err(|error| failed("removing the disk from the VM's agent settings", error))
}

/// Reports that the VM is deleted.
pub fn deleted(registry_key: &str) -> Result<(), Error> {
    host::current().agent_deleted(registry_key).map_err(|error| failed("deleting the VM's agent settings", error))
}

fn failed(doing: &str, error: wire::Error) -> Error {
    match error {
        wire::Error::Refused(message) => Error::cpi(message),
        wire::Error::Registry(message) => Error::cloud(message),
        wire::Error::Cancelled(why) => crate::clock::Cancelled(why).into(),
    }
    .context(doing)
}
