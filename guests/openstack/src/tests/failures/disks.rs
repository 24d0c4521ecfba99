//! Failures of disks and snapshots.

use serde_json::json;
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::http::TransportError;
use wasm_cpi_sdk::{Cpi, ErrorKind, Json, RetryAdvice};

use super::super::cloud::Fault;
use super::super::{cpi, properties, properties_with, start};
use super::{matrix, server_and_disk};

#[test]
fn a_change_in_progress_is_not_an_error() {
    let reset = || Fault::After(Answer::fail(TransportError::Truncated, "connection reset", true));
    let (_host, cloud) = start(properties());
    server_and_disk(&cloud);
    cpi().attach_disk("s".into(), "d".into()).unwrap();
    let snapshot = cpi().snapshot_disk("d".into(), vec![]).unwrap();
    for path in ["servers/*/os-volume_attachments/*", "snapshots/*", "volumes/*"] {
        cloud.borrow_mut().fault("DELETE", path, 0, reset());
    }
    cpi().detach_disk("s".into(), "d".into()).unwrap();
    cpi().delete_snapshot(snapshot).unwrap();
    cpi().delete_disk("d".into()).unwrap();
    assert!(cloud.borrow().all("volumes").is_empty() && cloud.borrow().all("snapshots").is_empty());
}

#[test]
fn a_failed_attach_leaves_the_disk_detached() {
    matrix(
        |fake| fake,
        server_and_disk,
        || cpi().attach_disk("s".into(), "d".into()).map(|_| String::new()),
        |case, outcome, cloud| {
            let volume = cloud.borrow().get("volumes", "d");
            match outcome {
                Ok(_) => assert_eq!(volume["attachments"][0]["server_id"], "s", "{case}"),
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Cloud, "{case}");
                    assert!(volume["attachments"] == json!([]), "{case}: {volume}");
                }
            }
        },
    );
}

#[test]
fn a_failed_create_leaves_no_disk_or_snapshot() {
    matrix(
        |fake| fake,
        |_| {},
        || cpi().create_disk(2048, Json::default(), None),
        |case, outcome, cloud| match outcome {
            Ok(id) => assert_eq!(cloud.borrow().only("volumes")["id"], id, "{case}"),
            Err(_) => assert!(cloud.borrow().left().is_empty(), "{case}"),
        },
    );
    matrix(
        |fake| fake,
        server_and_disk,
        || cpi().snapshot_disk("d".into(), vec![]),
        |case, outcome, cloud| match outcome {
            Ok(id) => assert_eq!(cloud.borrow().only("snapshots")["id"], id, "{case}"),
            Err(_) => assert!(cloud.borrow().all("snapshots").is_empty(), "{case}"),
        },
    );
}

#[test]
fn an_exceeded_volume_quota_is_no_disk_space() {
    let (_host, cloud) = start(properties_with(json!({})));
    let quota = json!({"overLimit": {"code": 413, "message": "VolumeSizeExceedsAvailableQuota"}});
    cloud.borrow_mut().fault("POST", "volumes", 0, Fault::Before(Answer::json(413, quota)));
    let error = cpi().create_disk(2048, Json::default(), None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoDiskSpace(RetryAdvice { ok_to_retry: false }));
    assert!(error.message.contains("VolumeSizeExceedsAvailableQuota"), "{error}");
}

#[test]
fn the_error_says_that_the_disk_may_still_be_attached() {
    let (_host, cloud) = start(properties());
    server_and_disk(&cloud);
    cloud.borrow_mut().broken = Some("no device".into());
    for _ in 0..50 {
        cloud.borrow_mut().fault(
            "DELETE",
            "servers/*/os-volume_attachments/*",
            0,
            Fault::Before(Answer::text(403, "no")),
        );
    }
    let error = cpi().attach_disk("s".into(), "d".into()).unwrap_err();
    assert!(error.message.contains("expected status `in-use`, found `error`"), "{error}");
    assert!(error.message.contains("it may still be attached, because undoing that failed"), "{error}");
}

#[test]
fn a_device_is_never_guessed() {
    for (device, at_nova, hint) in [
        (json!("/dev/vdc"), json!("/dev/vdd"), Some("/dev/vdc")),
        (json!(""), json!("/dev/vdd"), Some("/dev/vdd")),
        (json!(null), json!(null), None),
    ] {
        let (_host, cloud) = start(properties());
        server_and_disk(&cloud);
        let attached = json!({"status": "in-use", "name": "volume-d", "size": 2, "bootable": "false",
            "attachments": [{"server_id": "s", "device": device}], "device_at_nova": at_nova});
        cloud.borrow_mut().put("volumes", "d", attached);
        let outcome = cpi().attach_disk("s".into(), "d".into());
        match hint {
            Some(hint) => assert_eq!(outcome, Ok(wasm_cpi_sdk::DiskHint::Text(hint.into()))),
            None => assert!(outcome.unwrap_err().message.contains("does not name its device")),
        }
    }
}
