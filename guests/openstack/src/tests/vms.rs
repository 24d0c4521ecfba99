//! VMs: success, and errors in the request.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::AgentEvent;
use wasm_cpi_sdk::{Cpi, DiskHint, ErrorKind, VmSize};

use super::cloud::NETWORK;
use super::{cpi, manual, network, properties, properties_with, request, small, start, vip};

#[test]
fn a_vm_gets_its_port_its_user_data_and_its_floating_ip() {
    let (host, cloud) = start(properties());
    let created = cpi().create_vm(request(small(), vec![manual(), vip()])).unwrap();
    let server = cloud.borrow().only("servers");
    let port = cloud.borrow().only("ports");
    assert_eq!(created.vm, server["id"]);
    assert_eq!(created.networks, [manual(), vip()]);
    assert_eq!(server["networks"], json!([{"port": port["id"]}]));
    assert_eq!(server["user_data"], "sealed-user-data-1");
    assert_eq!(server["key_name"], "bosh");
    assert_eq!(server["metadata"], json!({"team": "a"}));
    assert_eq!(port["fixed_ips"], json!([{"ip_address": "10.0.0.5"}]));
    assert_eq!(port["security_groups"], json!(["sg-bosh-project-1"]));
    assert_eq!(cloud.borrow().only("floatingips")["port_id"], port["id"]);
    let events = host.agent_events();
    let AgentEvent::Bootstrap(settings) = &events[0] else { panic!("{events:?}") };
    assert_eq!(settings.networks[0].mac.as_deref(), Some("fa:16:3e:00:00:01"));
    assert_eq!(settings.networks[0].use_dhcp, Some(true));
    assert_eq!(settings.networks.len(), 1, "the Agent does not need the vip");
    assert_eq!(settings.ephemeral_disk, Some(DiskHint::Text("/dev/sdb".into())));
    let name = server["name"].as_str().unwrap().to_owned();
    assert_eq!(settings.vm_name, name);
    assert_eq!(events[1], AgentEvent::Created { vm: created.vm, registry_key: name });
}

#[test]
fn a_dynamic_network_is_returned_with_its_address() {
    let (_host, cloud) = start(properties());
    let dynamic = network("default", "dynamic", None, json!({"net_id": NETWORK}));
    let created = cpi().create_vm(request(small(), vec![dynamic, vip()])).unwrap();
    assert_eq!(created.networks[0].ip.as_deref(), Some("10.0.0.200"));
    let server = cloud.borrow().only("servers");
    assert_eq!(server["networks"], json!([{"uuid": NETWORK}]));
    assert_eq!(server["security_groups"], json!([{"name": "sg-bosh-project-1"}]));
    assert_eq!(cloud.borrow().only("floatingips")["port_id"], cloud.borrow().only("ports")["id"]);
}

#[test]
fn the_cloud_properties_of_the_vm_type_reach_nova() {
    let (_host, cloud) = start(properties_with(json!({
        "config_drive": "disk", "human_readable_vm_names": true, "enable_auto_anti_affinity": true,
    })));
    let properties = json!({
        "instance_type": "m1.tiny", "availability_zone": "zone-1", "boot_from_volume": true, "root_disk": {"size": 3.5},
        "scheduler_hints": {"different_host": ["x"]}, "security_groups": ["web", "sg-db-project-1"],
        "allowed_address_pairs": "10.0.0.99", "vrrp_port_check": false, "unknown": {"keys": "are ignored"},
    });
    cpi().create_vm(request(properties, vec![manual()])).unwrap();
    let cloud = cloud.borrow();
    let server = cloud.only("servers");
    let group = cloud.only("groups");
    assert_eq!(group["name"], "director-uuid-web");
    assert_eq!(server["hints"], json!({"different_host": ["x"], "group": group["id"]}));
    assert_eq!((&server["availability_zone"], &server["config_drive"]), (&json!("zone-1"), &json!(true)));
    assert_eq!(server["imageRef"], Value::Null);
    assert_eq!(server["block_device_mapping_v2"][0]["volume_size"], 4);
    assert_eq!(server["block_device_mapping_v2"][0]["delete_on_termination"], true);
    assert_eq!(server["metadata"]["registry_key"], server["name"]);
    assert_eq!(cloud.only("ports")["security_groups"], json!(["sg-web-project-1", "sg-db-project-1"]));
    assert_eq!(cloud.only("ports")["allowed_address_pairs"], json!([{"ip_address": "10.0.0.99"}]));
}

