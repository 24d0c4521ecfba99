//! Resources that do not exist, or not any more: an error of the type that the clients
//! know, or a success where the call was to remove the resource.

use super::{Cpi, small_vm};
use serde_json::{Value, json};
use tests::Response;
use tests::openstack::on_each_cloud;

const UNKNOWN: &str = "11111111-2222-4333-8444-555555555555";
const VM_NOT_FOUND: &str = "Bosh::Clouds::VMNotFound";
const DISK_NOT_FOUND: &str = "Bosh::Clouds::DiskNotFound";
const NETWORK_NOT_FOUND: &str = "Bosh::Clouds::NetworkNotFound";

/// Returns the type of the error, or the result.
fn outcome(response: &Response) -> Value {
    if response.json["error"].is_null() { response.json["result"].clone() } else { json!(response.error_type()) }
}

#[test]
fn missing_resources_are_reported_with_the_error_types_of_the_clients() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let (vm, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.71"));
        for (method, arguments, expected) in [
            ("has_vm", json!([UNKNOWN]), json!(false)),
            ("has_disk", json!([UNKNOWN]), json!(false)),
            ("delete_vm", json!([UNKNOWN]), json!(VM_NOT_FOUND)),
            ("reboot_vm", json!([UNKNOWN]), json!(VM_NOT_FOUND)),
            ("set_vm_metadata", json!([UNKNOWN, {"a": "b"}]), json!(VM_NOT_FOUND)),
            ("get_disks", json!([UNKNOWN]), json!(VM_NOT_FOUND)),
            ("attach_disk", json!([UNKNOWN, disk]), json!(VM_NOT_FOUND)),
            ("attach_disk", json!([vm, UNKNOWN]), json!(DISK_NOT_FOUND)),
            ("detach_disk", json!([UNKNOWN, disk]), json!(VM_NOT_FOUND)),
            // Neither disk is attached to the VM.
            ("detach_disk", json!([vm, UNKNOWN]), Value::Null),
            ("detach_disk", json!([vm, disk]), Value::Null),
            ("delete_disk", json!([UNKNOWN]), json!(DISK_NOT_FOUND)),
            ("resize_disk", json!([UNKNOWN, 2048]), json!(DISK_NOT_FOUND)),
            ("update_disk", json!([UNKNOWN, 2048, {}]), json!(DISK_NOT_FOUND)),
            ("set_disk_metadata", json!([UNKNOWN, {"a": "b"}]), json!(DISK_NOT_FOUND)),
            ("snapshot_disk", json!([UNKNOWN, {}]), json!(DISK_NOT_FOUND)),
            ("delete_snapshot", json!([UNKNOWN]), Value::Null),
            ("delete_network", json!([UNKNOWN]), json!(NETWORK_NOT_FOUND)),
            // These are not IDs, and would lead to other paths of the API.
            ("has_vm", json!(["../flavors/detail"]), json!(false)),
            ("has_vm", json!(["no id at all"]), json!(false)),
            // The policy refuses a path that a server could read as one with a query.
            ("has_disk", json!(["detail?all_tenants=1"]), json!("Bosh::Clouds::CloudError")),
            ("delete_vm", json!([".."]), json!(VM_NOT_FOUND)),
        ] {
            let response = cpi.run(method, arguments.clone());
            assert_eq!(outcome(&response), expected, "{name}: {method} {arguments}: {}", response.json);
        }
        // The Director has no error type for a missing stemcell, so that the call succeeds; the CLI has one.
        assert_eq!(cpi.ok("delete_stemcell", json!([UNKNOWN])), Value::Null, "{name}");
        let response = cpi.job.call("delete_stemcell", json!([UNKNOWN])).cli().run();
        assert_eq!(response.error_type(), "Bosh::Clouds::StemcellNotFound", "{name}");

        for (method, arguments) in [("delete_vm", json!([vm])), ("delete_disk", json!([disk]))] {
            cpi.ok(method, arguments.clone());
            let expected = if method == "delete_vm" { VM_NOT_FOUND } else { DISK_NOT_FOUND };
            assert_eq!(outcome(&cpi.run(method, arguments)), expected, "{name}: {method}");
        }
        cpi.ok("delete_stemcell", json!([stemcell]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}
