//! A deployment as a Director creates and deletes it, with every version of the API. The tests check what the Agent
//! finds, and that nothing is left.

use super::{Cpi, with};
use serde_json::{Value, json};
use tests::CLOUD_ERROR;
use tests::aws::{Gateway, Simulator};

#[test]
fn a_deployment_can_be_created_and_deleted_with_each_api_version_without_leftovers() {
    for version in [1, 2, 3] {
        let simulator = Simulator::new();
        // One version is enough to wait for changes.
        if version != 2 {
            simulator.set_reads_before_change(0);
        }
        let gateway = Gateway::start(simulator);
        let cpi = Cpi::with(&gateway, version, &json!({}));
        let before = cpi.contents();
        let stemcell = upload_stemcell(&cpi);
        let light = json!({"name": "light", "version": "1", "ami": {"us-east-1": cpi.cloud["image"]}});
        assert_eq!(cpi.ok("create_stemcell", json!([cpi.image(), light])), cpi.stemcell());
        let vm = create_vm(&cpi, &stemcell);
        let disk = cpi.ok("create_disk", json!([1500, {"type": "gp3"}, vm]));
        assert_eq!(cpi.ok("has_vm", json!([vm])), true);
        let metadata = json!({"director": "bosh", "deployment": "d", "job": "web", "index": "0", "name": "web/1"});
        cpi.ok("set_vm_metadata", json!([vm, metadata]));
        let tagged = [("Filter.1.Name", "tag:deployment"), ("Filter.1.Value.1", "d")];
        assert_eq!(cpi.listed("DescribeVolumes", &tagged, "volumeType").len(), 2);
        attach_disk(&cpi, &vm, &disk);
        cpi.ok("reboot_vm", json!([vm]));
        cpi.ok("detach_disk", json!([vm, disk]));
        assert_eq!(cpi.ok("get_disks", json!([vm])).as_array().map(Vec::len), Some(2), "root and ephemeral disk");
        // EC2 optimizes a volume for hours after a change, and refuses another one.
        if version == 1 {
            cpi.ok("resize_disk", json!([disk, 3 * 1024]));
        } else {
            cpi.ok("update_disk", json!([disk, 10 * 1024, {"type": "gp3", "iops": 4000}]));
            let own = [("VolumeId.1", disk.as_str().unwrap_or_default())];
            assert_eq!(cpi.listed("DescribeVolumes", &own, "iops"), ["4000"]);
        }
        cpi.ok("delete_vm", json!([vm]));
        assert_eq!(cpi.ok("has_vm", json!([vm])), false);
        assert_eq!(cpi.ok("has_disk", json!([disk])), true);
        cpi.ok("delete_disk", json!([disk]));
        assert_eq!(cpi.ok("has_disk", json!([disk])), false);
        cpi.ok("delete_stemcell", json!([stemcell]));
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

/// Uploads a heavy stemcell: its disk goes into a snapshot, block by block.
fn upload_stemcell(cpi: &Cpi<'_>) -> String {
    let properties = json!({
        "name": "little", "version": "1", "architecture": "x86_64", "root_device_name": "/dev/sda1", "disk": 1024,
        "virtualization_type": "hvm",
    });
    let mut arguments = json!([cpi.image(), properties]);
    if let (3, Some(arguments)) = (cpi.version, arguments.as_array_mut()) {
        arguments.push(json!({"tags": {"team": "us"}}));
    }
    let stemcell = cpi.ok("create_stemcell", arguments);
    let own = [("ImageId.1", stemcell.as_str().unwrap_or_default())];
    assert_eq!(cpi.listed("DescribeImages", &own, "imageState"), ["available"]);
    assert_eq!(cpi.listed("DescribeImages", &own, "value").contains(&"us".to_owned()), cpi.version == 3);
    stemcell.as_str().unwrap_or_default().to_owned()
}

/// Attaches a disk, and checks how the Agent finds it.
fn attach_disk(cpi: &Cpi<'_>, vm: &str, disk: &Value) {
    let hint = cpi.ok("attach_disk", json!([vm, disk]));
    let name = disk.as_str().unwrap_or_default().replace('-', "");
    let path = format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{name}");
    match &cpi.registry {
        None => assert_eq!(hint, path),
        Some((_, registry)) => {
            assert_eq!(hint, Value::Null);
            let settings = registry.get(vm).unwrap_or_default();
            assert_eq!(settings["disks"]["persistent"][disk.as_str().unwrap_or_default()], path);
        }
    }
    assert!(cpi.ok("get_disks", json!([vm])).as_array().is_some_and(|disks| disks.contains(disk)));
    cpi.ok("set_disk_metadata", json!([disk, {"director": "bosh", "instance_index": "0"}]));
    let metadata = json!({"deployment": "d", "job": "web", "index": 0, "director_name": "bosh", "instance_id": "i"});
    let snapshot = cpi.ok("snapshot_disk", json!([disk, metadata]));
    cpi.ok("delete_snapshot", json!([snapshot]));
}

/// Creates a VM that uses everything that an operator can connect to it.
fn create_vm(cpi: &Cpi<'_>, stemcell: &str) -> String {
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
    let arguments = json!(["agent-1", stemcell, properties, networks, [], tests::cloud::env()]);
    let (vm, returned) = cpi.create_vm(arguments);
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
    assert_eq!(cpi.listed("DescribeLoadBalancers", &[], "InstanceId"), [vm.as_str()]);
    let group = [("TargetGroupArn", cpi.cloud["target_group_arn"].as_str().unwrap_or_default())];
    assert_eq!(cpi.listed("DescribeTargetHealth", &group, "Id"), [vm.as_str()]);
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
