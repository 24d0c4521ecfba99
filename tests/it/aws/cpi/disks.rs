//! Disks and snapshots on the simulator.

use super::Cpi;
use serde_json::{Value, json};
use tests::CLOUD_ERROR;
use tests::aws::{Gateway, Rule, Service, Simulator, service_error, throttled};
use tests::gateway::Fault;

/// The cloud ID of a disk that does not exist.
const MISSING: &str = "vol-0123456789abcdef0";

#[track_caller]
fn create_vm(cpi: &Cpi<'_>, ip: &str) -> String {
    cpi.create_vm(cpi.vm(cpi.small(), cpi.manual(ip))).0
}

#[track_caller]
fn cid(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a cloud ID")).to_owned()
}

/// Returns the text of a volume's first element with this name.
fn volume(cpi: &Cpi<'_>, disk: &str, name: &str) -> String {
    cpi.listed("DescribeVolumes", &[("VolumeId.1", disk)], name).into_iter().next().unwrap_or_default()
}

#[test]
fn a_disk_lives_as_long_as_its_deployment_with_each_api_version() {
    for version in [1, 2, 3] {
        let gateway = Gateway::start(Simulator::new());
        let cpi = Cpi::with(&gateway, version, &json!({}));
        let vm = create_vm(&cpi, "10.0.0.21");
        let before = cpi.contents();
        let properties = json!({"type": "gp3", "iops": 4000, "throughput": 250, "tags": {"team": "a"}});
        let disk = cid(&cpi.ok("create_disk", json!([10_241, properties, vm])));
        for (name, value) in [("size", "11"), ("volumeType", "gp3"), ("iops", "4000"), ("throughput", "250")] {
            assert_eq!(volume(&cpi, &disk, name), value, "{name}");
        }
        assert_eq!(cpi.ok("has_disk", json!([disk])), true);
        let path = format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{}", disk.replace("vol-", "vol"));
        let hint = cpi.ok("attach_disk", json!([vm, disk]));
        assert_eq!(hint, if version == 1 { Value::Null } else { json!(path) });
        assert_eq!(cpi.ok("attach_disk", json!([vm, disk])), hint, "an attached disk stays attached");
        if let Some((_, registry)) = &cpi.registry {
            let disks = registry.get(&vm).unwrap_or_default()["disks"]["persistent"].clone();
            assert_eq!(disks, json!({&disk: path}));
        }
        let disks = cpi.ok("get_disks", json!([vm]));
        assert!(disks.as_array().is_some_and(|all| all.len() == 3 && all.contains(&json!(disk))), "{disks}");
        cpi.ok("set_disk_metadata", json!([disk, {"deployment": "d", "attached_at": "now"}]));
        assert!(cpi.listed("DescribeVolumes", &[("VolumeId.1", &disk)], "key").contains(&"attached_at".to_owned()));
        let metadata = json!({"deployment": "d", "job": "db", "index": 0, "director_name": "bosh", "instance_id": "u"});
        let snapshot = cid(&cpi.ok("snapshot_disk", json!([disk, metadata])));
        let own = [("SnapshotId.1", snapshot.as_str())];
        assert_eq!(cpi.listed("DescribeSnapshots", &own, "description"), ["d/db/0/sdf"]);
        assert!(cpi.listed("DescribeSnapshots", &own, "value").contains(&"db/u".to_owned()));
        cpi.ok("resize_disk", json!([disk, 20 * 1024]));
        assert_eq!(volume(&cpi, &disk, "size"), "20");
        cpi.ok("detach_disk", json!([vm, disk]));
        if let Some((_, registry)) = &cpi.registry {
            assert_eq!(registry.get(&vm).unwrap_or_default()["disks"]["persistent"], json!({}));
        }
        let response = cpi.run("detach_disk", json!([vm, disk]));
        response.fails("Bosh::Clouds::DiskNotAttached", &[&disk, &vm]);
        assert_eq!(response.json["error"]["ok_to_retry"], true);
        cpi.ok("delete_snapshot", json!([snapshot]));
        cpi.ok("delete_snapshot", json!([snapshot]));
        cpi.ok("delete_disk", json!([disk]));
        assert_eq!(cpi.ok("has_disk", json!([disk])), false);
        assert_eq!(cpi.contents(), before, "API {version}");
    }
}

#[test]
fn a_disk_without_a_vm_is_encrypted_as_the_properties_say() {
    let gateway = Gateway::start(Simulator::new());
    let key = gateway.cloud()["kms_key_arn"].clone();
    let cpi = Cpi::with(&gateway, 2, &json!({"encrypted": true, "kms_key_arn": key, "fast_path_delete": true}));
    let disk = cid(&cpi.ok("create_disk", json!([1024, {}, null])));
    assert_eq!((volume(&cpi, &disk, "encrypted"), json!(volume(&cpi, &disk, "kmsKeyId"))), ("true".to_owned(), key));
    let plain = cid(&cpi.ok("create_disk", json!([1024, {"encrypted": false}, null])));
    assert_eq!(volume(&cpi, &plain, "encrypted"), "false");
    for disk in [disk, plain] {
        cpi.ok("delete_disk", json!([disk]));
    }
}

