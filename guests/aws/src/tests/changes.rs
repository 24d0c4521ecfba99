//! `resize_disk` and `update_disk`.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::{Cpi, ErrorKind, Json};

use super::storage_answers::{body, broken, done, lost, modification, refused, serve, serve_with, volume};
use super::{cpi, form_of, operations};

fn update(properties: Value, mib: u64) -> Result<Option<String>, wasm_cpi_sdk::Error> {
    cpi().update_disk("vol-1".into(), mib, Json::named("cloud_properties", properties.to_string()))
}

#[test]
fn a_disk_grows_in_place_while_it_is_attached() {
    let host = serve(&[
        ("DescribeVolumes", volume("in-use", "")),
        ("ModifyVolume", done()),
        ("DescribeVolumesModifications", refused("InvalidVolumeModification.NotFound")),
        ("DescribeVolumesModifications", modification("completed", 10)),
        ("DescribeVolumesModifications", modification("modifying", 20)),
        ("DescribeVolumesModifications", modification("optimizing", 20)),
    ]);
    cpi().resize_disk("vol-1".into(), 20 * 1024).unwrap();
    assert_eq!(operations(&host)[..2], ["DescribeVolumes", "ModifyVolume"]);
    assert_eq!(host.requests().len(), 6);
    let form = form_of(&host, "ModifyVolume");
    assert_eq!((&*form["VolumeId"], &*form["Size"], form.get("VolumeType")), ("vol-1", "20", None));
}

#[test]
fn a_disk_of_that_size_stays_and_one_cannot_shrink() {
    let host = serve(&[("DescribeVolumes", volume("available", ""))]);
    cpi().resize_disk("vol-1".into(), 9 * 1024 + 1).unwrap();
    let error = cpi().resize_disk("vol-1".into(), 9 * 1024).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotSupported);
    assert!(error.message.contains("cannot shrink from 10 GiB to 9 GiB"), "{error}");
    assert!(operations(&host).iter().all(|name| name == "DescribeVolumes"));
    let _host = serve(&[("DescribeVolumes", refused("InvalidVolume.NotFound"))]);
    assert!(matches!(cpi().resize_disk("vol-1".into(), 1).unwrap_err().kind, ErrorKind::DiskNotFound(_)));
}

#[test]
fn what_ec2_refuses_is_not_supported_with_its_reason() {
    for (code, kind) in [
        ("VolumeModificationRateExceeded", ErrorKind::NotSupported),
        ("IncorrectModificationState", ErrorKind::NotSupported),
        ("InvalidParameterValue", ErrorKind::NotSupported),
        ("UnsupportedOperation", ErrorKind::NotSupported),
        // A copy would fail, too.
        ("UnauthorizedOperation", ErrorKind::Cloud),
        ("AuthFailure", ErrorKind::Cloud),
        ("VolumeModificationSizeLimitExceeded", ErrorKind::Cloud),
    ] {
        let host = serve(&[("DescribeVolumes", volume("available", "")), ("ModifyVolume", refused(code))]);
        let error = cpi().resize_disk("vol-1".into(), 20 * 1024).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(code) && error.message.contains("The request failed"), "{error}");
        assert_eq!(host.requests().len(), 2, "{code}");
    }
}

#[test]
fn the_effect_of_a_lost_answer_is_looked_up() {
    for first in [lost(), broken()] {
        let answers = |last: Answer| {
            vec![
                ("DescribeVolumes", volume("available", "")),
                ("ModifyVolume", first.clone()),
                ("ModifyVolume", done()),
                ("DescribeVolumesModifications", last),
                ("DescribeVolumesModifications", modification("optimizing", 20)),
            ]
        };
        for (last, sent) in [
            (modification("modifying", 20), 1),
            (modification("completed", 10), 2),
            (refused("InvalidVolumeModification.NotFound"), 2),
        ] {
            let host = serve(&answers(last));
            cpi().resize_disk("vol-1".into(), 20 * 1024).unwrap();
            assert_eq!(operations(&host).iter().filter(|name| *name == "ModifyVolume").count(), sent);
        }
    }
}

#[test]
fn a_modification_that_fails_is_an_error() {
    let _host = serve(&[
        ("DescribeVolumes", volume("available", "")),
        ("ModifyVolume", done()),
        ("DescribeVolumesModifications", modification("failed", 20)),
    ]);
    let error = cpi().resize_disk("vol-1".into(), 20 * 1024).unwrap_err();
    assert_eq!(
        (error.kind, &*error.message),
        (ErrorKind::Cloud, "disk `vol-1` was not changed: the state is `failed`: why")
    );
}

