//! Settings for the BOSH Agent inside the VM. The host builds them and knows
//! whether they travel in the user-data or through the registry: make the same
//! calls for both, and send the seal of [`bootstrap`] where user-data goes.

use crate::{DiskHint, Error, Seal, host};

use crate::bindings::bosh::cpi::agent as wire;
pub use crate::bindings::bosh::cpi::agent::{Encoding, NetworkAddition, Settings};

/// Settings with nothing but a name, to be filled in:
/// `Settings { encodings: vec![Encoding::Base64], ..agent::settings("vm-1") }`.
pub fn settings(vm_name: &str) -> Settings {
    Settings {
        vm_name: vm_name.to_owned(),
        system_disk: None,
        ephemeral_disk: None,
        raw_ephemeral_disks: vec![],
        networks: vec![],
        encodings: vec![],
        max_bytes: None,
    }
}

/// Nothing yet about the network `name`, to be filled in.
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

/// User-data for the VM of this `create_vm`.
pub fn bootstrap(settings: &Settings) -> Result<Seal, Error> {
    host::current().agent_bootstrap(settings).map(Seal).map_err(|error| failed("building the user-data", error))
}

/// The VM exists; its Agent asks the registry for `registry_key`.
pub fn created(vm: &str, registry_key: &str) -> Result<(), Error> {
    host::current().agent_created(vm, registry_key).map_err(|error| failed("storing the VM's agent settings", error))
}

pub fn attached(registry_key: &str, disk: &str, hint: &DiskHint) -> Result<(), Error> {
    host::current()
        .agent_attached(registry_key, disk, hint)
        .map_err(|error| failed("telling the agent of a disk", error))
}

pub fn detached(registry_key: &str, disk: &str) -> Result<(), Error> {
    host::current().agent_detached(registry_key, disk).map_err(|error| failed("taking a disk from the agent", error))
}

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