#[test]
fn security_groups_come_from_the_vm_type_or_the_networks_or_the_defaults() {
    let on_network =
        || network("default", "manual", Some("10.0.0.5"), json!({"net_id": NETWORK, "security_groups": ["db"]}));
    for (cloud_properties, network, group) in [
        (json!({"instance_type": "m1.small", "security_groups": ["web"]}), on_network(), "sg-web-project-1"),
        (small(), on_network(), "sg-db-project-1"),
        (small(), manual(), "sg-bosh-project-1"),
    ] {
        let (_host, cloud) = start(properties());
        cpi().create_vm(request(cloud_properties, vec![network])).unwrap();
        assert_eq!(cloud.borrow().only("ports")["security_groups"], json!([group]));
    }
}

#[test]
fn a_vm_is_created_in_the_zone_of_its_disks() {
    let zone = |zone: &str| json!({"status": "available", "availability_zone": zone});
    for (disks, requested, ignored, expected) in [
        (vec!["a"], None, false, Ok("zone-a")),
        (vec!["a"], Some("zone-a"), false, Ok("zone-a")),
        (vec!["a"], Some("zone-b"), true, Ok("zone-b")),
        (vec!["a", "gone"], None, false, Ok("zone-a")),
        (vec!["a"], Some("zone-b"), false, Err("the VM type requests `zone-b`")),
        (vec!["a", "b"], None, false, Err("disk `b` is in `zone-b`")),
    ] {
        let (_host, cloud) = start(properties_with(json!({"ignore_server_availability_zone": ignored})));
        cloud.borrow_mut().put("volumes", "a", zone("zone-a"));
        cloud.borrow_mut().put("volumes", "b", zone("zone-b"));
        let mut request = request(json!({"instance_type": "m1.small", "availability_zone": requested}), vec![manual()]);
        request.disks = disks.into_iter().map(str::to_owned).collect();
        match (cpi().create_vm(request), expected) {
            (Ok(_), Ok(zone)) => assert_eq!(cloud.borrow().only("servers")["availability_zone"], zone),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
            (outcome, _) => panic!("{outcome:?}"),
        }
    }
}

#[test]
fn zones_are_tried_in_a_random_order_until_one_succeeds() {
    let (_host, cloud) = start(properties_with(json!({"ignore_server_availability_zone": true})));
    let create = |zones: Value| {
        let properties = json!({"instance_type": "m1.small", "availability_zones": zones});
        let vm = cpi().create_vm(request(properties, vec![manual()])).unwrap().vm;
        let zone = cloud.borrow().get("servers", &vm)["availability_zone"].clone();
        cpi().delete_vm(vm).unwrap();
        zone
    };
    let mut used: Vec<Value> = (0..40).map(|_| create(json!(["a", "b", "c"]))).collect();
    used.sort_by_key(Value::to_string);
    used.dedup();
    assert_eq!(used, ["a", "b", "c"]);
    cloud.borrow_mut().seen.clear();
    assert!((0..20).all(|_| create(json!(["mars", "zone-2"])) == "zone-2"));
    // The zone that refuses is sometimes the first one. Its server's port is used in the next zone.
    assert_eq!(cloud.borrow().count_requests("POST ports"), 20);
    assert!((21..40).contains(&cloud.borrow().count_requests("POST servers")));
}

#[test]
fn the_size_of_the_root_disk_counts_only_for_a_boot_volume() {
    for (root_disk, from_volume, expected) in [
        (json!({}), false, Ok(Value::Null)),
        (json!(null), false, Ok(Value::Null)),
        (json!({"size": 0}), false, Ok(Value::Null)),
        (json!({}), true, Ok(json!(10))),
        (json!({"size": 7}), true, Ok(json!(7))),
        (json!({"size": 0}), true, Err("cloud_properties.root_disk.size: expected a number of GiB, at least 1")),
    ] {
        let (_host, cloud) = start(properties());
        let vm_type = json!({"instance_type": "m1.small", "root_disk": root_disk, "boot_from_volume": from_volume});
        match (cpi().create_vm(request(vm_type, vec![manual()])), expected) {
            (Ok(_), Ok(size)) => {
                let server = cloud.borrow().only("servers");
                assert_eq!(server["block_device_mapping_v2"][0]["volume_size"], size, "{root_disk}");
            }
            (Err(error), Err(said)) => assert!(error.message.contains(said), "{error}"),
            (outcome, expected) => panic!("{root_disk} {from_volume}: {outcome:?} {expected:?}"),
        }
    }
}

