//! The life of a VM with a disk: the calls that a Director makes, each method once.

use super::cpi::{Call, Cpi, Site};
use crate::Bench;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The calls of a pass, in their order.
pub(super) const METHODS: [&str; 17] = [
    "create_stemcell",
    "create_vm",
    "set_vm_metadata",
    "create_disk",
    "attach_disk",
    "set_disk_metadata",
    "get_disks",
    "snapshot_disk",
    "has_vm",
    "reboot_vm",
    "detach_disk",
    "resize_disk",
    "has_disk",
    "delete_snapshot",
    "delete_disk",
    "delete_vm",
    "delete_stemcell",
];

/// The ids of what exists in the cloud.
struct Ids {
    image: PathBuf,
    network: Value,
    stemcell: Value,
    vm: Value,
    disk: Value,
    snapshot: Value,
}

/// Runs all calls once, and `each` after each of them.
pub(super) fn run(
    bench: &Bench,
    cpi: &Cpi,
    site: &Site,
    mut each: impl FnMut(&'static str, &Call) -> Result<(), String>,
) -> Result<(), String> {
    let mut ids = Ids {
        image: Cpi::image(bench),
        network: site.cloud.description()["network"].take(),
        stemcell: Value::Null,
        vm: Value::Null,
        disk: Value::Null,
        snapshot: Value::Null,
    };
    for method in METHODS {
        let call = cpi.call(bench, site, method, ids.arguments(method))?;
        ids.remember(method, &call.result);
        each(method, &call)?;
    }
    Ok(())
}

impl Ids {
    fn arguments(&self, method: &str) -> Value {
        let Ids { image, network, stemcell, vm, disk, snapshot } = self;
        match method {
            "create_stemcell" => json!([image, {"name": "little", "version": "1", "disk_format": "raw"}]),
            "create_vm" => {
                let networks = json!({"default": {
                    "type": "manual", "ip": "10.0.0.11", "netmask": "255.255.255.0", "gateway": "10.0.0.1",
                    "dns": ["10.0.0.2"], "default": ["dns", "gateway"], "cloud_properties": {"net_id": network},
                }});
                json!(["agent-1", stemcell, {"instance_type": "m1.small"}, networks, [], tests::cloud::env()])
            }
            "set_vm_metadata" => json!([vm, {"deployment": "d", "job": "web", "index": "0", "name": "web/0"}]),
            "create_disk" => json!([2048, {}, vm]),
            "attach_disk" | "detach_disk" => json!([vm, disk]),
            "set_disk_metadata" => json!([disk, {"deployment": "d", "instance_group": "web"}]),
            "snapshot_disk" => json!([disk, {"deployment": "d", "job": "web", "index": "0"}]),
            "resize_disk" => json!([disk, 4096]),
            "has_disk" | "delete_disk" => json!([disk]),
            "delete_snapshot" => json!([snapshot]),
            "delete_stemcell" => json!([stemcell]),
            // get_disks, has_vm, reboot_vm, delete_vm
            _ => json!([vm]),
        }
    }

    /// Stores the id that the call returned.
    fn remember(&mut self, method: &str, result: &Value) {
        match method {
            "create_stemcell" => self.stemcell = result.clone(),
            "create_vm" => self.vm = result[0].clone(),
            "create_disk" => self.disk = result.clone(),
            "snapshot_disk" => self.snapshot = result.clone(),
            _ => {}
        }
    }
}
