//! A whole deployment as a Director creates and deletes it, with every version of the
//! API and every login. The tests check what the Agent finds, and that nothing is left.

use super::{Cpi, DIRECTOR, Login, manual_network, root_image};
use serde_json::{Value, json};
use tests::openstack::{Service, on_each_cloud};
use tests::{CLOUD_ERROR, NOT_SUPPORTED};

#[test]
fn a_deployment_can_be_created_and_deleted_with_each_api_version_and_login_without_leftovers() {
    on_each_cloud(|name, gateway| {
        let variants = [(1, Login::Password), (2, Login::Credential), (3, Login::ProjectId)];
        // On real services, `least_privilege` runs the last of them.
        let variants = if name == "simulator" { &variants[..] } else { &variants[..2] };
        for &(version, login) in variants {
            let cpi = Cpi::with_login(gateway, login).version(version).set("enable_auto_anti_affinity", json!(true));
            let before = cpi.api.contents();
            run_lifecycle(&cpi);
            cpi.delete_new_server_groups(&before);
            assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}, API {version}");
        }
    });
}

/// Creates, uses and deletes a deployment. The tests of grants use it as well.
pub(super) fn run_lifecycle(cpi: &Cpi<'_>) {
    let info = cpi.ok("info", json!([]));
    assert_eq!(info["api_version"], 3);
    let stemcell = upload_stemcell(cpi);
    let size = cpi.ok("calculate_vm_cloud_properties", json!([{"ram": 600, "cpu": 1, "ephemeral_disk_size": 5000}]));
    assert_eq!(size, json!({"instance_type": "m1.small"}));

    let disk = cpi.cid("create_disk", json!([1500, {}, null]));
    let vm = create_vm(cpi, &stemcell, &disk);
    assert_eq!(cpi.ok("has_vm", json!([vm])), true);
    let metadata = json!({"director": "bosh", "deployment": "d", "job": "web", "index": "0", "name": "web/1"});
    cpi.ok("set_vm_metadata", json!([vm, metadata]));
    let server = cpi.api.request(Service::Compute, "GET", &format!("/servers/{vm}"), None).value();
    assert_eq!(server["server"]["metadata"]["deployment"], "d");
    // The metadata from `env` is still there.
    assert_eq!(server["server"]["metadata"]["team"], "us");

    attach_disk(cpi, &vm, &disk);
    cpi.ok("reboot_vm", json!([vm]));
    cpi.ok("detach_disk", json!([vm, disk]));
    assert_eq!(cpi.ok("get_disks", json!([vm])), json!([]));
    resize_disk(cpi, &disk);

    let light = cpi.cid("create_stemcell", json!([cpi.image(), {"image_id": stemcell}]));
    assert_eq!(light, format!("{stemcell} light"));
    // Version 1 differs only in the settings, which these do not use.
    if cpi.version > 1 {
        create_dynamic_vm(cpi, &light);
        create_networks(cpi);
    }
    cpi.ok("delete_stemcell", json!([light]));

    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.ok("has_vm", json!([vm])), false);
    assert_eq!(cpi.ok("has_disk", json!([disk])), true);
    cpi.ok("delete_disk", json!([disk]));
    assert_eq!(cpi.ok("has_disk", json!([disk])), false);
    cpi.ok("delete_stemcell", json!([stemcell]));
}

/// Uploads a stemcell and checks the image with all of its properties.
fn upload_stemcell(cpi: &Cpi<'_>) -> String {
    let properties = json!({
        "name": "little", "version": "1.2", "disk_format": "raw", "container_format": "bare", "os_type": "linux",
        "architecture": "x86_64", "auto_disk_config": true, "hw_vif_multiqueue_enabled": true,
        // Nova runs an image only on a hypervisor of this kind.
        "hypervisor": "fake",
    });
    let mut arguments = json!([cpi.image(), properties]);
    if let (3, Some(arguments)) = (cpi.version, arguments.as_array_mut()) {
        arguments.push(json!({"tags": {"team": "us"}}));
    }
    cpi.gateway.clear_records();
    let stemcell = cpi.cid("create_stemcell", arguments);
    let records = cpi.gateway.records();
    let upload = records.iter().find(|record| record.method == "PUT");
    let digest = upload.map(|record| record.digest.clone());
    assert_eq!(digest, Some(blake3::hash(&root_image()).to_string()));
    let image = cpi.api.request(Service::Image, "GET", &format!("/images/{stemcell}"), None).value();
    for (key, value) in [
        ("status", json!("active")),
        ("name", json!("little/1.2")),
        ("os_type", json!("linux")),
        ("auto_disk_config", json!("true")),
        ("hw_vif_multiqueue_enabled", json!("true")),
        ("hypervisor_type", json!("fake")),
        ("visibility", json!("private")),
        ("size", json!(root_image().len())),
        ("tags", if cpi.version == 3 { json!(["team=us"]) } else { json!([]) }),
    ] {
        assert_eq!(image[key], value, "{key} of {image}");
    }
    stemcell
}

