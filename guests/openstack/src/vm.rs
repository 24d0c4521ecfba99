//! VMs: servers of Nova with ports of Neutron.

mod choice;
mod create;
mod delete;
mod deletion;
mod floating_ip;
mod leftovers;
mod metadata;
mod networks;
mod pools;
mod ports;
mod properties;
mod reboot;
mod server_group;
mod size;

pub(crate) use create::create;
pub(crate) use delete::delete;
pub(crate) use metadata::set_metadata;
pub(crate) use reboot::reboot;
pub(crate) use size::cloud_properties;

use wasm_cpi_sdk::Error;

use crate::api::{Server, Volume};
use crate::session::Session;

/// The tag that holds the key by which a VM's Agent asks the registry. VMs whose
/// name changes have it.
const REGISTRY_KEY: &str = "registry_key";

pub(crate) fn find(session: &Session, vm: &str) -> Result<Option<Server>, Error> {
    Ok(session.compute()?.server(vm)?.filter(|server| !server.is_gone()))
}

pub(crate) fn get(session: &Session, vm: &str) -> Result<Server, Error> {
    find(session, vm)?.ok_or_else(|| Error::vm_not_found(vm))
}

pub(crate) fn registry_key(server: &Server) -> &str {
    server.metadata.get(REGISTRY_KEY).unwrap_or(&server.name)
}

/// Returns true if Nova created this volume to boot a server from it. Disks are
/// never bootable, and have a name.
pub(crate) fn is_boot_volume(volume: &Volume) -> bool {
    volume.bootable == "true" && volume.name.as_deref().is_none_or(str::is_empty)
}
