//! The scenarios of the fault matrix: each sets up a situation in which a method sends
//! all kinds of its requests, and cleans up what the call created.

use super::faults::Fixture;
use super::{Cpi, manual_network};
use serde_json::{Value, json};
use tests::Response;
use tests::openstack::Service;

/// The name of a port that no device uses.
const UNUSED_PORT: &str = "left-behind";

/// A method in a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    CreateStemcell,
    /// The VM has a fixed and a floating address.
    CreateVm,
    /// The cloud chooses the address; the VM has a boot volume and a server group.
    CreateVmOfVolume,
    /// The VM is the first of its server group and is created in the zone of its disk. An
    /// unused port has its address, and its allowed address must have a port.
    CreateFirstVm,
    DeleteVm,
    AttachDisk,
    DetachDisk,
    CreateDisk,
    DeleteDisk,
    SnapshotDisk,
    DeleteSnapshot,
    CreateNetwork,
    DeleteNetwork,
    DeleteStemcell,
}

impl Scenario {
    pub(super) const ALL: [Scenario; 14] = [
        Scenario::CreateStemcell,
        Scenario::CreateVm,
        Scenario::CreateVmOfVolume,
        Scenario::CreateFirstVm,
        Scenario::DeleteVm,
        Scenario::AttachDisk,
        Scenario::DetachDisk,
        Scenario::CreateDisk,
        Scenario::DeleteDisk,
        Scenario::SnapshotDisk,
        Scenario::DeleteSnapshot,
        Scenario::CreateNetwork,
        Scenario::DeleteNetwork,
        Scenario::DeleteStemcell,
    ];

    pub(super) fn method(self) -> &'static str {
        match self {
            Scenario::CreateStemcell => "create_stemcell",
            Scenario::CreateVm | Scenario::CreateVmOfVolume | Scenario::CreateFirstVm => "create_vm",
            Scenario::DeleteVm => "delete_vm",
            Scenario::AttachDisk => "attach_disk",
            Scenario::DetachDisk => "detach_disk",
            Scenario::CreateDisk => "create_disk",
            Scenario::DeleteDisk => "delete_disk",
            Scenario::SnapshotDisk => "snapshot_disk",
            Scenario::DeleteSnapshot => "delete_snapshot",
            Scenario::CreateNetwork => "create_network",
            Scenario::DeleteNetwork => "delete_network",
            Scenario::DeleteStemcell => "delete_stemcell",
        }
    }

    /// Returns true for methods that remove something. If one fails, a second call cleans up.
    pub(super) fn removes(self) -> bool {
        self.method().starts_with("delete_") || self == Scenario::DetachDisk
    }

    /// Creates what the call needs and returns the arguments of the call.
    pub(super) fn set_up(self, fixture: &Fixture<'_>) -> Value {
        let cpi = &fixture.cpi;
        let network = json!([{"type": "manual", "range": "10.8.0.0/24", "cloud_properties": {}}]);
        match self {
            Scenario::CreateStemcell => json!([cpi.image(), {"name": "little", "disk_format": "raw"}]),
            Scenario::CreateVm => {
                let mut networks = manual_network(&cpi.cloud, "10.0.0.31");
                networks["vip"] = json!({"type": "vip", "ip": cpi.cloud["floating_ip"], "cloud_properties": {}});
                json!(["agent", fixture.stemcell, {"instance_type": "m1.tiny"}, networks, [], {}])
            }
            Scenario::CreateVmOfVolume => {
                let networks =
                    json!({"net": {"type": "dynamic", "cloud_properties": {"net_id": cpi.cloud["network"]}}});
                let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
                json!(["agent", fixture.stemcell, properties, networks, [], tests::cloud::env()])
            }
            Scenario::CreateFirstVm => {
                let fixed = json!([{"ip_address": "10.0.0.33"}]);
                let port =
                    json!({"port": {"network_id": cpi.cloud["network"], "fixed_ips": fixed, "name": UNUSED_PORT}});
                let made = cpi.api.request(Service::Network, "POST", "/ports", Some(&port));
                assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
                let properties = json!({
                    "instance_type": "m1.tiny", "allowed_address_pairs": Fixture::ADDRESS, "vrrp_port_check": true,
                });
                let networks = manual_network(&cpi.cloud, "10.0.0.33");
                json!(["agent", fixture.stemcell, properties, networks, [fixture.disk], {"bosh": {"group": "new"}}])
            }
            Scenario::DeleteVm => {
                let networks = manual_network(&cpi.cloud, "10.0.0.32");
                let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
                json!([cpi.create_vm(json!(["agent", fixture.stemcell, properties, networks, [], {}])).0])
            }
            Scenario::AttachDisk => json!([fixture.vm, fixture.disk]),
            Scenario::DetachDisk => {
                cpi.ok("attach_disk", json!([fixture.vm, fixture.disk]));
                json!([fixture.vm, fixture.disk])
            }
            Scenario::CreateDisk => json!([1024, {}, fixture.vm]),
            Scenario::DeleteDisk => json!([cpi.cid("create_disk", json!([1024, {}, null]))]),
            Scenario::SnapshotDisk => json!([fixture.disk, {"deployment": "d"}]),
            Scenario::DeleteSnapshot => json!([cpi.cid("snapshot_disk", json!([fixture.disk, {}]))]),
            Scenario::CreateNetwork => network,
            Scenario::DeleteNetwork => json!([cpi.ok("create_network", network)[0]]),
            Scenario::DeleteStemcell => json!([cpi.stemcell()]),
        }
    }

    /// Deletes what the call created. Repeats a deletion that failed.
    pub(super) fn clean_up(self, cpi: &Cpi<'_>, arguments: &Value, response: &Response) {
        let result = &response.json["result"];
        let made = response.json["error"].is_null();
        if self.removes() {
            if !made {
                let again = cpi.run(self.method(), arguments.clone());
                let succeeded = again.json["error"].is_null() || again.error_type().ends_with("NotFound");
                assert!(succeeded, "a second {self:?}: {}", again.json);
            }
            return;
        }
        if self == Scenario::CreateFirstVm {
            for port in cpi.api.ports().iter().filter(|port| port["name"] == UNUSED_PORT) {
                let path = format!("/ports/{}", port["id"].as_str().unwrap_or_default());
                cpi.api.request(Service::Network, "DELETE", &path, None);
            }
        }
        let (undo, cid) = match self {
            Scenario::CreateStemcell => ("delete_stemcell", json!([result])),
            Scenario::AttachDisk => ("detach_disk", arguments.clone()),
            Scenario::CreateDisk => ("delete_disk", json!([result])),
            Scenario::SnapshotDisk => ("delete_snapshot", json!([result])),
            Scenario::CreateNetwork => ("delete_network", json!([result[0]])),
            _ => ("delete_vm", json!([result[0]])),
        };
        if made {
            cpi.ok(undo, cid);
        }
    }
}
