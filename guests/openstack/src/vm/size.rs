//! The sizes of flavors: which flavor `calculate_vm_cloud_properties` returns, and
//! which flavors `create_vm` accepts.

use serde_json::json;
use wasm_cpi_sdk::{Error, Json, VmSize};

use crate::api::Flavor;
use crate::session::Session;

/// The part of a root disk that the operating system uses, in GiB.
const SYSTEM_GIB: u64 = 3;

/// Returns the `cloud_properties` with the smallest flavor that is at least this large.
pub(crate) fn cloud_properties(session: &Session, size: VmSize) -> Result<Json, Error> {
    let flavors = session.compute()?.flavors()?;
    let from_volume = session.properties.boot_from_volume();
    let disk = size.ephemeral_disk_mb.div_ceil(1024);
    let fitting = fitting(&flavors, &size, disk, from_volume);
    let order = |flavor: &&&Flavor| (flavor.vcpus, flavor.ram, flavor.disk + flavor.ephemeral, flavor.disk);
    let Some(flavor) = fitting.iter().min_by_key(order) else {
        return Err(nothing_fits(&flavors, &size, disk));
    };
    let needed = if flavor.ephemeral == 0 { SYSTEM_GIB + disk } else { SYSTEM_GIB };
    if from_volume && flavor.disk < needed {
        return Ok(Json::from(json!({"instance_type": flavor.name, "root_disk": {"size": needed}})));
    }
    Ok(Json::from(json!({"instance_type": flavor.name})))
}

fn fitting<'a>(flavors: &'a [Flavor], size: &VmSize, disk: u64, from_volume: bool) -> Vec<&'a Flavor> {
    let large: Vec<&Flavor> = flavors
        .iter()
        .filter(|flavor| flavor.vcpus >= u64::from(size.cpu) && flavor.ram >= size.ram_mib)
        .filter(|flavor| !flavor.disabled && has_room_for_swap(flavor))
        .collect();
    let pick = |fits: &dyn Fn(&Flavor) -> bool| -> Vec<&'a Flavor> {
        large.iter().copied().filter(|flavor| fits(flavor)).collect()
    };
    let with_disk = pick(&|flavor| flavor.ephemeral >= disk && (from_volume || flavor.disk >= SYSTEM_GIB));
    if !with_disk.is_empty() {
        return with_disk;
    }
    // The Agent uses the ephemeral disk of a flavor that has one, even if it is too small.
    pick(&|flavor| flavor.ephemeral == 0 && (from_volume || flavor.disk >= disk + SYSTEM_GIB))
}

fn nothing_fits(flavors: &[Flavor], size: &VmSize, disk: u64) -> Error {
    let line = |flavor: &Flavor| {
        let Flavor { name, vcpus, ram, disk, ephemeral, .. } = flavor;
        format!("{name} ({vcpus} CPU, {ram} MiB, {disk}+{ephemeral} GiB)")
    };
    let list: Vec<String> = flavors.iter().map(line).collect();
    Error::cloud(format!(
        "no flavor has {} CPU, {} MiB of memory and {disk} GiB of ephemeral disk; request a smaller size, or create a \
         flavor; the flavors are: {}",
        size.cpu,
        size.ram_mib,
        list.join(", ")
    ))
}

/// Returns the GiB that the Agent needs for data and for swap, which is as large as
/// the memory.
pub(super) fn least_ephemeral(flavor: &Flavor) -> u64 {
    flavor.ram / 1024 * 2
}

pub(super) fn has_room_for_swap(flavor: &Flavor) -> bool {
    flavor.ephemeral == 0 || flavor.ephemeral >= least_ephemeral(flavor)
}
