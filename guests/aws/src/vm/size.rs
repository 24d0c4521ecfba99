//! `calculate_vm_cloud_properties`: the smallest instance type of a current generation that fits.

use serde_json::json;
use wasm_cpi_sdk::{Error, Json, VmSize};

use super::static_types;
use crate::api::ec2::InstanceType;
use crate::session::Session;

/// The architecture of stemcells, which calculations do not name.
const ARCHITECTURE: &str = "x86_64";

pub(crate) fn cloud_properties(session: &Session, size: VmSize) -> Result<Json, Error> {
    let name = if session.properties.describes_instance_types() {
        let all = session.ec2().instance_types().send_for_all_pages()?;
        smallest(&all, &size).ok_or_else(|| nothing_fits(&size))?
    } else {
        let fits = |known: &static_types::Size| known.cpus >= size.cpu.into() && known.memory_mib >= size.ram_mib;
        static_types::sizes().into_iter().find(fits).ok_or_else(|| nothing_fits(&size))?.name
    };
    Ok(Json::from(json!({"instance_type": name, "ephemeral_disk": {"size": size.ephemeral_disk_mb}})))
}

/// Returns the type with the fewest CPUs and the least memory. Types with local disks or accelerators cost more, so plain
/// ones come first; among equals the first name does, because older families exist in more zones.
fn smallest(all: &[InstanceType], size: &VmSize) -> Option<String> {
    let fits = |kind: &&InstanceType| {
        kind.is_current
            && !kind.is_bare_metal
            && kind.architectures.iter().any(|name| name == ARCHITECTURE)
            && kind.cpus >= size.cpu.into()
            && kind.memory_mib >= size.ram_mib
    };
    let order = |kind: &&InstanceType| (!is_plain(kind), kind.cpus, kind.memory_mib, kind.name.clone());
    all.iter().filter(fits).min_by_key(order).map(|kind| kind.name.clone())
}

/// Returns true for types of the families C, M, R and T without local disks.
fn is_plain(kind: &InstanceType) -> bool {
    let is_family =
        kind.name.starts_with(['c', 'm', 'r', 't']) && kind.name[1..].starts_with(|c: char| c.is_ascii_digit());
    is_family && kind.disks_gb.is_empty()
}

fn nothing_fits(size: &VmSize) -> Error {
    Error::cpi(format!(
        "no instance type has {} CPUs and {} MiB of memory; ask for less, or set instance_type in the cloud_properties",
        size.cpu, size.ram_mib
    ))
}
