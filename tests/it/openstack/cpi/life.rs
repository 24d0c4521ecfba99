//! A whole deployment as a Director plays it, with every version of the API and
//! every way to log in; what the Agent finds; and a cloud that is empty again.

use super::{Cpi, DIRECTOR, Way, manual, root_image};
use serde_json::{Value, json};
use tests::openstack::{Service, on_each_cloud};
use tests::{CLOUD_ERROR, NOT_SUPPORTED};

#[test]
fn a_deployment_comes_and_goes_with_each_version_and_login_and_nothing_stays() {
    on_each_cloud(|name, gateway| {
        let lives = [(1, Way::Password), (2, Way::Credential), (3, Way::ProjectId)];
        // The last of them is played on real services where grants are tested, in `least`.
        let lives = if name == "simulator" { &lives[..] } else { &lives[..2] };
        for &(version, way) in lives {
            let cpi = Cpi::by(gateway, way).version(version).set("enable_auto_anti_affinity", json!(true));
            let before = cpi.api.contents();
            live(&cpi);
            cpi.drop_groups(&before);
            assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}, API {version}");
        }
    });
}

/// The whole of it; tests of grants play it, too.
pub(super) fn live(cpi: &Cpi<'_>) {
    let info = cpi.ok("info", json!([]));
    assert_eq!(info["api_version"], 3);
    let stemcell = uploads(cpi);
    let size = cpi.ok("calculate_vm_cloud_properties", json!([{"ram": 600, "cpu": 1, "ephemeral_disk_size": 5000}]));
    assert_eq!(size, json!({"instance_type": "m1.small"}));

    let disk = cpi.cid("create_disk", json!([1500, {}, null]));
    let vm = creates(cpi, &stemcell, &disk);
    assert_eq!(cpi.ok("has_vm", json!([vm])), true);
    let metadata = json!({"director": "bosh", "deployment": "d", "job": "web", "index": "0", "name": "web/1"});
    cpi.ok("set_vm_metadata", json!([vm, metadata]));
    let server = cpi.api.request(Service::Compute, "GET", &format!("/servers/{vm}"), None).value();
    assert_eq!(server["server"]["metadata"]["deployment"], "d");
    // What `env` had is still there.
    assert_eq!(server["server"]["metadata"]["team"], "us");

    keeps(cpi, &vm, &disk);
    cpi.ok("reboot_vm", json!([vm]));
    cpi.ok("detach_disk", json!([vm, disk]));
    assert_eq!(cpi.ok("get_disks", json!([vm])), json!([]));
    grows(cpi, &disk);

    let light = cpi.cid("create_stemcell", json!([cpi.image(), {"image_id": stemcell}]));
    assert_eq!(light, format!("{stemcell} light"));
    // Nothing of it is about settings, which is where the first version differs.
    if cpi.version > 1 {
        dynamic(cpi, &light);
        networks(cpi);
    }
    cpi.ok("delete_stemcell", json!([light]));

    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.ok("has_vm", json!([vm])), false);
    assert_eq!(cpi.ok("has_disk", json!([disk])), true);
    cpi.ok("delete_disk", json!([disk]));
    assert_eq!(cpi.ok("has_disk", json!([disk])), false);
    cpi.ok("delete_stemcell", json!([stemcell]));
}

/// A stemcell's image, with all that the cloud is told of it.
fn uploads(cpi: &Cpi<'_>) -> String {
    let properties = json!({
        "name": "little", "version": "1.2", "disk_format": "raw", "container_format": "bare", "os_type": "linux",
        "architecture": "x86_64", "auto_disk_config": true,
        // Nova sees to it that an image runs on its own kind of hypervisor.
        "hypervisor": "fake",
    });
    let mut arguments = json!([cpi.image(), properties]);
    if let (3, Some(arguments)) = (cpi.version, arguments.as_array_mut()) {
        arguments.push(json!({"tags": {"team": "us"}}));
    }
    cpi.gateway.forget();
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
        ("hypervisor_type", json!("fake")),
        ("visibility", json!("private")),
        ("size", json!(root_image().len())),
        ("tags", if cpi.version == 3 { json!(["team=us"]) } else { json!([]) }),
    ] {
        assert_eq!(image[key], value, "{key} of {image}");
    }
    stemcell
}