/// Creates a VM with a fixed and a floating address, in the zone of its disk and in a server group.
fn create_vm(cpi: &Cpi<'_>, stemcell: &str, disk: &str) -> String {
    let mut networks = manual_network(&cpi.cloud, "10.0.0.21");
    networks["public"] = json!({"type": "vip", "ip": cpi.cloud["floating_ip"], "cloud_properties": {}});
    let properties = json!({"instance_type": "m1.small", "availability_zone": cpi.cloud["availability_zone"]});
    let arguments = json!(["agent-1", stemcell, properties, networks, [disk], tests::cloud::env()]);
    let (vm, returned) = cpi.create_vm(arguments);
    if cpi.version > 1 {
        assert_eq!(returned["net"]["ip"], "10.0.0.21");
        assert_eq!(returned["public"]["ip"], cpi.cloud["floating_ip"]);
    }
    let ports = cpi.api.ports();
    let port = ports.iter().find(|port| port["device_id"] == json!(vm)).unwrap_or_else(|| panic!("{ports:?}"));
    assert_eq!(port["fixed_ips"][0]["ip_address"], "10.0.0.21");
    assert_eq!(cpi.api.floating_ips()[0]["port_id"], port["id"]);
    let groups = cpi.api.server_groups();
    let group = groups.iter().find(|group| group["name"] == json!(format!("{DIRECTOR}-a-group")));
    assert_eq!(group.map(|group| group["members"].clone()), Some(json!([vm])), "{groups:?}");
    check_settings(cpi, &vm, &networks, &port["mac_address"]);
    vm
}

/// Checks what the Agent finds at the metadata service, or in the registry that this names.
fn check_settings(cpi: &Cpi<'_>, vm: &str, networks: &Value, mac: &Value) {
    let data = cpi.api.user_data(vm).unwrap_or_default();
    let data: Value = serde_json::from_slice(&data).unwrap_or_else(|error| panic!("user data: {error}"));
    let server = cpi.api.request(Service::Compute, "GET", &format!("/servers/{vm}"), None).value();
    let name = &server["server"]["name"];
    let mut network = networks["net"].clone();
    network["mac"] = mac.clone();
    network["use_dhcp"] = json!(true);
    assert_eq!(data["networks"]["net"], network);
    assert_eq!(data["dns"], json!({"nameserver": ["10.0.0.2"]}));
    let settings = match &cpi.registry {
        None => data,
        Some((_, registry)) => {
            assert_eq!(data["server"]["name"], *name);
            assert!(data["registry"]["endpoint"].as_str().is_some_and(|url| url.starts_with("http://registry:")));
            assert_eq!((&data["mbus"], &data["env"]), (&Value::Null, &Value::Null));
            let name = name.as_str().unwrap_or_default();
            registry.get(name).unwrap_or_else(|| panic!("no settings of {name}"))
        }
    };
    let agent = super::agent();
    for (key, value) in [
        ("agent_id", json!("agent-1")),
        ("vm", json!({"name": name})),
        ("mbus", agent["mbus"].clone()),
        ("ntp", agent["ntp"].clone()),
        ("blobstore", agent["blobstore"].clone()),
        ("env", tests::cloud::env()),
        ("disks", json!({"system": "/dev/sda", "ephemeral": "/dev/sdb", "persistent": {}})),
    ] {
        assert_eq!(settings[key], value, "{key}");
    }
}

