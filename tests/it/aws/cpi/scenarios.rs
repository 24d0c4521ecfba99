//! The scenarios of the fault matrix: each sets up a situation in which a method sends all kinds of its requests, and
//! cleans up what the call created.

use super::faults::Fixture;
use super::with;
use serde_json::{Value, json};
use tests::Response;

/// The destination of the route.
const ROUTE: &str = "10.9.0.0/16";

/// A method in a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// The VM has one network.
    CreateVm,
    /// The VM has two networks with an interface each, and public addresses.
    CreateVmWithNics,
    /// The VM has an Elastic IP, a load balancer, a target group and a route.
    CreateConnectedVm,
    /// The VM is a connected one.
    DeleteVm,
    AttachDisk,
    CreateStemcell,
    LightStemcell,
    /// The image of a light stemcell is copied.
    EncryptedStemcell,
}

impl Scenario {
    pub(super) const ALL: [Scenario; 8] = [
        Scenario::CreateVm,
        Scenario::CreateVmWithNics,
        Scenario::CreateConnectedVm,
        Scenario::DeleteVm,
        Scenario::AttachDisk,
        Scenario::CreateStemcell,
        Scenario::LightStemcell,
        Scenario::EncryptedStemcell,
    ];

    pub(super) fn method(self) -> &'static str {
        match self {
            Scenario::CreateVm | Scenario::CreateVmWithNics | Scenario::CreateConnectedVm => "create_vm",
            Scenario::DeleteVm => "delete_vm",
            Scenario::AttachDisk => "attach_disk",
            Scenario::CreateStemcell | Scenario::LightStemcell | Scenario::EncryptedStemcell => "create_stemcell",
        }
    }

    /// Returns true for methods that remove something. If one fails, a second call cleans up.
    pub(super) fn removes(self) -> bool {
        self == Scenario::DeleteVm
    }

    /// Creates what the call needs and returns the arguments of the call.
    pub(super) fn set_up(self, fixture: &Fixture<'_>) -> Value {
        let cpi = &fixture.cpi;
        let light = json!({"name": "light", "version": "1", "ami": {"us-east-1": cpi.cloud["image"]}});
        match self {
            Scenario::CreateVm => cpi.vm(cpi.small(), cpi.manual("10.0.0.31")),
            Scenario::CreateVmWithNics => {
                let mut networks = cpi.manual("10.0.0.32");
                let other = json!({
                    "type": "manual", "ip": "10.0.0.33", "netmask": "255.255.255.0", "gateway": "10.0.0.1",
                    "cloud_properties": {"subnet": cpi.cloud["subnet"]},
                });
                networks["other"] = other;
                cpi.vm(with(cpi.small(), json!({"auto_assign_public_ip": true})), networks)
            }
            Scenario::CreateConnectedVm => connected_vm(fixture),
            Scenario::DeleteVm => json!([cpi.create_vm(connected_vm(fixture)).0]),
            Scenario::AttachDisk => json!([fixture.vm, fixture.disk]),
            Scenario::CreateStemcell => {
                let properties = json!({
                    "name": "little", "version": "1", "architecture": "x86_64", "root_device_name": "/dev/sda1",
                    "disk": 1024, "virtualization_type": "hvm",
                });
                json!([cpi.image(), properties])
            }
            Scenario::LightStemcell => json!([cpi.image(), light]),
            Scenario::EncryptedStemcell => json!([cpi.image(), with(light, json!({"encrypted": true}))]),
        }
    }

    /// Deletes what the call created. Repeats a deletion that failed.
    pub(super) fn clean_up(self, fixture: &Fixture<'_>, arguments: &Value, response: &Response) {
        let (cpi, result) = (&fixture.cpi, &response.json["result"]);
        let made = response.json["error"].is_null();
        if self.removes() {
            if !made {
                let again = cpi.run(self.method(), arguments.clone());
                let succeeded = again.json["error"].is_null() || again.error_type().ends_with("NotFound");
                assert!(succeeded, "a second {self:?}: {}", again.json);
            }
            // bosh-aws-cpi does not need the right to delete routes: without it, the VM is deleted, and the log names
            // the route.
            if response.stderr.contains("DeleteRoute failed with UnauthorizedOperation") {
                let table = cpi.cloud["route_table"].as_str().unwrap_or_default();
                cpi.listed("DeleteRoute", &[("RouteTableId", table), ("DestinationCidrBlock", ROUTE)], "return");
            }
            return;
        }
        if !made {
            return;
        }
        match self.method() {
            "create_vm" => drop(cpi.ok("delete_vm", json!([result[0]]))),
            "attach_disk" => drop(cpi.listed("DetachVolume", &[("VolumeId", &fixture.disk)], "status")),
            _ => drop(cpi.ok("delete_stemcell", json!([result]))),
        }
    }
}

/// Returns the arguments of `create_vm` for a VM to which everything points that an operator can connect to it.
fn connected_vm(fixture: &Fixture<'_>) -> Value {
    let cpi = &fixture.cpi;
    let mut networks = cpi.manual("10.0.0.34");
    networks["public"] = json!({"type": "vip", "ip": cpi.cloud["elastic_ip"], "cloud_properties": {}});
    let properties = json!({
        "security_groups": [cpi.cloud["security_group_name"]], "elbs": [cpi.cloud["load_balancer"]],
        "lb_target_groups": [cpi.cloud["target_group"]], "source_dest_check": false,
        "advertised_routes": [{"table_id": cpi.cloud["route_table"], "destination": ROUTE}],
    });
    cpi.vm(with(cpi.small(), properties), networks)
}
