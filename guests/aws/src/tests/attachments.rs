//! `attach_disk` and `detach_disk`.

use serde_json::json;
use wasm_cpi_sdk::fake::{AgentEvent, Answer};
use wasm_cpi_sdk::{Cpi, DiskHint, ErrorKind, RetryAdvice};

use super::answers::{instance, instance_types};
use super::storage_answers::{attached_volume, body, broken, done, lost, mappings, refused, serve, serve_with, volume};
use super::{cpi, form_of, operations};

const NVME: &str = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol1";

fn vm() -> Answer {
    body(&instance("i-1", "running", &mappings(&[("/dev/xvda", "vol-root"), ("/dev/sdb", "vol-ephemeral")])))
}

fn m5(nvme: &str) -> Answer {
    body(&instance_types(&[("m5.large", 2, 8192, nvme, 0, 0)]))
}

fn hint(path: &str) -> DiskHint {
    DiskHint::Text(path.to_owned())
}

#[test]
fn the_hint_is_the_path_of_the_nvme_device_or_the_device_name() {
    for (nvme, path) in [("required", NVME), ("supported", "/dev/sdf"), ("unsupported", "/dev/sdf")] {
        let host = serve(&[
            ("DescribeInstances", vm()),
            ("AttachVolume", done()),
            ("DescribeVolumes", volume("available", "")),
            ("DescribeVolumes", attached_volume("i-1", "attaching")),
            ("DescribeVolumes", attached_volume("i-1", "attached")),
            ("DescribeInstanceTypes", m5(nvme)),
        ]);
        assert_eq!(cpi().attach_disk("i-1".into(), "vol-1".into()), Ok(hint(path)));
        let form = form_of(&host, "AttachVolume");
        assert_eq!((&*form["InstanceId"], &*form["VolumeId"], &*form["Device"]), ("i-1", "vol-1", "/dev/sdf"));
        let event = AgentEvent::Attached { registry_key: "i-1".into(), disk: "vol-1".into(), hint: hint(path) };
        assert_eq!(host.agent_events(), [event]);
    }
}

#[test]
fn without_descriptions_the_family_says_whether_devices_are_nvme() {
    let host = serve_with(
        json!({"enable_describe_instance_types": false}),
        &[
            ("DescribeInstances", vm()),
            ("AttachVolume", done()),
            ("DescribeVolumes", attached_volume("i-1", "attached")),
        ],
    );
    assert_eq!(cpi().attach_disk("i-1".into(), "vol-1".into()), Ok(hint(NVME)));
    assert_eq!(operations(&host), ["DescribeInstances", "AttachVolume", "DescribeVolumes"]);
}

#[test]
fn a_used_device_name_is_not_used_again() {
    let taken: Vec<String> = ('f'..='o').map(|letter| format!("/dev/sd{letter}")).collect();
    let mut devices: Vec<(&str, &str)> = taken.iter().map(|name| (name.as_str(), "vol-x")).collect();
    devices[3].0 = "/dev/xvdi";
    let host = serve(&[
        ("DescribeInstances", body(&instance("i-1", "running", &mappings(&devices)))),
        ("AttachVolume", done()),
        ("DescribeVolumes", attached_volume("i-1", "attached")),
        ("DescribeInstanceTypes", m5("required")),
    ]);
    cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap();
    assert_eq!(form_of(&host, "AttachVolume")["Device"], "/dev/sdp");
    devices.push(("/dev/sdp", "vol-x"));
    let host = serve(&[("DescribeInstances", body(&instance("i-1", "running", &mappings(&devices))))]);
    let error = cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap_err();
    assert!(error.message.contains("no free device name from /dev/sdf to /dev/sdp"), "{error}");
    assert_eq!(host.requests().len(), 1);
}

