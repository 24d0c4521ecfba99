//! Images and snapshots.

use super::*;

fn completed_snapshot(cloud: &Cloud) -> String {
    let volume = cloud.available_volume("us-east-1a");
    let id = cloud.get("CreateSnapshot", &[("VolumeId", &volume), ("Description", "a stemcell")], "snapshotId");
    let status = || cloud.get("DescribeSnapshots", &[("SnapshotId.1", &id)], "status");
    assert_eq!([status(), status()], ["pending", "completed"]);
    id
}

fn register(cloud: &Cloud, changes: &[(&str, &str)], snapshot: &str) -> Response {
    let mut all = vec![
        ("Name", "a stemcell"),
        ("Architecture", "x86_64"),
        ("RootDeviceName", "/dev/xvda"),
        ("VirtualizationType", "hvm"),
        ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
        ("BlockDeviceMapping.1.Ebs.SnapshotId", snapshot),
    ];
    for (name, value) in changes {
        all.retain(|(known, _)| known != name);
        if !value.is_empty() {
            all.push((name, value));
        }
    }
    cloud.call("RegisterImage", &all)
}

#[test]
fn an_image_is_registered_from_a_snapshot_and_keeps_it() {
    let cloud = Cloud::new();
    let snapshot = completed_snapshot(&cloud);
    for (changes, code) in [
        (vec![("Name", "")], "MissingParameter"),
        (vec![("Name", "x!")], "InvalidAMIName.Malformed"),
        (vec![("RootDeviceName", "/dev/sda1")], "InvalidBlockDeviceMapping"),
        (vec![("RootDeviceName", "")], "MissingParameter"),
        (vec![("Architecture", "mips")], "InvalidParameterValue"),
        (vec![("BootMode", "floppy")], "InvalidParameterValue"),
        (vec![("BlockDeviceMapping.1.Ebs.SnapshotId", "snap-0123456789abcdef0")], "InvalidSnapshot.NotFound"),
        (vec![("BlockDeviceMapping.1.Ebs.VolumeSize", "9")], "InvalidParameterValue"),
    ] {
        let response = register(&cloud, &changes, &snapshot);
        assert_eq!(element(&response, "Code").as_deref(), Some(code), "{changes:?} {}", text(&response));
    }
    let image = element(&register(&cloud, &[("BootMode", "uefi")], &snapshot), "imageId").unwrap_or_default();
    assert_eq!(element(&register(&cloud, &[], &snapshot), "Code").as_deref(), Some("InvalidAMIName.Duplicate"));
    let shown = cloud.call("DescribeImages", &[("ImageId.1", &image)]);
    for part in
        [&format!("<snapshotId>{snapshot}<"), "<bootMode>uefi<", "<rootDeviceName>/dev/xvda<", "<imageState>available<"]
    {
        assert_eq!(count(&shown, part), 1, "{part} {}", text(&shown));
    }
    cloud.refused("DeleteSnapshot", &[("SnapshotId", &snapshot)], "InvalidSnapshot.InUse");
    cloud.launch(&[]);
    let deregister = [("ImageId", image.as_str()), ("DeleteAssociatedSnapshots", "true")];
    assert_eq!(cloud.get("DeregisterImage", &deregister, "returnCode"), "success");
    cloud.refused("DescribeSnapshots", &[("SnapshotId.1", &snapshot)], "InvalidSnapshot.NotFound");
    cloud.refused("DeregisterImage", &[("ImageId", &image)], "InvalidAMIID.NotFound");
    cloud.refused("DeregisterImage", &[("ImageId", &cloud.value("image"))], "AuthFailure");
}

#[test]
fn an_image_is_copied_with_a_key() {
    let cloud = Cloud::new();
    let (source, key) = (cloud.value("image"), cloud.value("kms_key_arn"));
    let copy = |further: &[(&str, &str)]| {
        let own = [
            ("Name", "a copy"),
            ("SourceImageId", source.as_str()),
            ("SourceRegion", "us-east-1"),
            ("ClientToken", "c-1"),
        ];
        cloud.call("CopyImage", &[own.as_slice(), further].concat())
    };
    assert_eq!(element(&copy(&[("KmsKeyId", &key)]), "Code").as_deref(), Some("InvalidParameterDependency"));
    let encrypted = [("Encrypted", "true"), ("KmsKeyId", key.as_str())];
    let image = element(&copy(&encrypted), "imageId").unwrap_or_default();
    assert_eq!(element(&copy(&encrypted), "imageId").as_deref(), Some(image.as_str()));
    let state = || cloud.get("DescribeImages", &[("ImageId.1", &image)], "imageState");
    assert_eq!([state(), state()], ["pending", "available"]);
    let shown = cloud.call("DescribeImages", &[("Owner.1", "self")]);
    assert_eq!((count(&shown, "<imageId>"), count(&shown, "<encrypted>true<")), (1, 1), "{}", text(&shown));
    assert_eq!(count(&cloud.call("DescribeSnapshots", &[("Owner.1", "self")]), &key), 1);
}