/// Attaches a disk, checks the hint, and checks what is refused while it is attached.
fn attach_disk(cpi: &Cpi<'_>, vm: &str, disk: &str) {
    let hint = cpi.ok("attach_disk", json!([vm, disk]));
    match &cpi.registry {
        None => assert_eq!(hint, "/dev/sdc"),
        Some((_, registry)) => {
            assert_eq!(hint, Value::Null);
            let server = cpi.api.request(Service::Compute, "GET", &format!("/servers/{vm}"), None).value();
            let settings = registry.get(server["server"]["name"].as_str().unwrap_or_default()).unwrap_or_default();
            assert_eq!(settings["disks"]["persistent"], json!({disk: "/dev/sdc"}));
        }
    }
    // The Director may repeat the call.
    cpi.ok("attach_disk", json!([vm, disk]));
    assert_eq!(cpi.ok("get_disks", json!([vm])), json!([disk]));
    cpi.ok("set_disk_metadata", json!([disk, {"director": "bosh", "instance_index": "0"}]));
    let volume = cpi.api.request(Service::Volume, "GET", &format!("/volumes/{disk}"), None).value();
    assert_eq!((&volume["volume"]["size"], &volume["volume"]["metadata"]["director"]), (&json!(2), &json!("bosh")));
    let metadata = json!({"deployment": "d", "job": "web", "index": 0, "director_name": "bosh", "instance_id": "i"});
    let snapshot = cpi.cid("snapshot_disk", json!([disk, metadata]));
    let created = cpi.api.request(Service::Volume, "GET", &format!("/snapshots/{snapshot}"), None).value();
    assert_eq!(created["snapshot"]["metadata"]["instance_name"], "web/i");
    assert_eq!(created["snapshot"]["description"], "d/web/0/sdc");
    cpi.run("delete_disk", json!([disk])).fails(CLOUD_ERROR, &["detach it first"]);
    cpi.run("resize_disk", json!([disk, 3000])).fails(CLOUD_ERROR, &["attachment"]);
    cpi.ok("delete_snapshot", json!([snapshot]));
}

fn resize_disk(cpi: &Cpi<'_>, disk: &str) {
    cpi.ok("resize_disk", json!([disk, 3 * 1024]));
    cpi.run("resize_disk", json!([disk, 1024])).fails(NOT_SUPPORTED, &["cannot shrink from 3 GiB to 1 GiB"]);
    // Version 1 of the API does not have `update_disk`.
    if cpi.version > 1 {
        assert_eq!(cpi.ok("update_disk", json!([disk, 4 * 1024, {"type": cpi.cloud["volume_type"]}])), Value::Null);
        let volume = cpi.api.request(Service::Volume, "GET", &format!("/volumes/{disk}"), None).value();
        assert_eq!(
            (&volume["volume"]["size"], &volume["volume"]["volume_type"]),
            (&json!(4), &cpi.cloud["volume_type"])
        );
    }
}

/// Creates a VM from a light stemcell, with an address that the cloud chooses and a boot volume.
fn create_dynamic_vm(cpi: &Cpi<'_>, stemcell: &str) {
    let networks = json!({"net": {
        "type": "dynamic", "default": ["dns", "gateway"], "cloud_properties": {"net_id": cpi.cloud["network"]},
    }});
    let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true, "root_disk": {"size": 2}});
    let volumes = cpi.api.volumes().len();
    let (vm, returned) = cpi.create_vm(json!(["agent-2", stemcell, properties, networks, [], {}]));
    let ports = cpi.api.ports();
    let port = ports.iter().find(|port| port["device_id"] == json!(vm)).unwrap_or_else(|| panic!("{ports:?}"));
    assert_eq!(returned["net"]["ip"], port["fixed_ips"][0]["ip_address"]);
    // The boot volume does not count as a disk.
    assert_eq!(cpi.api.volumes().len(), volumes + 1);
    assert_eq!(cpi.ok("get_disks", json!([vm])), json!([]));
    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.api.volumes().len(), volumes);
}

