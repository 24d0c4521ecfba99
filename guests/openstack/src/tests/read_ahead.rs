//! What methods read at once before they decide anything, and which requests they do not send.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::cloud::{Fault, Shared};
use super::{cpi, manual, properties, properties_with_pools, request, start, vip};

/// Puts a server `s` and a volume `d` into the cloud.
fn put_server_and_disk(cloud: &Shared, server: Value, disk: Value) {
    let mut all = [
        ("servers", "s", json!({"name": "vm-x", "status": "ACTIVE", "metadata": {}, "image": {"id": "i"}}), server),
        ("volumes", "d", json!({"status": "available", "name": "volume-d", "size": 2, "attachments": []}), disk),
    ];
    all[0].2["flavor"] = json!({"id": "flavor-m1.small"});
    for (kind, id, mut thing, more) in all {
        for (key, value) in more.as_object().unwrap() {
            thing[key] = value.clone();
        }
        cloud.borrow_mut().put(kind, id, thing);
    }
}

fn metadata() -> Vec<(String, String)> {
    vec![("job".into(), "web".into())]
}

#[test]
fn create_vm_reads_at_once_all_that_it_needs_to_check() {
    let mut all = properties_with_pools();
    all["enable_auto_anti_affinity"] = json!(true);
    let (_host, cloud) = start(all);
    cloud.borrow_mut().put("pools", "pool-1", json!({"name": "web"}));
    cloud.borrow_mut().put("ports", "reserved", json!({"fixed_ips": [{"ip_address": "10.0.0.99"}]}));
    let zone = json!({"status": "available", "availability_zone": "zone-1"});
    cloud.borrow_mut().put("volumes", "d", zone);
    let pools = json!([{"name": "web", "port": 80}, {"name": "web", "port": 443}]);
    let vm_type = json!({
        "instance_type": "m1.small", "loadbalancer_pools": pools, "allowed_address_pairs": "10.0.0.99",
    });
    let mut wanted = request(vm_type, vec![manual(), vip()]);
    wanted.disks = vec!["d".into()];
    cpi().create_vm(wanted).unwrap();
    let cloud = cloud.borrow();
    assert_eq!(cloud.all("members").len(), 2);
    let ahead = [
        "GET ports",
        "GET images/image-1",
        "GET flavors/detail",
        "GET os-keypairs/bosh",
        "GET security-groups",
        "GET volumes/d",
        "GET pools",
        "GET ",
        "GET floatingips",
    ];
    assert_eq!(cloud.seen[..ahead.len()], ahead);
    // The second page of a list is read when the first one is known.
    assert_eq!(cloud.seen[ahead.len()], "GET security-groups");
    let again = cloud.seen[ahead.len() + 1..].iter().filter(|line| ahead.contains(&line.as_str()));
    assert_eq!(again.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn the_other_methods_read_at_once_what_does_not_depend_on_each_other() {
    // The first request of each group is refused, and the others are sent nevertheless.
    for (call, before, at_once) in [
        (
            (|| drop(cpi().attach_disk("s".into(), "d".into()).unwrap_err())) as fn(),
            &[][..],
            &["GET servers/s", "GET volumes/d", "GET servers/s/os-volume_attachments"][..],
        ),
        (
            || drop(cpi().get_disks("s".into()).unwrap_err()),
            &[],
            &["GET servers/s", "GET servers/s/os-volume_attachments"],
        ),
        (
            || drop(cpi().get_disks("s".into()).unwrap_err()),
            &["GET servers/s", "GET servers/s/os-volume_attachments"],
            &["GET volumes/boot", "GET volumes/more"],
        ),
        (|| drop(cpi().delete_vm("s".into()).unwrap_err()), &[], &["GET servers/s", "GET ports"]),
        (
            || drop(cpi().delete_vm("s".into()).unwrap_err()),
            &["GET servers/s", "GET ports", "GET servers/s/os-volume_attachments"],
            &["GET volumes/boot", "GET volumes/more"],
        ),
        (
            || drop(cpi().delete_vm("gone".into()).unwrap_err()),
            &["GET servers/gone", "GET ports"],
            &["GET ports", "GET volumes/detail"],
        ),
    ] {
        let (_host, cloud) = start(properties());
        put_server_and_disk(&cloud, json!({"image": ""}), json!({}));
        for (id, more) in [("boot", json!({"bootable": "true"})), ("more", json!({"name": "m"}))] {
            let mut volume = json!({"status": "in-use", "attachments": [{"server_id": "s"}]});
            volume.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            cloud.borrow_mut().put("volumes", id, volume);
        }
        let refusal = Fault::Before(Answer::json(403, json!({"forbidden": {"message": "not yours"}})));
        let path = at_once[0].strip_prefix("GET ").unwrap();
        let equal_before = before.iter().filter(|line| **line == at_once[0]).count();
        cloud.borrow_mut().fault("GET", path, equal_before, refusal);
        call();
        assert_eq!(cloud.borrow().seen, [before, at_once].concat());
    }
}

#[test]
fn a_failed_request_counts_only_if_its_object_is_needed() {
    let attached = json!({"status": "in-use", "attachments": [{"server_id": "s", "device": "/dev/vdc"}]});
    for (disk, fails) in [(attached, false), (json!({}), true)] {
        let (_host, cloud) = start(properties());
        put_server_and_disk(&cloud, json!({}), disk);
        let refusal = Fault::Before(Answer::json(403, json!({"forbidden": {"message": "not yours"}})));
        cloud.borrow_mut().fault("GET", "servers/*/os-volume_attachments", 0, refusal);
        match cpi().attach_disk("s".into(), "d".into()) {
            Ok(_) => assert!(!fails),
            Err(error) => assert!(fails && error.message.contains("not yours"), "{error}"),
        }
    }
}

#[test]
fn attachments_are_read_again_after_waiting_for_the_disk() {
    let (_host, cloud) = start(properties());
    put_server_and_disk(&cloud, json!({}), json!({"status": "detaching"}));
    cpi().attach_disk("s".into(), "d".into()).unwrap();
    assert_eq!(cloud.borrow().count_requests("GET servers/s/os-volume_attachments"), 2);
}

#[test]
fn objects_are_not_read_before_a_request_whose_answer_says_whether_they_exist() {
    for (call, requests) in [
        ((|| cpi().set_vm_metadata("s".into(), metadata()).unwrap()) as fn(), &["POST servers/s/metadata"][..]),
        (|| cpi().set_disk_metadata("d".into(), metadata()).unwrap(), &["POST volumes/d/metadata"]),
        (
            || cpi().detach_disk("s".into(), "d".into()).unwrap(),
            &["GET servers/s", "DELETE servers/s/os-volume_attachments/d", "GET volumes/d"],
        ),
        (
            || cpi().delete_disk("d".into()).unwrap(),
            // It is read until it does not exist any more.
            &["GET volumes/d", "DELETE volumes/d", "GET volumes/d", "GET volumes/d"],
        ),
        (|| cpi().delete_snapshot("gone".into()).unwrap(), &["DELETE snapshots/gone"]),
    ] {
        let (_host, cloud) = start(properties());
        put_server_and_disk(&cloud, json!({}), json!({}));
        call();
        assert_eq!(cloud.borrow().seen, *requests);
    }
}

#[test]
fn metadata_of_a_missing_object_is_not_found_and_nothing_else_is_asked() {
    let (_host, cloud) = start(properties());
    for id in ["gone", "", "..", "a/b"] {
        assert_eq!(cpi().set_vm_metadata(id.into(), metadata()).unwrap_err().kind, ErrorKind::VmNotFound);
        let error = cpi().set_disk_metadata(id.into(), metadata()).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::DiskNotFound(_)), "{error}");
    }
    assert_eq!(cloud.borrow().seen, ["POST servers/gone/metadata", "POST volumes/gone/metadata"]);
    // A page of a proxy does not mean that the object is missing.
    cloud.borrow_mut().fault("POST", "servers/*/metadata", 0, Fault::Before(Answer::text(404, "<html>")));
    let error = cpi().set_vm_metadata("s".into(), metadata()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cloud);
    assert!(error.message.contains("the answer is not from the compute service"), "{error}");
}

