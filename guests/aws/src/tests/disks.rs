//! `create_disk`, `delete_disk`, `has_disk`, `get_disks` and `set_disk_metadata`.

use serde_json::{Value, json};
use wasm_cpi_sdk::{Cpi, ErrorKind, Json, RetryAdvice};

use super::answers::instance;
use super::storage_answers::{body, broken, done, lost, mappings, refused, serve, serve_with, volume, with_id};
use super::{cpi, form_of, operations};

const FINAL: RetryAdvice = RetryAdvice { ok_to_retry: false };

fn named(properties: Value) -> Json {
    Json::named("cloud_properties", properties.to_string())
}

#[test]
fn a_disk_is_created_in_the_zone_of_its_vm() {
    let host = serve(&[
        ("DescribeInstances", body(&instance("i-1", "running", ""))),
        ("CreateVolume", with_id("volumeId", "vol-1")),
        ("DescribeVolumes", refused("InvalidVolume.NotFound")),
        ("DescribeVolumes", volume("creating", "")),
        ("DescribeVolumes", volume("available", "")),
    ]);
    let properties = json!({
        "type": "io2", "iops": 4000, "encrypted": true, "kms_key_arn": "arn:aws:kms:us-east-1:1:key/1", "tags": {"team": "a"},
    });
    assert_eq!(cpi().create_disk(10_241, named(properties), Some("i-1".into())), Ok("vol-1".into()));
    let form = form_of(&host, "CreateVolume");
    for (name, value) in [
        ("AvailabilityZone", "us-east-1a"),
        ("Size", "11"),
        ("VolumeType", "io2"),
        ("Iops", "4000"),
        ("Encrypted", "true"),
        ("KmsKeyId", "arn:aws:kms:us-east-1:1:key/1"),
        ("TagSpecification.1.ResourceType", "volume"),
        ("TagSpecification.1.Tag.1.Key", "team"),
    ] {
        assert_eq!(form.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(form["ClientToken"].starts_with("cpi-000001-") && !form.contains_key("Throughput"));
}

#[test]
fn a_disk_without_a_vm_is_created_in_a_usual_zone_of_the_region() {
    let zones = "<R><availabilityZoneInfo><item><zoneName>us-east-1-bos-1a</zoneName><zoneType>local-zone</zoneType></item>\
                 <item><zoneName>us-east-1c</zoneName><zoneType>availability-zone</zoneType></item></availabilityZoneInfo></R>";
    let host = serve_with(
        json!({"encrypted": true, "kms_key_arn": "arn:1"}),
        &[
            ("DescribeAvailabilityZones", body(zones)),
            ("CreateVolume", with_id("volumeId", "vol-1")),
            ("DescribeVolumes", volume("available", "")),
        ],
    );
    cpi().create_disk(1024, Json::default(), None).unwrap();
    assert_eq!(operations(&host), ["DescribeAvailabilityZones", "CreateVolume", "DescribeVolumes"]);
    let form = form_of(&host, "CreateVolume");
    assert_eq!((&*form["AvailabilityZone"], &*form["VolumeType"], &*form["Size"]), ("us-east-1c", "gp3", "1"));
    assert_eq!((&*form["Encrypted"], &*form["KmsKeyId"]), ("true", "arn:1"));
}

#[test]
fn a_key_without_encryption_is_refused_before_anything_is_created() {
    let host = serve(&[]);
    let error = cpi().create_disk(1024, named(json!({"kms_key_arn": "arn:1"})), None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cpi);
    assert!(error.message.starts_with("cloud_properties.kms_key_arn is set, but encryption is off"), "{error}");
    assert!(host.requests().is_empty());
    // The operator's key is for encrypted disks only.
    let host = serve_with(
        json!({"kms_key_arn": "arn:1"}),
        &[
            ("DescribeInstances", body(&instance("i-1", "running", ""))),
            ("CreateVolume", with_id("volumeId", "vol-1")),
            ("DescribeVolumes", volume("available", "")),
        ],
    );
    cpi().create_disk(1024, Json::default(), Some("i-1".into())).unwrap();
    assert!(!form_of(&host, "CreateVolume").contains_key("KmsKeyId"));
}

#[test]
fn a_lost_answer_is_asked_for_again_with_the_same_token() {
    for first in [lost(), broken(), refused("RequestLimitExceeded")] {
        let host = serve(&[
            ("DescribeInstances", body(&instance("i-1", "running", ""))),
            ("CreateVolume", first),
            ("CreateVolume", with_id("volumeId", "vol-1")),
            ("DescribeVolumes", volume("available", "")),
        ]);
        assert_eq!(cpi().create_disk(1024, Json::default(), Some("i-1".into())), Ok("vol-1".into()));
        assert_eq!(host.request_form(1).unwrap(), host.request_form(2).unwrap());
    }
}

#[test]
fn a_disk_that_fails_is_deleted() {
    let host = serve(&[
        ("DescribeInstances", body(&instance("i-1", "running", ""))),
        ("CreateVolume", with_id("volumeId", "vol-1")),
        ("DescribeVolumes", volume("error", "")),
        ("DeleteVolume", refused("InvalidVolume.NotFound")),
    ]);
    let error = cpi().create_disk(1024, Json::default(), Some("i-1".into())).unwrap_err();
    assert!(error.message.contains("found `error`; if the disk is encrypted, check that its key exists"), "{error}");
    assert_eq!(operations(&host).last().unwrap(), "DeleteVolume");
    // A volume whose key EC2 may not use disappears.
    let _host = serve(&[
        ("DescribeInstances", body(&instance("i-1", "running", ""))),
        ("CreateVolume", with_id("volumeId", "vol-1")),
        ("DescribeVolumes", refused("InvalidVolume.NotFound")),
        ("DeleteVolume", refused("UnauthorizedOperation")),
    ]);
    let error = cpi().create_disk(1024, Json::default(), Some("i-1".into())).unwrap_err();
    assert!(error.message.contains("found `not found`"), "{error}");
    assert!(error.message.contains("disk `vol-1` is left in the cloud, because deleting it failed"), "{error}");
}

#[test]
fn a_lack_of_space_says_whether_to_retry() {
    for (code, advice) in [
        ("InsufficientVolumeCapacity", Some(true)),
        ("VolumeLimitExceeded", Some(false)),
        ("InvalidParameterValue", None),
    ] {
        let _host =
            serve(&[("DescribeInstances", body(&instance("i-1", "running", ""))), ("CreateVolume", refused(code))]);
        let error = cpi().create_disk(1024, Json::default(), Some("i-1".into())).unwrap_err();
        let expected = match advice {
            Some(ok_to_retry) => ErrorKind::NoDiskSpace(RetryAdvice { ok_to_retry }),
            None => ErrorKind::Cloud,
        };
        assert_eq!(error.kind, expected, "{error}");
        assert!(error.message.contains(code) && error.message.contains("request ID req-1"), "{error}");
    }
}

#[test]
fn a_disk_is_deleted_as_soon_as_it_is_free() {
    let host = serve(&[
        ("DeleteVolume", refused("VolumeInUse")),
        ("DeleteVolume", done()),
        ("DescribeVolumes", volume("deleting", "")),
        ("DescribeVolumes", refused("InvalidVolume.NotFound")),
    ]);
    cpi().delete_disk("vol-1".into()).unwrap();
    assert_eq!(operations(&host), ["DeleteVolume", "DeleteVolume", "DescribeVolumes", "DescribeVolumes"]);
}

#[test]
fn a_disk_that_stays_in_use_is_an_error_with_the_answer_of_ec2() {
    let host = serve(&[("DeleteVolume", refused("VolumeInUse"))]);
    let error = cpi().delete_disk("vol-1".into()).unwrap_err();
    assert!(error.message.starts_with("timed out after 600 s waiting for disk `vol-1` to be free"), "{error}");
    assert!(error.message.contains("the last answer: DeleteVolume failed with VolumeInUse"), "{error}");
    assert_eq!(host.sleeps().iter().sum::<u64>(), 600_000);
}

#[test]
fn deleting_a_missing_disk_is_an_error_unless_this_call_deleted_it() {
    let _host = serve(&[("DeleteVolume", refused("InvalidVolume.NotFound"))]);
    assert_eq!(cpi().delete_disk("vol-1".into()).unwrap_err().kind, ErrorKind::DiskNotFound(FINAL));
    for first in [lost(), broken()] {
        let _host = serve(&[
            ("DeleteVolume", first),
            ("DeleteVolume", refused("InvalidVolume.NotFound")),
            ("DescribeVolumes", refused("InvalidVolume.NotFound")),
        ]);
        cpi().delete_disk("vol-1".into()).unwrap();
    }
}

#[test]
fn a_server_that_never_answers_is_not_asked_for_ever() {
    let host = serve(&[("DeleteVolume", broken())]);
    let error = cpi().delete_disk("vol-1".into()).unwrap_err();
    assert!(error.message.contains("InternalError"), "{error}");
    assert_eq!(host.requests().len(), 5);
}

#[test]
fn fast_deletions_are_not_waited_for() {
    for answer in [done(), refused("InvalidVolume.NotFound")] {
        let host = serve_with(json!({"fast_path_delete": true}), &[("DeleteVolume", done()), ("CreateTags", answer)]);
        cpi().delete_disk("vol-1".into()).unwrap();
        assert_eq!(operations(&host), ["DeleteVolume", "CreateTags"]);
        let form = form_of(&host, "CreateTags");
        assert_eq!((&*form["Tag.1.Key"], &*form["Tag.1.Value"]), ("Name", "to be deleted"));
    }
}

#[test]
fn a_disk_exists_until_it_is_deleted() {
    for (answer, exists) in [
        (volume("available", ""), true),
        (volume("in-use", ""), true),
        (volume("deleting", ""), false),
        (refused("InvalidVolume.NotFound"), false),
    ] {
        let host = serve(&[("DescribeVolumes", answer)]);
        assert_eq!(cpi().has_disk("vol-1".into()), Ok(exists));
        assert_eq!(host.requests().len(), 1);
    }
    let _host = serve(&[("DescribeVolumes", refused("InvalidParameterValue"))]);
    assert_eq!(cpi().has_disk("x".into()).unwrap_err().kind, ErrorKind::Cloud);
}

#[test]
fn the_disks_of_a_vm_are_all_its_volumes() {
    let devices = mappings(&[("/dev/xvda", "vol-root"), ("/dev/sdb", "vol-ephemeral"), ("/dev/sdf", "vol-1")]);
    let _host = serve(&[("DescribeInstances", body(&instance("i-1", "running", &devices)))]);
    assert_eq!(cpi().get_disks("i-1".into()).unwrap(), ["vol-root", "vol-ephemeral", "vol-1"]);
    for answer in [body(&instance("i-1", "terminated", "")), refused("InvalidInstanceID.NotFound")] {
        let _host = serve(&[("DescribeInstances", answer)]);
        assert_eq!(cpi().get_disks("i-1".into()).unwrap_err().kind, ErrorKind::VmNotFound);
    }
}

#[test]
fn metadata_of_a_disk_are_tags() {
    let metadata = || vec![("deployment".to_owned(), "cf".to_owned()), ("aws:x".to_owned(), "no".to_owned())];
    let host = serve(&[("CreateTags", refused("InvalidVolume.NotFound")), ("CreateTags", done())]);
    cpi().set_disk_metadata("vol-1".into(), metadata()).unwrap();
    let form = form_of(&host, "CreateTags");
    assert_eq!((&*form["ResourceId.1"], &*form["Tag.1.Key"], form.get("Tag.2.Key")), ("vol-1", "deployment", None));
    let _host = serve(&[("CreateTags", refused("TagLimitExceeded"))]);
    cpi().set_disk_metadata("vol-1".into(), metadata()).unwrap();
    let _host = serve(&[("CreateTags", refused("InvalidVolume.NotFound"))]);
    let error = cpi().set_disk_metadata("vol-1".into(), metadata()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DiskNotFound(FINAL));
    let host = serve(&[]);
    cpi().set_disk_metadata("vol-1".into(), vec![]).unwrap();
    assert!(host.requests().is_empty());
}
