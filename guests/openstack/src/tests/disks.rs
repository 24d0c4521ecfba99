//! Disks and snapshots: success, and errors in the request.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::AgentEvent;
use wasm_cpi_sdk::{Cpi, DiskHint, ErrorKind, Json, RetryAdvice};

use super::{cpi, properties, properties_with, start};

fn server(more: Value) -> Value {
    let mut server = json!({"name": "vm-x", "status": "ACTIVE", "metadata": {}, "flavor": {"id": "flavor-m1.small"},
        "image": {"id": "i"}, "OS-EXT-AZ:availability_zone": "zone-1"});
    for (key, value) in more.as_object().unwrap() {
        server[key] = value.clone();
    }
    server
}

fn volume(more: Value) -> Value {
    let mut volume =
        json!({"status": "available", "name": "volume-d", "size": 2, "attachments": [], "volume_type": "t"});
    for (key, value) in more.as_object().unwrap() {
        volume[key] = value.clone();
    }
    volume
}

#[test]
fn a_disk_has_the_requested_size_type_and_zone() {
    for (properties, disk, vm, zone, kind) in [
        (json!({}), json!({}), Some("s"), json!("zone-1"), Value::Null),
        (json!({"default_volume_type": "ssd"}), json!({}), None, Value::Null, json!("ssd")),
        (json!({"default_volume_type": "ssd"}), json!({"type": "hdd"}), Some("gone"), Value::Null, json!("hdd")),
        (json!({"ignore_server_availability_zone": true}), json!({}), Some("s"), Value::Null, Value::Null),
    ] {
        let (_host, cloud) = start(properties_with(properties));
        cloud.borrow_mut().put("servers", "s", server(json!({})));
        let id = cpi().create_disk(1025, Json::from(disk), vm.map(str::to_owned)).unwrap();
        let volume = cloud.borrow().get("volumes", &id);
        assert_eq!((&volume["size"], &volume["availability_zone"], &volume["volume_type"]), (&json!(2), &zone, &kind));
    }
    let (_host, cloud) = start(properties());
    assert_eq!(cpi().create_disk(1023, Json::default(), None).unwrap_err().kind, ErrorKind::Cpi);
    let wrong = cpi().create_disk(1024, Json::named("cloud_properties", r#"{"type":1}"#), None).unwrap_err();
    assert!(wrong.message.contains("cloud_properties.type: invalid type"), "{wrong}");
    assert_eq!(cloud.borrow().seen.len(), 0);
}

#[test]
fn a_disk_gets_the_next_free_device_and_the_agent_settings_have_it() {
    for (flavor, config_drive, taken, device) in [
        ("m1.tiny", json!(null), vec![], "/dev/sdb"),
        ("m1.small", json!(null), vec![], "/dev/sdc"),
        ("m1.small", json!("disk"), vec![], "/dev/sdd"),
        ("m1.small", json!("cdrom"), vec!["/dev/vdc", "/dev/sdd"], "/dev/sde"),
    ] {
        let (host, cloud) = start(properties_with(json!({"config_drive": config_drive})));
        let flavor = json!({"flavor": {"id": format!("flavor-{flavor}")}, "metadata": {"registry_key": "vm-first"}});
        cloud.borrow_mut().put("servers", "s", server(flavor));
        for (index, device) in taken.iter().enumerate() {
            let places = json!({"attachments": [{"server_id": "s", "device": device}], "status": "in-use"});
            cloud.borrow_mut().put("volumes", &format!("other-{index}"), volume(places));
        }
        cloud.borrow_mut().put("volumes", "d", volume(json!({})));
        let hint = cpi().attach_disk("s".into(), "d".into()).unwrap();
        assert_eq!(hint, DiskHint::Text(device.into()));
        let expected = AgentEvent::Attached { registry_key: "vm-first".into(), disk: "d".into(), hint };
        assert_eq!(host.agent_events(), [expected]);
        // A second call returns the same hint and sends no request.
        assert_eq!(cpi().attach_disk("s".into(), "d".into()).unwrap(), DiskHint::Text(device.into()));
        assert_eq!(cloud.borrow().count_requests("POST servers/s/os-volume_attachments"), 1);
    }
}

#[test]
fn a_disk_that_is_attached_elsewhere_or_failed_is_not_attached() {
    let elsewhere = json!({"status": "in-use", "attachments": [{"server_id": "other", "device": "/dev/vdb"}]});
    for (volume_state, part) in [(elsewhere, "attached to `other`"), (json!({"status": "error"}), "found `error`")] {
        let (_host, cloud) = start(properties());
        cloud.borrow_mut().put("servers", "s", server(json!({})));
        cloud.borrow_mut().put("volumes", "d", volume(volume_state));
        let error = cpi().attach_disk("s".into(), "d".into()).unwrap_err();
        assert!(error.message.contains(part), "{error}");
        assert_eq!(cloud.borrow().count_requests("POST"), 0);
    }
}

#[test]
fn attach_disk_waits_for_a_disk_that_is_being_detached() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().put("servers", "s", server(json!({})));
    cloud.borrow_mut().put("volumes", "d", volume(json!({"status": "detaching"})));
    cpi().attach_disk("s".into(), "d".into()).unwrap();
}

#[test]
fn detach_disk_succeeds_for_attached_detached_and_missing_disks() {
    let attached = json!({"status": "in-use", "attachments": [{"server_id": "s", "device": "/dev/vdb"}]});
    for before in [Some(attached), Some(json!({})), None] {
        let (host, cloud) = start(properties());
        cloud.borrow_mut().put("servers", "s", server(json!({})));
        if let Some(before) = before {
            cloud.borrow_mut().put("volumes", "d", volume(before));
        }
        cpi().detach_disk("s".into(), "d".into()).unwrap();
        let expected = AgentEvent::Detached { registry_key: "vm-x".into(), disk: "d".into() };
        assert_eq!(host.agent_events(), [expected]);
        let left = cloud.borrow().get("volumes", "d");
        assert!(left.is_null() || left["status"] == "available", "{left}");
    }
}

#[test]
fn a_missing_disk_is_disk_not_found_and_deleting_a_missing_snapshot_succeeds() {
    let (_host, _cloud) = start(properties());
    for disk in ["gone", "", ".."] {
        let disk = || disk.to_owned();
        assert_eq!(cpi().has_disk(disk()), Ok(false));
        for error in [
            cpi().delete_disk(disk()).unwrap_err(),
            cpi().resize_disk(disk(), 4096).unwrap_err(),
            cpi().update_disk(disk(), 4096, Json::default()).unwrap_err(),
            cpi().set_disk_metadata(disk(), vec![]).unwrap_err(),
            cpi().snapshot_disk(disk(), vec![]).unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: false }));
        }
    }
    assert_eq!(cpi().delete_snapshot("gone".into()), Ok(()));
}

