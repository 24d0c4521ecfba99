//! Things that are not there, any more or at all: not found where clients know
//! the word for it, and fine where that is what was asked for.

use super::{Cpi, small};
use serde_json::{Value, json};
use tests::Response;
use tests::openstack::on_each_cloud;

const NOWHERE: &str = "11111111-2222-4333-8444-555555555555";
const VM: &str = "Bosh::Clouds::VMNotFound";
const DISK: &str = "Bosh::Clouds::DiskNotFound";
const NETWORK: &str = "Bosh::Clouds::NetworkNotFound";

/// The type of the error, or the result.
fn ending(response: &Response) -> Value {
    if response.json["error"].is_null() { response.json["result"].clone() } else { json!(response.error_type()) }
}

#[test]
fn what_is_gone_is_answered_in_the_clients_words() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let (vm, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.71"));
        for (method, arguments, expected) in [
            ("has_vm", json!([NOWHERE]), json!(false)),
            ("has_disk", json!([NOWHERE]), json!(false)),
            ("delete_vm", json!([NOWHERE]), json!(VM)),
            ("reboot_vm", json!([NOWHERE]), json!(VM)),
            ("set_vm_metadata", json!([NOWHERE, {"a": "b"}]), json!(VM)),
            ("get_disks", json!([NOWHERE]), json!(VM)),
            ("attach_disk", json!([NOWHERE, disk]), json!(VM)),
            ("attach_disk", json!([vm, NOWHERE]), json!(DISK)),
            ("detach_disk", json!([NOWHERE, disk]), json!(VM)),
            // Neither is attached to it.
            ("detach_disk", json!([vm, NOWHERE]), Value::Null),
            ("detach_disk", json!([vm, disk]), Value::Null),
            ("delete_disk", json!([NOWHERE]), json!(DISK)),
            ("resize_disk", json!([NOWHERE, 2048]), json!(DISK)),
            ("update_disk", json!([NOWHERE, 2048, {}]), json!(DISK)),
            ("set_disk_metadata", json!([NOWHERE, {"a": "b"}]), json!(DISK)),
            ("snapshot_disk", json!([NOWHERE, {}]), json!(DISK)),
            ("delete_snapshot", json!([NOWHERE]), Value::Null),
            ("delete_network", json!([NOWHERE]), json!(NETWORK)),
            // Names that are no IDs, and would be other paths.
            ("has_vm", json!(["../flavors/detail"]), json!(false)),
            ("has_vm", json!(["no id at all"]), json!(false)),
            ("has_disk", json!(["detail?all_tenants=1"]), json!(false)),
            ("delete_vm", json!([".."]), json!(VM)),
        ] {
            let response = cpi.ask(method, arguments.clone());
            assert_eq!(ending(&response), expected, "{name}: {method} {arguments}: {}", response.json);
        }
        // The Director does not know the word for a stemcell, which is fine; the CLI does.
        assert_eq!(cpi.ok("delete_stemcell", json!([NOWHERE])), Value::Null, "{name}");
        let response = cpi.job.call("delete_stemcell", json!([NOWHERE])).cli().run();
        assert_eq!(response.error_type(), "Bosh::Clouds::StemcellNotFound", "{name}");

        for (method, arguments) in [("delete_vm", json!([vm])), ("delete_disk", json!([disk]))] {
            cpi.ok(method, arguments.clone());
            let expected = if method == "delete_vm" { VM } else { DISK };
            assert_eq!(ending(&cpi.ask(method, arguments)), expected, "{name}: {method}");
        }
        cpi.ok("delete_stemcell", json!([stemcell]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}