#[test]
fn a_vm_is_deleted_with_its_ports_and_boot_volume_and_without_its_disks() {
    let (host, cloud) = start(properties());
    let boot = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
    let vm = cpi().create_vm(request(boot, vec![manual(), vip()])).unwrap().vm;
    let disk = cpi().create_disk(2048, Default::default(), Some(vm.clone())).unwrap();
    cpi().attach_disk(vm.clone(), disk.clone()).unwrap();
    assert_eq!(cpi().get_disks(vm.clone()).unwrap(), std::slice::from_ref(&disk));
    cpi().delete_vm(vm.clone()).unwrap();
    assert!(!cpi().has_vm(vm.clone()).unwrap());
    let left = cloud.borrow().left();
    assert!(left.len() == 1 && left[0].contains(&disk), "{left:?}");
    assert!(matches!(host.agent_events().last(), Some(AgentEvent::Deleted { .. })));
    assert_eq!(cpi().delete_vm(vm).unwrap_err().kind, ErrorKind::VmNotFound);
}

#[test]
fn ports_of_a_missing_vm_are_deleted() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().put("ports", "left", json!({"device_id": "vm-1"}));
    cloud.borrow_mut().put("ports", "other", json!({"device_id": "vm-2"}));
    assert_eq!(cpi().delete_vm("vm-1".into()).unwrap_err().kind, ErrorKind::VmNotFound);
    assert_eq!(cloud.borrow().only("ports")["id"], "other");
}

#[test]
fn a_missing_vm_is_vm_not_found() {
    let (_host, cloud) = start(properties());
    for vm in ["gone", "", ".", "..", "a/b"] {
        let vm = || vm.to_owned();
        assert_eq!(cpi().has_vm(vm()), Ok(false));
        assert_eq!(cpi().reboot_vm(vm()).unwrap_err().kind, ErrorKind::VmNotFound);
        assert_eq!(cpi().set_vm_metadata(vm(), vec![]).unwrap_err().kind, ErrorKind::VmNotFound);
        assert_eq!(cpi().get_disks(vm()).unwrap_err().kind, ErrorKind::VmNotFound);
        assert_eq!(cpi().attach_disk(vm(), "d".into()).unwrap_err().kind, ErrorKind::VmNotFound);
        assert_eq!(cpi().detach_disk(vm(), "d".into()).unwrap_err().kind, ErrorKind::VmNotFound);
    }
    assert!(cloud.borrow().seen.iter().all(|line| !line.contains("..")));
}

#[test]
fn metadata_becomes_tags_and_optionally_the_name() {
    let pairs =
        |list: &[(&str, &str)]| list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>();
    for (readable, metadata, name) in [
        (false, pairs(&[("job", "web"), ("index", "0")]), "vm-x"),
        (true, pairs(&[("job", "web"), ("index", "0"), ("name", "web/uuid")]), "web/uuid"),
        (true, pairs(&[("job", "web"), ("index", "0")]), "web/0"),
        (true, pairs(&[("compiling", "ruby")]), "compiling/ruby"),
        (true, pairs(&[("deployment", "cf")]), "vm-x"),
    ] {
        let (_host, cloud) = start(properties_with(json!({"human_readable_vm_names": readable})));
        cloud.borrow_mut().put("servers", "s", json!({"name": "vm-x", "status": "ACTIVE", "metadata": {}}));
        cpi().set_vm_metadata("s".into(), metadata.clone()).unwrap();
        let server = cloud.borrow().get("servers", "s");
        assert_eq!(server["name"], name);
        for (key, value) in metadata {
            assert_eq!(server["metadata"][key], value);
        }
        let key = if name == "vm-x" { Value::Null } else { json!("vm-x") };
        assert_eq!(server["metadata"]["registry_key"], key);
    }
}

#[test]
fn the_registry_key_is_the_first_name_of_the_vm() {
    let (host, cloud) = start(properties_with(json!({"human_readable_vm_names": true})));
    let vm = cpi().create_vm(request(small(), vec![manual()])).unwrap().vm;
    let first = cloud.borrow().only("servers")["name"].as_str().unwrap().to_owned();
    cpi().set_vm_metadata(vm.clone(), vec![("name".into(), "web/1".into())]).unwrap();
    cpi().delete_vm(vm).unwrap();
    assert_eq!(host.agent_events().last(), Some(&AgentEvent::Deleted { registry_key: first }));
}