#[test]
fn a_disk_that_is_attached_already_is_not_attached_again() {
    let devices = mappings(&[("/dev/sdg", "vol-1")]);
    let host = serve(&[
        ("DescribeInstances", body(&instance("i-1", "running", &devices))),
        ("DescribeInstanceTypes", m5("unsupported")),
    ]);
    assert_eq!(cpi().attach_disk("i-1".into(), "vol-1".into()), Ok(hint("/dev/sdg")));
    assert_eq!(operations(&host), ["DescribeInstances", "DescribeInstanceTypes"]);
}

#[test]
fn a_disk_in_use_is_attached_as_soon_as_it_is_free() {
    for code in ["VolumeInUse", "IncorrectState", "InvalidVolume.NotFound"] {
        let host = serve(&[
            ("DescribeInstances", vm()),
            ("AttachVolume", refused(code)),
            ("AttachVolume", refused(code)),
            ("AttachVolume", done()),
            ("DescribeVolumes", attached_volume("i-2", "detaching")),
            ("DescribeVolumes", volume("available", "")),
            ("DescribeVolumes", attached_volume("i-1", "attached")),
            ("DescribeInstanceTypes", m5("required")),
        ]);
        assert_eq!(cpi().attach_disk("i-1".into(), "vol-1".into()), Ok(hint(NVME)), "{code}");
        assert_eq!(operations(&host).iter().filter(|name| *name == "AttachVolume").count(), 3, "{code}");
    }
}

#[test]
fn the_effect_of_a_lost_answer_is_looked_up() {
    for first in [lost(), broken()] {
        let host = serve(&[
            ("DescribeInstances", vm()),
            ("AttachVolume", first.clone()),
            ("AttachVolume", done()),
            ("DescribeVolumes", attached_volume("i-1", "attaching")),
            ("DescribeVolumes", attached_volume("i-1", "attached")),
            ("DescribeInstanceTypes", m5("required")),
        ]);
        assert_eq!(cpi().attach_disk("i-1".into(), "vol-1".into()), Ok(hint(NVME)));
        assert_eq!(operations(&host).iter().filter(|name| *name == "AttachVolume").count(), 1);
        // If it had no effect, it is sent again.
        let host = serve(&[
            ("DescribeInstances", vm()),
            ("AttachVolume", first),
            ("AttachVolume", done()),
            ("DescribeVolumes", volume("available", "")),
            ("DescribeVolumes", attached_volume("i-1", "attached")),
            ("DescribeInstanceTypes", m5("required")),
        ]);
        assert_eq!(cpi().attach_disk("i-1".into(), "vol-1".into()), Ok(hint(NVME)));
        assert_eq!(operations(&host).iter().filter(|name| *name == "AttachVolume").count(), 2);
    }
}

#[test]
fn what_does_not_exist_is_named() {
    let _host = serve(&[("DescribeInstances", refused("InvalidInstanceID.NotFound"))]);
    assert_eq!(cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap_err().kind, ErrorKind::VmNotFound);
    let _host = serve(&[("DescribeInstances", vm()), ("AttachVolume", refused("InvalidVolume.NotFound"))]);
    let error = cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::DiskNotFound(_)), "{error}");
    let _host = serve(&[("DescribeInstances", vm()), ("AttachVolume", refused("InvalidVolume.ZoneMismatch"))]);
    let error = cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap_err();
    assert!(error.message.contains("InvalidVolume.ZoneMismatch"), "{error}");
    let _host = serve(&[("DescribeInstances", vm()), ("AttachVolume", refused("AttachmentLimitExceeded"))]);
    let error = cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap_err();
    assert!(error.message.contains("or use another type"), "{error}");
}