#[test]
fn only_what_differs_is_changed() {
    let is_known = |state: &str| {
        body(&format!(
            "<R><volumeModificationSet><item><modificationState>{state}</modificationState><targetSize>10</targetSize>\
             <targetVolumeType>io2</targetVolumeType><targetIops>5000</targetIops></item></volumeModificationSet></R>"
        ))
    };
    let host = serve(&[
        ("DescribeVolumes", volume("available", "")),
        ("ModifyVolume", done()),
        ("DescribeVolumesModifications", is_known("optimizing")),
    ]);
    assert_eq!(update(json!({"type": "io2", "iops": 5000}), 10 * 1024), Ok(None));
    let form = form_of(&host, "ModifyVolume");
    let sent: Vec<&str> = form.keys().map(String::as_str).collect();
    assert_eq!(sent, ["Action", "Iops", "Version", "VolumeId", "VolumeType"]);
    // gp3 with its defaults is what the volume has.
    let host = serve(&[("DescribeVolumes", volume("available", ""))]);
    assert_eq!(update(json!({}), 10 * 1024), Ok(None));
    assert_eq!(operations(&host), ["DescribeVolumes"]);
}

#[test]
fn without_iops_a_disk_gets_the_default_again() {
    let fast = "<R><volumeSet><item><volumeId>vol-1</volumeId><size>10</size><status>available</status>\
                <volumeType>gp3</volumeType><iops>6000</iops><throughput>500</throughput></item></volumeSet></R>";
    let host = serve(&[
        ("DescribeVolumes", body(fast)),
        ("ModifyVolume", done()),
        ("DescribeVolumesModifications", modification("optimizing", 10)),
    ]);
    assert_eq!(update(json!({"throughput": 500}), 10 * 1024), Ok(None));
    let form = form_of(&host, "ModifyVolume");
    assert_eq!((&*form["Iops"], form.get("Throughput"), form.get("Size")), ("3000", None, None));
}

#[test]
fn new_tags_are_added() {
    let tagged = volume("available", "<tagSet><item><key>team</key><value>a</value></item></tagSet>");
    let host = serve(&[("DescribeVolumes", tagged), ("CreateTags", done())]);
    assert_eq!(update(json!({"tags": {"team": "a", "cost": 7}}), 10 * 1024), Ok(None));
    let form = form_of(&host, "CreateTags");
    assert_eq!((&*form["Tag.1.Key"], &*form["Tag.1.Value"], form.get("Tag.2.Key")), ("cost", "7", None));
}

#[test]
fn encryption_cannot_be_changed_in_place() {
    let encrypted = || {
        body(
            "<R><volumeSet><item><volumeId>vol-1</volumeId><size>10</size><status>available</status>\
             <volumeType>gp3</volumeType><iops>3000</iops><throughput>125</throughput><encrypted>true</encrypted>\
             <kmsKeyId>arn:aws:kms:us-east-1:1:key/1</kmsKeyId></item></volumeSet></R>",
        )
    };
    let key = |name: &str| json!({"encrypted": true, "kms_key_arn": format!("arn:aws:kms:us-east-1:1:{name}")});
    for (found, properties, part) in [
        (volume("available", ""), json!({"encrypted": true}), Some("cannot encrypt")),
        (encrypted(), json!({"encrypted": false}), Some("cannot decrypt")),
        (encrypted(), key("key/2"), Some("has another key")),
        (encrypted(), key("key/1"), None),
        (encrypted(), key("alias/bosh"), None),
        // The account may encrypt all volumes.
        (encrypted(), json!({}), None),
    ] {
        let host = serve(&[("DescribeVolumes", found)]);
        match (update(properties, 10 * 1024), part) {
            (outcome, None) => assert_eq!(outcome, Ok(None)),
            (outcome, Some(part)) => {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind, ErrorKind::NotSupported);
                assert!(error.message.contains(part), "{error}");
            }
        }
        assert_eq!(operations(&host), ["DescribeVolumes"]);
    }
    let _host = serve_with(json!({"encrypted": true}), &[("DescribeVolumes", volume("available", ""))]);
    assert_eq!(update(json!({}), 10 * 1024).unwrap_err().kind, ErrorKind::NotSupported);
}