#[test]
fn an_attached_disk_is_not_deleted() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().put("volumes", "d", volume(json!({"status": "detaching"})));
    cpi().delete_disk("d".into()).unwrap();
    assert!(!cpi().has_disk("d".into()).unwrap());
    let attached = json!({"status": "in-use", "attachments": [{"server_id": "s", "device": "/dev/vdb"}]});
    cloud.borrow_mut().put("volumes", "d", volume(attached));
    let error = cpi().delete_disk("d".into()).unwrap_err();
    assert!(error.message.contains("attached to `s`"), "{error}");
    assert!(cpi().has_disk("d".into()).unwrap());
}

#[test]
fn update_disk_changes_the_disk_in_place_or_is_not_supported() {
    let attached = json!({"status": "in-use", "attachments": [{"server_id": "s", "device": "/dev/vdb"}]});
    for (state, size, kind, expected) in [
        (json!({}), 2048, None, Ok((2, "t"))),
        (json!({}), 2049, None, Ok((3, "t"))),
        (json!({}), 2048, Some("u"), Ok((2, "u"))),
        (json!({}), 5000, Some("u"), Ok((5, "u"))),
        (json!({}), 1024, None, Err(ErrorKind::NotSupported)),
        (json!({}), 2048, Some("elsewhere"), Err(ErrorKind::NotSupported)),
        (attached.clone(), 4096, None, Err(ErrorKind::NotSupported)),
        (attached, 2048, Some("t"), Ok((2, "t"))),
    ] {
        let (_host, cloud) = start(properties());
        cloud.borrow_mut().put("volumes", "d", volume(state));
        let outcome = cpi().update_disk("d".into(), size, Json::from(json!({"type": kind})));
        match expected {
            Ok((size, kind)) => {
                assert_eq!(outcome, Ok(None));
                let volume = cloud.borrow().get("volumes", "d");
                assert_eq!((&volume["size"], &volume["volume_type"]), (&json!(size), &json!(kind)));
            }
            Err(kind) => assert_eq!(outcome.unwrap_err().kind, kind),
        }
    }
}

#[test]
fn resize_disk_accepts_only_a_larger_size_for_a_detached_disk() {
    let attached = json!({"status": "in-use", "attachments": [{"server_id": "s", "device": "/dev/vdb"}]});
    for (state, size, expected) in [
        (json!({}), 4096, Ok(4)),
        (json!({}), 2000, Ok(2)),
        (json!({}), 1024, Err(ErrorKind::NotSupported)),
        (attached, 4096, Err(ErrorKind::Cloud)),
    ] {
        let (_host, cloud) = start(properties());
        cloud.borrow_mut().put("volumes", "d", volume(state));
        let outcome = cpi().resize_disk("d".into(), size);
        assert_eq!(
            outcome.map(|()| cloud.borrow().get("volumes", "d")["size"].as_u64().unwrap()).map_err(|e| e.kind),
            expected
        );
    }
}

#[test]
fn a_snapshot_has_a_description_and_metadata_of_its_disk() {
    let (_host, cloud) = start(properties());
    let attached = json!({"status": "in-use", "attachments": [{"server_id": "s", "device": "/dev/vdc"}]});
    cloud.borrow_mut().put("volumes", "d", volume(attached));
    let metadata = [
        ("deployment", "cf"),
        ("job", "db"),
        ("index", "3"),
        ("director_name", "bosh"),
        ("instance_id", "i"),
        ("agent_id", "a"),
    ];
    let metadata = metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let id = cpi().snapshot_disk("d".into(), metadata).unwrap();
    let snapshot = cloud.borrow().get("snapshots", &id);
    assert_eq!(snapshot["description"], "cf/db/3/vdc");
    assert_eq!((&snapshot["force"], &snapshot["volume_id"]), (&json!(true), &json!("d")));
    let tags = json!({"deployment": "cf", "instance_index": "3", "director": "bosh", "instance_id": "i",
        "instance_name": "db/i", "agent_id": "a"});
    assert_eq!(snapshot["metadata"], tags);
    cpi().delete_snapshot(id).unwrap();
    assert_eq!(cloud.borrow().all("snapshots"), Vec::<Value>::new());
}

#[test]
fn set_disk_metadata_adds_tags() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().put("volumes", "d", volume(json!({"metadata": {"old": "1"}})));
    cpi().set_disk_metadata("d".into(), vec![("deployment".into(), "cf".into())]).unwrap();
    assert_eq!(cloud.borrow().get("volumes", "d")["metadata"], json!({"old": "1", "deployment": "cf"}));
}