#[test]
fn an_attachment_that_fails_is_undone() {
    let host = serve(&[
        ("DescribeInstances", vm()),
        ("AttachVolume", done()),
        ("DescribeVolumes", attached_volume("i-1", "detaching")),
        ("DescribeVolumes", volume("available", "")),
        ("DetachVolume", done()),
    ]);
    let error = cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap_err();
    assert!(error.message.starts_with("attaching disk `vol-1` to VM `i-1`: expected the attachment"), "{error}");
    assert!(!error.message.contains("may still be attached"), "{error}");
    assert_eq!(
        operations(&host),
        ["DescribeInstances", "AttachVolume", "DescribeVolumes", "DetachVolume", "DescribeVolumes"]
    );
    assert!(host.agent_events().is_empty());
}

#[test]
fn an_attached_disk_without_a_path_is_detached_again() {
    let host = serve(&[
        ("DescribeInstances", vm()),
        ("AttachVolume", done()),
        ("DescribeVolumes", attached_volume("i-1", "attached")),
        ("DescribeInstanceTypes", refused("UnauthorizedOperation")),
        ("DetachVolume", done()),
        ("DescribeVolumes", volume("available", "")),
    ]);
    let error = cpi().attach_disk("i-1".into(), "vol-1".into()).unwrap_err();
    assert!(error.message.starts_with("attaching disk `vol-1` to VM `i-1`: DescribeInstanceTypes failed"), "{error}");
    assert!(!error.message.contains("may still be attached"), "{error}");
    assert_eq!(operations(&host)[4..], ["DetachVolume", "DescribeVolumes"]);
    assert!(host.agent_events().is_empty());
}

#[test]
fn a_disk_is_detached_in_two_requests() {
    let host = serve(&[
        ("DetachVolume", done()),
        ("DescribeVolumes", attached_volume("i-1", "detaching")),
        ("DescribeVolumes", volume("available", "")),
    ]);
    cpi().detach_disk("i-1".into(), "vol-1".into()).unwrap();
    assert_eq!(operations(&host), ["DetachVolume", "DescribeVolumes", "DescribeVolumes"]);
    let form = form_of(&host, "DetachVolume");
    assert_eq!((&*form["InstanceId"], &*form["VolumeId"]), ("i-1", "vol-1"));
    assert_eq!(host.agent_events(), [AgentEvent::Detached { registry_key: "i-1".into(), disk: "vol-1".into() }]);
}

#[test]
fn a_disk_that_is_not_attached_is_an_error_unless_this_call_detached_it() {
    for code in ["IncorrectState", "InvalidAttachment.NotFound"] {
        for other in [volume("available", ""), attached_volume("i-2", "attached")] {
            let host = serve(&[("DetachVolume", refused(code)), ("DescribeVolumes", other.clone())]);
            let error = cpi().detach_disk("i-1".into(), "vol-1".into()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::DiskNotAttached(RetryAdvice { ok_to_retry: true }), "{error}");
            assert!(host.agent_events().is_empty());
            let _host = serve(&[("DetachVolume", lost()), ("DescribeVolumes", other)]);
            cpi().detach_disk("i-1".into(), "vol-1".into()).unwrap();
        }
    }
}

#[test]
fn a_missing_disk_is_detached_and_a_missing_vm_is_not() {
    let host = serve(&[("DetachVolume", refused("InvalidVolume.NotFound"))]);
    cpi().detach_disk("i-1".into(), "vol-1".into()).unwrap();
    assert_eq!(host.agent_events().len(), 1);
    let _host = serve(&[("DetachVolume", refused("InvalidInstanceID.NotFound"))]);
    assert_eq!(cpi().detach_disk("i-1".into(), "vol-1".into()).unwrap_err().kind, ErrorKind::VmNotFound);
}

#[test]
fn a_disk_that_the_vm_uses_is_an_error_that_says_so() {
    let _host = serve(&[("DetachVolume", done()), ("DescribeVolumes", attached_volume("i-1", "busy"))]);
    let error = cpi().detach_disk("i-1".into(), "vol-1".into()).unwrap_err();
    assert!(error.message.contains("timed out after 600 s") && error.message.contains("unmount it"), "{error}");
}