#[test]
fn a_soft_deleted_vm_has_no_metadata_to_set_and_a_busy_one_is_an_error() {
    for (status, expected) in [("SOFT_DELETED", ErrorKind::VmNotFound), ("ERROR", ErrorKind::Cloud)] {
        let (_host, cloud) = start(properties());
        put_server_and_disk(&cloud, json!({"status": status}), json!({}));
        let conflict = json!({"conflictingRequest": {"message": "Cannot 'update metadata' instance"}});
        cloud.borrow_mut().fault("POST", "servers/*/metadata", 0, Fault::Before(Answer::json(409, conflict)));
        let error = cpi().set_vm_metadata("s".into(), metadata()).unwrap_err();
        assert_eq!(error.kind, expected, "{error}");
    }
}

#[test]
fn without_metadata_only_the_existence_is_checked() {
    let (_host, cloud) = start(properties());
    put_server_and_disk(&cloud, json!({}), json!({}));
    cpi().set_vm_metadata("s".into(), vec![]).unwrap();
    cpi().set_disk_metadata("d".into(), vec![]).unwrap();
    assert_eq!(cloud.borrow().seen, ["GET servers/s", "GET volumes/d"]);
}

#[test]
fn a_vm_that_disappears_before_its_pools_are_noted_is_an_error_that_may_pass() {
    let (_host, cloud) = start(properties_with_pools());
    cloud.borrow_mut().put("pools", "pool-1", json!({"name": "web"}));
    let gone = Answer::json(404, json!({"itemNotFound": {"message": "no such server"}}));
    cloud.borrow_mut().fault("POST", "servers/*/metadata", 0, Fault::Before(gone));
    let pools = json!({"instance_type": "m1.small", "loadbalancer_pools": [{"name": "web", "port": 80}]});
    let error = cpi().create_vm(request(pools, vec![manual()])).unwrap_err();
    let ErrorKind::VmCreationFailed(advice) = error.kind else { panic!("{error}") };
    assert!(advice.ok_to_retry && error.message.contains("disappeared while it was created"), "{error}");
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}
