//! A deployment as a Director creates and deletes it, with every version of the API. The tests check what the Agent
//! finds, and that nothing is left.

use super::{Cpi, with};
use serde_json::{Value, json};
use tests::CLOUD_ERROR;
use tests::aws::{Gateway, Simulator};

#[test]
fn a_vm_can_be_created_and_deleted_with_each_api_version_without_leftovers() {
    for version in [1, 2, 3] {
        let gateway = Gateway::start(Simulator::new());
        let cpi = Cpi::with(&gateway, version, &json!({}));
        let before = cpi.contents();
        let vm = create_vm(&cpi);
        assert_eq!(cpi.ok("has_vm", json!([vm])), true);
        let metadata = json!({"director": "bosh", "deployment": "d", "job": "web", "index": "0", "name": "web/1"});
        cpi.ok("set_vm_metadata", json!([vm, metadata]));
        let tags = cpi.listed(
            "DescribeVolumes",
            &[("Filter.1.Name", "tag:deployment"), ("Filter.1.Value.1", "d")],
            "volumeId",
        );
        assert_eq!(tags.len(), 4, "two volumes, each with the ID of its own and of its attachment");
        cpi.ok("reboot_vm", json!([vm]));
        cpi.ok("delete_vm", json!([vm]));
        assert_eq!(cpi.ok("has_vm", json!([vm])), false);
        assert_eq!(cpi.contents(), before, "API {version}");
        if let Some((_, registry)) = &cpi.registry {
            assert_eq!(registry.get(&vm), None);
        }
        cpi.run("delete_vm", json!(["i-0123456789abcdef0"]))
            .fails("Bosh::Clouds::VMNotFound", &["i-0123456789abcdef0"]);
        cpi.run("reboot_vm", json!(["i-bad"]))
            .fails(CLOUD_ERROR, &["RebootInstances failed with InvalidInstanceID.Malformed"]);
    }
}

/// Creates a VM that uses everything that an operator can connect to it.
fn create_vm(cpi: &Cpi<'_>) -> String {
    let mut networks = cpi.manual("10.0.0.21");
    networks["public"] = json!({"type": "vip", "ip": cpi.cloud["elastic_ip"], "cloud_properties": {}});
    let properties = with(
        cpi.small(),
        json!({
            "security_groups": [cpi.cloud["security_group_name"]], "elbs": [cpi.cloud["load_balancer"]],
            "lb_target_groups": [cpi.cloud["target_group"]], "source_dest_check": false,
            "advertised_routes": [{"table_id": cpi.cloud["route_table"], "destination": "10.9.0.0/16"}],
            "iam_instance_profile": cpi.cloud["instance_profile"], "placement_group": cpi.cloud["placement_group"],
            "metadata_options": {"http_tokens": "required"}, "root_disk": {"size": 8192}, "tags": {"cost": 7},
        }),
    );
    let (vm, returned) = cpi.create_vm(cpi.vm(properties, networks.clone()));
    if cpi.version > 1 {
        assert_eq!(returned["net"]["ip"], "10.0.0.21");
    }
    let own = [("InstanceId.1", vm.as_str())];
    for (name, value) in [
        ("privateIpAddress", "10.0.0.21"),
        ("ipAddress", cpi.cloud["elastic_ip"].as_str().unwrap_or_default()),
        ("sourceDestCheck", "false"),
        ("groupId", cpi.cloud["security_group"].as_str().unwrap_or_default()),
        ("httpTokens", "required"),
        ("keyName", "bosh"),
    ] {
        assert_eq!(cpi.listed("DescribeInstances", &own, name).first().map(String::as_str), Some(value), "{name}");
    }
    assert!(cpi.contents().contains("10.9.0.0/16"));
    assert_eq!(cpi.listed("DescribeLoadBalancers", &[], "InstanceId"), [vm.clone()]);
    let group = [("TargetGroupArn", cpi.cloud["target_group_arn"].as_str().unwrap_or_default())];
    assert_eq!(cpi.listed("DescribeTargetHealth", &group, "Id"), [vm.clone()]);
    check_settings(cpi, &vm, &networks);
    vm
}

/// Checks what the Agent finds in its user-data, or in the registry that this names.
fn check_settings(cpi: &Cpi<'_>, vm: &str, networks: &Value) {
    let data = cpi.user_data(vm);
    let mut network = networks["net"].clone();
    network["use_dhcp"] = json!(true);
    assert_eq!(data["networks"]["net"], network);
    let settings = match &cpi.registry {
        None => data,
        Some((_, registry)) => {
            assert!(data["registry"]["endpoint"].as_str().is_some_and(|url| url.starts_with("http://registry:")));
            assert_eq!((&data["mbus"], &data["env"]), (&Value::Null, &Value::Null));
            registry.get(vm).unwrap_or_else(|| panic!("no settings of {vm}"))
        }
    };
    for (key, value) in [
        ("agent_id", json!("agent-1")),
        ("ntp", json!(["10.0.0.7"])),
        ("env", tests::cloud::env()),
        ("disks", json!({"system": "/dev/xvda", "ephemeral": "/dev/sdb", "persistent": {}})),
    ] {
        assert_eq!(settings[key], value, "{key}");
    }
}