#[test]
fn a_running_vm_gets_a_soft_reboot_and_others_a_hard_one() {
    for (status, kind) in [("ACTIVE", "SOFT"), ("SHUTOFF", "HARD")] {
        let (host, cloud) = start(properties());
        cloud.borrow_mut().put("servers", "s", json!({"name": "vm-x", "status": status, "metadata": {}}));
        cpi().reboot_vm("s".into()).unwrap();
        assert_eq!(host.request_json(1), Some(json!({"reboot": {"type": kind}})));
    }
}

#[test]
fn the_smallest_fitting_flavor_is_found() {
    let size = |ram_mib, cpu, ephemeral_disk_mb| VmSize { ram_mib, cpu, ephemeral_disk_mb };
    for (size, from_volume, expected) in [
        (size(512, 1, 1024), false, Ok(json!({"instance_type": "m1.small"}))),
        (size(2048, 1, 10 * 1024), false, Ok(json!({"instance_type": "m1.small"}))),
        (size(2049, 1, 1024), false, Ok(json!({"instance_type": "m1.medium"}))),
        (size(512, 2, 1024), false, Ok(json!({"instance_type": "m1.medium"}))),
        (size(8192, 1, 1024), false, Err("no flavor has 1 CPU, 8192 MiB of memory and 1 GiB")),
        (size(512, 1, 0), true, Ok(json!({"instance_type": "m1.tiny", "root_disk": {"size": 3}}))),
        (size(512, 1, 50 * 1024), true, Ok(json!({"instance_type": "m1.tiny", "root_disk": {"size": 53}}))),
    ] {
        let (_host, _cloud) = start(properties_with(json!({"boot_from_volume": from_volume})));
        match (cpi().calculate_vm_cloud_properties(size), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.value().unwrap(), expected),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
            (outcome, expected) => panic!("{outcome:?} {expected:?}"),
        }
    }
}

#[test]
fn wrong_cloud_properties_are_named_before_anything_is_created() {
    for (cloud_properties, message) in [
        (json!({}), "cloud_properties: missing field `instance_type`"),
        (json!({"instance_type": 5}), "cloud_properties.instance_type: invalid type: integer `5`, expected a string"),
        (json!({"instance_type": "none"}), "cloud_properties.instance_type: flavor `none` was not found"),
        (json!({"instance_type": "bad"}), "has 9 GiB of ephemeral disk, but needs at least 16 GiB"),
        (
            json!({"instance_type": "m1.small", "security_groups": "web"}),
            "cloud_properties.security_groups: invalid type: string \"web\", expected a sequence",
        ),
        (
            json!({"instance_type": "m1.small", "root_disk": {"size": "x"}}),
            "cloud_properties.root_disk.size: invalid type",
        ),
        (json!({"instance_type": "m1.small", "boot_from_volume": "yes"}), "boot_from_volume: invalid type: string"),
        (json!({"instance_type": "m1.small", "scheduler_hints": "x"}), "scheduler_hints: invalid type: string"),
        (json!({"instance_type": "m1.small", "key_name": "none"}), "key pair `none` was not found"),
        (json!({"instance_type": "m1.small", "security_groups": ["none"]}), "security group `none` was not found"),
        (
            json!({"instance_type": "m1.small", "loadbalancer_pools": [{"name": "p"}]}),
            "cloud_properties.loadbalancer_pools",
        ),
        (json!({"instance_type": "m1.small", "availability_zones": ["a", "b"]}), "ignore_server_availability_zone"),
        (
            json!({"instance_type": "m1.small", "availability_zone": "a", "availability_zones": ["b"]}),
            "cannot be used together with availability_zone",
        ),
        (json!({"instance_type": "m1.small", "allowed_address_pairs": "10.0.0.9"}), "no port has the address 10.0.0.9"),
    ] {
        let (_host, cloud) = start(properties());
        let error = cpi().create_vm(request(cloud_properties, vec![manual()])).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert!(matches!(error.kind, ErrorKind::Cpi | ErrorKind::Cloud), "{error:?}");
        assert_eq!(cloud.borrow().count_requests("POST"), 0);
    }
}
