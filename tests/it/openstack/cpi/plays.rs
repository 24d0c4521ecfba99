//! The plays of the fault matrix: methods in situations that make them ask for
//! all they ever ask for, and what takes away again what an answer owns.

use super::faults::Scene;
use super::{Cpi, manual};
use serde_json::{Value, json};
use tests::Response;
use tests::openstack::Service;

/// The name of a port that belongs to nothing.
const LEFT: &str = "left-behind";

/// A method in a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Play {
    CreateStemcell,
    /// A fixed address and a floating one.
    CreateVm,
    /// An address of the cloud's choice, a volume to boot from, a server group.
    CreateVmOfVolume,
    /// The first of its group, where its disk is, at an address that an unused port
    /// holds, with another address that has to have a port.
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

impl Play {
    pub(super) const ALL: [Play; 14] = [
        Play::CreateStemcell,
        Play::CreateVm,
        Play::CreateVmOfVolume,
        Play::CreateFirstVm,
        Play::DeleteVm,
        Play::AttachDisk,
        Play::DetachDisk,
        Play::CreateDisk,
        Play::DeleteDisk,
        Play::SnapshotDisk,
        Play::DeleteSnapshot,
        Play::CreateNetwork,
        Play::DeleteNetwork,
        Play::DeleteStemcell,
    ];

    pub(super) fn method(self) -> &'static str {
        match self {
            Play::CreateStemcell => "create_stemcell",
            Play::CreateVm | Play::CreateVmOfVolume | Play::CreateFirstVm => "create_vm",
            Play::DeleteVm => "delete_vm",
            Play::AttachDisk => "attach_disk",
            Play::DetachDisk => "detach_disk",
            Play::CreateDisk => "create_disk",
            Play::DeleteDisk => "delete_disk",
            Play::SnapshotDisk => "snapshot_disk",
            Play::DeleteSnapshot => "delete_snapshot",
            Play::CreateNetwork => "create_network",
            Play::DeleteNetwork => "delete_network",
            Play::DeleteStemcell => "delete_stemcell",
        }
    }

    /// What fails of it may still be there: asking again takes it away.
    pub(super) fn deletes(self) -> bool {
        self.method().starts_with("delete_") || self == Play::DetachDisk
    }

    /// Makes what it needs from before; answers its arguments.
    pub(super) fn stage(self, scene: &Scene<'_>) -> Value {
        let cpi = &scene.cpi;
        let network = json!([{"type": "manual", "range": "10.8.0.0/24", "cloud_properties": {}}]);
        match self {
            Play::CreateStemcell => json!([cpi.image(), {"name": "little", "disk_format": "raw"}]),
            Play::CreateVm => {
                let mut networks = manual(&cpi.cloud, "10.0.0.31");
                networks["vip"] = json!({"type": "vip", "ip": cpi.cloud["floating_ip"], "cloud_properties": {}});
                json!(["agent", scene.stemcell, {"instance_type": "m1.tiny"}, networks, [], {}])
            }
            Play::CreateVmOfVolume => {
                let networks =
                    json!({"net": {"type": "dynamic", "cloud_properties": {"net_id": cpi.cloud["network"]}}});
                let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
                json!(["agent", scene.stemcell, properties, networks, [], tests::cloud::env()])
            }
            Play::CreateFirstVm => {
                let fixed = json!([{"ip_address": "10.0.0.33"}]);
                let port = json!({"port": {"network_id": cpi.cloud["network"], "fixed_ips": fixed, "name": LEFT}});
                let made = cpi.api.request(Service::Network, "POST", "/ports", Some(&port));
                assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
                let properties = json!({
                    "instance_type": "m1.tiny", "allowed_address_pairs": Scene::ADDRESS, "vrrp_port_check": true,
                });
                let networks = manual(&cpi.cloud, "10.0.0.33");
                json!(["agent", scene.stemcell, properties, networks, [scene.disk], {"bosh": {"group": "new"}}])
            }
            Play::DeleteVm => {
                let networks = manual(&cpi.cloud, "10.0.0.32");
                let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
                json!([cpi.create_vm(json!(["agent", scene.stemcell, properties, networks, [], {}])).0])
            }
            Play::AttachDisk => json!([scene.vm, scene.disk]),
            Play::DetachDisk => {
                cpi.ok("attach_disk", json!([scene.vm, scene.disk]));
                json!([scene.vm, scene.disk])
            }
            Play::CreateDisk => json!([1024, {}, scene.vm]),
            Play::DeleteDisk => json!([cpi.cid("create_disk", json!([1024, {}, null]))]),
            Play::SnapshotDisk => json!([scene.disk, {"deployment": "d"}]),
            Play::DeleteSnapshot => json!([cpi.cid("snapshot_disk", json!([scene.disk, {}]))]),
            Play::CreateNetwork => network,
            Play::DeleteNetwork => json!([cpi.ok("create_network", network)[0]]),
            Play::DeleteStemcell => json!([cpi.stemcell()]),
        }
    }

    /// Takes away what the answer owns; of a delete that failed, all.
    pub(super) fn clean(self, cpi: &Cpi<'_>, arguments: &Value, response: &Response) {
        let result = &response.json["result"];
        let made = response.json["error"].is_null();
        if self.deletes() {
            if !made {
                let again = cpi.ask(self.method(), arguments.clone());
                let fine = again.json["error"].is_null() || again.error_type().ends_with("NotFound");
                assert!(fine, "a second {self:?}: {}", again.json);
            }
            return;
        }
        if self == Play::CreateFirstVm {
            for port in cpi.api.ports().iter().filter(|port| port["name"] == LEFT) {
                let path = format!("/ports/{}", port["id"].as_str().unwrap_or_default());
                cpi.api.request(Service::Network, "DELETE", &path, None);
            }
        }
        let (undo, cid) = match self {
            Play::CreateStemcell => ("delete_stemcell", json!([result])),
            Play::AttachDisk => ("detach_disk", arguments.clone()),
            Play::CreateDisk => ("delete_disk", json!([result])),
            Play::SnapshotDisk => ("delete_snapshot", json!([result])),
            Play::CreateNetwork => ("delete_network", json!([result[0]])),
            _ => ("delete_vm", json!([result[0]])),
        };
        if made {
            cpi.ok(undo, cid);
        }
    }
}
