//! A deployment with a light stemcell on moto, which is not by the authors of this repository.

use super::super::moto::Moto;
use super::{Cpi, with};
use serde_json::json;

#[test]
fn a_deployment_can_be_created_and_deleted_on_moto() {
    let Some(moto) = Moto::start() else { return };
    for version in [1, 2, 3] {
        let cpi = Cpi::on(moto.cloud.clone(), version, &json!({}));
        let before = cpi.contents();
        let light = json!({"name": "light", "version": "1", "ami": {cpi.region(): cpi.cloud["image"]}});
        let stemcell = cpi.ok("create_stemcell", json!([cpi.image(), light]));
        let mut networks = cpi.manual(&format!("10.0.0.2{version}"));
        networks["public"] = json!({"type": "vip", "ip": cpi.cloud["elastic_ip"], "cloud_properties": {}});
        let properties = with(
            cpi.small(),
            json!({
                "security_groups": [cpi.cloud["security_group_name"]], "lb_target_groups": [cpi.cloud["target_group"]],
                "source_dest_check": false, "tags": {"cost": 7},
            }),
        );
        let arguments = json!(["agent-1", stemcell, properties, networks, [], tests::cloud::env()]);
        let (vm, _) = cpi.create_vm(arguments);
        assert_eq!(cpi.user_data(&vm)["networks"]["net"]["ip"], format!("10.0.0.2{version}"));
        cpi.ok("set_vm_metadata", json!([vm, {"deployment": "d"}]));
        let disk = cpi.ok("create_disk", json!([1024, {}, vm]));
        cpi.ok("attach_disk", json!([vm, disk]));
        let snapshot = cpi.ok("snapshot_disk", json!([disk, {"deployment": "d"}]));
        cpi.ok("delete_snapshot", json!([snapshot]));
        cpi.ok("detach_disk", json!([vm, disk]));
        cpi.ok("delete_vm", json!([vm]));
        cpi.ok("delete_disk", json!([disk]));
        cpi.ok("delete_stemcell", json!([stemcell]));
        let after = cpi.contents();
        // Moto keeps the association of an Elastic IP with an instance that has ended.
        let left: Vec<_> = after.difference(&before).filter(|name| !name.starts_with("eipassoc-")).collect();
        assert!(left.is_empty(), "API {version}: {left:?}");
    }
}