#[test]
fn a_disk_changes_in_place_and_what_ec2_refuses_is_copied_by_the_director() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::new(&gateway);
    let disk = cid(&cpi.ok("create_disk", json!([10 * 1024, {}, null])));
    let update = |properties: Value, gib: u64| cpi.run("update_disk", json!([disk, gib * 1024, properties]));
    assert_eq!(update(json!({"iops": 5000, "tags": {"team": "a"}}), 12).result(), &Value::Null);
    for (name, value) in [("size", "12"), ("iops", "5000"), ("key", "team")] {
        assert_eq!(volume(&cpi, &disk, name), value);
    }
    let refused = "Bosh::Clouds::NotSupported";
    // The change before is still in progress.
    update(json!({}), 13).fails(refused, &["IncorrectModificationState"]);
    cpi.listed("DescribeVolumesModifications", &[("VolumeId.1", &disk)], "modificationState");
    cpi.listed("DescribeVolumesModifications", &[("VolumeId.1", &disk)], "modificationState");
    assert_eq!(update(json!({"type": "io2", "iops": 600}), 12).result(), &Value::Null);
    assert_eq!((volume(&cpi, &disk, "volumeType"), volume(&cpi, &disk, "iops")), ("io2".to_owned(), "600".to_owned()));
    update(json!({"type": "io2", "iops": 600}), 11).fails(refused, &["cannot shrink from 12 GiB to 11 GiB"]);
    update(json!({"type": "io2", "iops": 600, "encrypted": true}), 12).fails(refused, &["cannot encrypt"]);
    cpi.listed("DescribeVolumesModifications", &[("VolumeId.1", &disk)], "modificationState");
    cpi.listed("DescribeVolumesModifications", &[("VolumeId.1", &disk)], "modificationState");
    update(json!({"type": "st1"}), 12).fails(refused, &["ModifyVolume failed with InvalidParameterValue"]);
    cpi.ok("delete_disk", json!([disk]));
}

#[test]
fn missing_disks_and_wrong_properties_are_named() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::new(&gateway);
    let vm = create_vm(&cpi, "10.0.0.22");
    let missing = "Bosh::Clouds::DiskNotFound";
    assert_eq!(cpi.ok("has_disk", json!([MISSING])), false);
    cpi.ok("detach_disk", json!([vm, MISSING]));
    cpi.run("delete_disk", json!([MISSING])).fails(missing, &[MISSING]);
    cpi.run("resize_disk", json!([MISSING, 1024])).fails(missing, &[MISSING]);
    cpi.run("snapshot_disk", json!([MISSING, {}])).fails(missing, &[MISSING]);
    cpi.run("get_disks", json!(["i-0123456789abcdef0"])).fails("Bosh::Clouds::VMNotFound", &["i-0123456789abcdef0"]);
    let response = cpi.run("create_disk", json!([1024, {"type": "gp9"}, vm]));
    response.fails(CLOUD_ERROR, &["creating a disk: CreateVolume failed with InvalidParameterValue", "gp9"]);
    let response = cpi.run("create_disk", json!([1024, {"kms_key_arn": "arn:1"}, vm]));
    response.fails("Bosh::Clouds::CpiError", &["cloud_properties.kms_key_arn is set, but encryption is off"]);
}

#[test]
fn no_disk_is_left_or_created_twice_if_every_request_fails_once() {
    let simulator = Simulator::new();
    simulator.set_reads_before_change(0);
    let gateway = Gateway::start(simulator);
    let cpi = Cpi::new(&gateway);
    let vm = create_vm(&cpi, "10.0.0.23");
    let before = cpi.contents();
    let broken = service_error(Service::Ec2, 500, "InternalError", "An internal error has occurred.");
    let operations = [
        "CreateVolume",
        "AttachVolume",
        "CreateSnapshot",
        "ModifyVolume",
        "DetachVolume",
        "DeleteSnapshot",
        "DeleteVolume",
    ];
    for fault in [Fault::ResetAfter, Fault::ResetBefore, broken, throttled(Service::Ec2)] {
        gateway.clear_faults();
        for operation in operations {
            gateway.inject(Rule::operation(Service::Ec2, operation).times(1), fault.clone());
        }
        let disk = cid(&cpi.ok("create_disk", json!([1024, {}, vm])));
        cpi.ok("attach_disk", json!([vm, disk]));
        let snapshot = cid(&cpi.ok("snapshot_disk", json!([disk, {"deployment": "d"}])));
        assert_eq!(cpi.contents().difference(&before).count(), 2, "a disk and a snapshot: {fault:?}");
        cpi.ok("resize_disk", json!([disk, 2048]));
        cpi.ok("detach_disk", json!([vm, disk]));
        cpi.ok("delete_snapshot", json!([snapshot]));
        cpi.ok("delete_disk", json!([disk]));
        assert_eq!(cpi.contents(), before, "{fault:?}");
    }
}

#[test]
fn a_new_disk_and_a_new_snapshot_may_be_unknown_for_a_while() {
    let simulator = Simulator::new();
    simulator.set_hidden_lookups(2);
    let gateway = Gateway::start(simulator);
    let cpi = Cpi::new(&gateway);
    let disk = cid(&cpi.ok("create_disk", json!([1024, {}, null])));
    let snapshot = cid(&cpi.ok("snapshot_disk", json!([disk, {"deployment": "d"}])));
    cpi.ok("delete_snapshot", json!([snapshot]));
    cpi.ok("delete_disk", json!([disk]));
}