/// Creates and deletes networks for the Director: one with a range, and one whose range the cloud
/// chooses.
fn create_networks(cpi: &Cpi<'_>) {
    let pool = json!({"subnetpool": {"name": "pool", "prefixes": ["10.77.0.0/16"]}});
    let pool = cpi.api.request(Service::Network, "POST", "/subnetpools", Some(&pool)).value();
    let pool = pool["subnetpool"]["id"].as_str().unwrap_or_else(|| panic!("{pool}")).to_owned();
    for (spec, range, gateway, reserved) in [
        (
            json!({"type": "manual", "range": "10.76.0.0/24", "cloud_properties": {}}),
            "10.76.0.0/24",
            "10.76.0.1",
            [252, 253, 254],
        ),
        (
            json!({"type": "manual", "netmask_bits": 27, "cloud_properties": {"subnetpool_id": pool}}),
            "10.77.0.0/27",
            "10.77.0.1",
            [28, 29, 30],
        ),
    ] {
        let made = cpi.ok("create_network", json!([spec]));
        let start = range.rsplit_once('.').map(|(start, _)| start).unwrap_or_default();
        let reserved = reserved.map(|last| format!("{start}.{last}"));
        assert_eq!(made[1], json!({"range": range, "gateway": gateway, "reserved": reserved}));
        let path = format!("/subnets?network_id={}", made[0].as_str().unwrap_or_default());
        let subnets = cpi.api.list(Service::Network, &path, "subnets");
        assert_eq!(subnets[0]["allocation_pools"], json!([{"start": reserved[0], "end": reserved[2]}]));
        assert_eq!(subnets[0]["enable_dhcp"], true);
        cpi.ok("delete_network", json!([made[0]]));
    }
    let deleted = cpi.api.request(Service::Network, "DELETE", &format!("/subnetpools/{pool}"), None);
    assert_eq!(deleted.status, 204, "{}", deleted.value());
}

#[test]
fn a_vm_can_have_several_networks_an_allowed_address_a_config_drive_and_a_readable_name() {
    on_each_cloud(|name, gateway| {
        let mut cpi = Cpi::new(gateway);
        for (property, value) in
            [("use_dhcp", json!(false)), ("config_drive", json!("disk")), ("human_readable_vm_names", json!(true))]
        {
            cpi = cpi.set(property, value);
        }
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let spec = json!({"type": "manual", "range": "10.7.0.0/24", "gateway": "10.7.0.1", "cloud_properties": {}});
        let made = cpi.ok("create_network", json!([spec]));
        assert_eq!(made[1]["range"], "10.7.0.0/24", "{name}");
        let mut networks = manual_network(&cpi.cloud, "10.0.0.22");
        // No port reserves the allowed address.
        networks["net"]["cloud_properties"]["vrrp_port_check"] = json!(false);
        networks["other"] = json!({
            "type": "manual", "ip": "10.7.0.9", "netmask": "255.255.255.0", "gateway": "10.7.0.1",
            "cloud_properties": made[2],
        });
        let properties = json!({
            "instance_type": "m1.tiny", "allowed_address_pairs": "10.0.0.99", "scheduler_hints": {"any": "hint"},
            "security_groups": ["default", "bosh"], "availability_zone": "nova",
        });
        let arguments = json!(["agent-1", stemcell, properties, networks, [], {}]);
        let (vm, returned) = cpi.create_vm(arguments);
        assert_eq!((&returned["net"]["ip"], &returned["other"]["ip"]), (&json!("10.0.0.22"), &json!("10.7.0.9")));
        let ports: Vec<Value> = cpi.api.ports().into_iter().filter(|port| port["device_id"] == json!(vm)).collect();
        assert_eq!(ports.len(), 2, "{name}");
        let port = ports.iter().find(|port| port["network_id"] == cpi.cloud["network"]).cloned().unwrap_or_default();
        assert_eq!(port["allowed_address_pairs"][0]["ip_address"], "10.0.0.99", "{name}");
        assert_eq!(port["security_groups"].as_array().map(Vec::len), Some(2), "{name}");
        cpi.ok("set_vm_metadata", json!([vm, {"name": "web/0", "deployment": "d"}]));
        let server = cpi.api.request(Service::Compute, "GET", &format!("/servers/{vm}"), None).value();
        assert_eq!((&server["server"]["name"], &server["server"]["config_drive"]), (&json!("web/0"), &json!("True")));
        cpi.ok("delete_vm", json!([vm]));
        cpi.ok("delete_network", json!([made[0]]));
        cpi.ok("delete_stemcell", json!([stemcell]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}
