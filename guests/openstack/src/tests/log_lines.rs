//! The log at the default level: one line for each change in the cloud, and no line for a call
//! that changes nothing.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Fake;
use wasm_cpi_sdk::log::Level;
use wasm_cpi_sdk::{Cpi, Json, NetworkSpec};

use super::cloud::NETWORK;
use super::{cpi, manual, network, properties, properties_with_pools, request, start_with, vip};

fn archive(fake: Fake) -> Fake {
    fake.image_member("root.img", "data")
}

#[test]
fn each_change_logs_one_line_at_the_default_level_and_reading_logs_none() {
    let mut all = properties_with_pools();
    all["enable_auto_anti_affinity"] = json!(true);
    all["human_readable_vm_names"] = json!(true);
    let (host, cloud) = start_with(all, archive);
    cloud.borrow_mut().put("pools", "pool-1", json!({"name": "web"}));
    let stemcell = cpi().create_stemcell(Json::from(json!({"name": "s"})), vec![]).unwrap();
    let pools = json!([{"name": "web", "port": 80}]);
    let vm_type = json!({"instance_type": "m1.small", "boot_from_volume": true, "loadbalancer_pools": pools});
    let mut wanted = request(vm_type, vec![manual(), vip()]);
    wanted.stemcell = stemcell.clone();
    let vm = cpi().create_vm(wanted).unwrap().vm;
    assert!(cpi().has_vm(vm.clone()).unwrap());
    cpi().set_vm_metadata(vm.clone(), vec![("name".into(), "web/0".into())]).unwrap();
    cpi().reboot_vm(vm.clone()).unwrap();
    let disk = cpi().create_disk(1024, Json::default(), Some(vm.clone())).unwrap();
    cpi().attach_disk(vm.clone(), disk.clone()).unwrap();
    cpi().set_disk_metadata(disk.clone(), vec![("job".into(), "web".into())]).unwrap();
    let snapshot = cpi().snapshot_disk(disk.clone(), vec![]).unwrap();
    cpi().delete_snapshot(snapshot.clone()).unwrap();
    cpi().detach_disk(vm.clone(), disk.clone()).unwrap();
    cpi().resize_disk(disk.clone(), 2048).unwrap();
    cpi().update_disk(disk.clone(), 3072, Json::from(json!({"type": "fast"}))).unwrap();
    cpi().delete_disk(disk.clone()).unwrap();
    cpi().delete_vm(vm.clone()).unwrap();
    cpi().delete_stemcell(stemcell.clone()).unwrap();
    let spec = NetworkSpec {
        kind: "manual".into(),
        range: None,
        gateway: None,
        netmask_bits: Some(26),
        cloud_properties: Json::from(json!({"subnetpool_id": "p"})),
    };
    let created = cpi().create_network(spec).unwrap().network;
    cpi().delete_network(created.clone()).unwrap();

    let changes = host.requests().iter().filter(|request| request.method != "GET").count();
    let logs = host.logs();
    let lines: Vec<&str> =
        logs.iter().filter(|(level, _)| *level == Level::Info).map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines.len(), changes, "{lines:#?}");
    for said in [
        format!("created image {stemcell} (s)"),
        format!("uploaded image {stemcell}"),
        format!("created server {vm} (vm-"),
        "created server group groups-".to_owned(),
        "created port ports-".to_owned(),
        " with address 10.0.0.5".to_owned(),
        "associated floating IP fip-1 with port ports-".to_owned(),
        " of pool pool-1".to_owned(),
        format!("set metadata of server {vm}: lbaas_pool_1"),
        format!("set metadata of server {vm}: name"),
        format!("renamed server {vm} to web/0"),
        format!("rebooted server {vm} (SOFT)"),
        format!("created volume {disk} of 1 GiB"),
        format!("attached volume {disk} to server {vm}"),
        format!("set metadata of volume {disk}: job"),
        format!("created snapshot {snapshot} of volume {disk}"),
        format!("deleted snapshot {snapshot}"),
        format!("deleted attachment of volume {disk} to server {vm}"),
        format!("extended volume {disk} to 2 GiB"),
        format!("changed the type of volume {disk} to fast"),
        format!("extended volume {disk} to 3 GiB"),
        format!("deleted volume {disk}"),
        format!("deleted server {vm}"),
        "deleted port ports-".to_owned(),
        format!("deleted image {stemcell}"),
        format!("created network {created} (bosh-"),
        "created subnet subnets-".to_owned(),
        "changed subnet subnets-".to_owned(),
        format!("deleted network {created}"),
    ] {
        assert!(lines.iter().any(|line| line.contains(&said)), "no line has `{said}`: {lines:#?}");
    }
    // Names of groups and such come from the Director; values of metadata are not logged.
    assert!(!lines.iter().any(|line| line.contains("web/0 ")), "{lines:#?}");
}

#[test]
fn a_call_that_changes_nothing_logs_nothing_at_the_default_level() {
    let (host, _cloud) = start_with(properties(), archive);
    let dynamic = network("default", "dynamic", None, json!({"net_id": NETWORK}));
    assert!(!cpi().has_vm("none".into()).unwrap());
    assert!(!cpi().has_disk("none".into()).unwrap());
    let _ = cpi().create_vm(request(json!({"instance_type": "none"}), vec![dynamic])).unwrap_err();
    let lines: Vec<Value> = host.logs().iter().map(|(_, line)| json!(line)).collect();
    assert_eq!(lines, Vec::<Value>::new());
}