/// A VM with a fixed address and a floating one, near its disk and in a group.
fn creates(cpi: &Cpi<'_>, stemcell: &str, disk: &str) -> String {
    let mut networks = manual(&cpi.cloud, "10.0.0.21");
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
    finds_settings(cpi, &vm, &networks, &port["mac_address"]);
    vm
}

/// What the Agent finds at the metadata service, or behind it in the registry.
fn finds_settings(cpi: &Cpi<'_>, vm: &str, networks: &Value, mac: &Value) {
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

/// A disk at its VM: the hint, and what is refused meanwhile.
fn keeps(cpi: &Cpi<'_>, vm: &str, disk: &str) {
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
    // A second time is no mistake of the Director's.
    cpi.ok("attach_disk", json!([vm, disk]));
    assert_eq!(cpi.ok("get_disks", json!([vm])), json!([disk]));
    cpi.ok("set_disk_metadata", json!([disk, {"director": "bosh", "instance_index": "0"}]));
    let volume = cpi.api.request(Service::Volume, "GET", &format!("/volumes/{disk}"), None).value();
    assert_eq!((&volume["volume"]["size"], &volume["volume"]["metadata"]["director"]), (&json!(2), &json!("bosh")));
    let metadata = json!({"deployment": "d", "job": "web", "index": 0, "director_name": "bosh", "instance_id": "i"});
    let snapshot = cpi.cid("snapshot_disk", json!([disk, metadata]));
    let taken = cpi.api.request(Service::Volume, "GET", &format!("/snapshots/{snapshot}"), None).value();
    assert_eq!(taken["snapshot"]["metadata"]["instance_name"], "web/i");
    assert_eq!(taken["snapshot"]["description"], "d/web/0/sdc");
    cpi.ask("delete_disk", json!([disk])).fails(CLOUD_ERROR, &["detach it first"]);
    cpi.ask("resize_disk", json!([disk, 3000])).fails(CLOUD_ERROR, &["attachment"]);
    cpi.ok("delete_snapshot", json!([snapshot]));
}

fn grows(cpi: &Cpi<'_>, disk: &str) {
    cpi.ok("resize_disk", json!([disk, 3 * 1024]));
    cpi.ask("resize_disk", json!([disk, 1024])).fails(NOT_SUPPORTED, &["cannot shrink from 3 GiB to 1 GiB"]);
    // The first version of the API does not have it.
    if cpi.version > 1 {
        assert_eq!(cpi.ok("update_disk", json!([disk, 4 * 1024, {"type": cpi.cloud["volume_type"]}])), Value::Null);
        let volume = cpi.api.request(Service::Volume, "GET", &format!("/volumes/{disk}"), None).value();
        assert_eq!(
            (&volume["volume"]["size"], &volume["volume"]["volume_type"]),
            (&json!(4), &cpi.cloud["volume_type"])
        );
    }
}

/// A second VM: light, an address of the cloud's choice, booting from a volume.
fn dynamic(cpi: &Cpi<'_>, stemcell: &str) {
    let networks = json!({"net": {
        "type": "dynamic", "default": ["dns", "gateway"], "cloud_properties": {"net_id": cpi.cloud["network"]},
    }});
    let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true, "root_disk": {"size": 2}});
    let volumes = cpi.api.volumes().len();
    let (vm, returned) = cpi.create_vm(json!(["agent-2", stemcell, properties, networks, [], {}]));
    let ports = cpi.api.ports();
    let port = ports.iter().find(|port| port["device_id"] == json!(vm)).unwrap_or_else(|| panic!("{ports:?}"));
    assert_eq!(returned["net"]["ip"], port["fixed_ips"][0]["ip_address"]);
    // The volume that it boots from is no disk.
    assert_eq!(cpi.api.volumes().len(), volumes + 1);
    assert_eq!(cpi.ok("get_disks", json!([vm])), json!([]));
    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.api.volumes().len(), volumes);
}

/// Networks that the Director manages: with a range, and with one of the cloud's choice.
fn networks(cpi: &Cpi<'_>) {
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
    let gone = cpi.api.request(Service::Network, "DELETE", &format!("/subnetpools/{pool}"), None);
    assert_eq!(gone.status, 204, "{}", gone.value());
}

#[test]
fn several_networks_an_allowed_address_a_config_drive_and_a_readable_name() {
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
        let mut networks = manual(&cpi.cloud, "10.0.0.22");
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
