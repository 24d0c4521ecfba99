//! Volumes, attachments and modifications.

use super::*;

#[test]
fn a_volume_passes_through_its_states() {
    let cloud = Cloud::new();
    let id = cloud.get("CreateVolume", &[("AvailabilityZone", "us-east-1a"), ("Size", "10")], "volumeId");
    let status = || cloud.get("DescribeVolumes", &[("VolumeId.1", &id)], "status");
    cloud.refused("CreateSnapshot", &[("VolumeId", &id)], "IncorrectState");
    assert_eq!(status(), "available", "the refused operation was the read that sees the volume in creation");
    cloud.simulator.set_reads_before_change(2);
    cloud.done("DeleteVolume", &[("VolumeId", &id)]);
    for _ in 0..2 {
        assert_eq!(status(), "deleting");
    }
    cloud.refused("DescribeVolumes", &[("VolumeId.1", &id)], "InvalidVolume.NotFound");
    cloud.refused("DeleteVolume", &[("VolumeId", &id)], "InvalidVolume.NotFound");
}

#[test]
fn volumes_that_break_a_rule_are_refused() {
    let cloud = Cloud::new();
    let zone = ("AvailabilityZone", "us-east-1a");
    for (parameters, code) in [
        (vec![("Size", "10")], "MissingParameter"),
        (vec![zone], "MissingParameter"),
        (vec![zone, ("Size", "0")], "InvalidParameterValue"),
        (vec![("AvailabilityZone", "us-east-1x"), ("Size", "1")], "InvalidZone.NotFound"),
        (vec![zone, ("Size", "10"), ("Iops", "100")], "InvalidParameterCombination"),
        (vec![zone, ("Size", "10"), ("KmsKeyId", "k")], "InvalidParameterDependency"),
        (vec![zone, ("SnapshotId", "snap-0123456789abcdef0")], "InvalidSnapshot.NotFound"),
        (vec![zone, ("SnapshotId", "snap-1")], "InvalidSnapshotID.Malformed"),
        (vec![zone, ("Size", "10"), ("MultiAttachEnabled", "true")], "UnsupportedOperation"),
        (vec![zone, ("Size", "10"), ("DryRun", "true")], "DryRunOperation"),
    ] {
        cloud.refused("CreateVolume", &parameters, code);
    }
    assert_eq!(count(&cloud.call("DescribeVolumes", &[]), "<volumeId>"), 0);
    cloud.simulator.set_limit("volumes", 0);
    cloud.refused("CreateVolume", &[zone, ("Size", "10")], "VolumeLimitExceeded");
}

#[test]
fn a_client_token_creates_one_volume() {
    let cloud = Cloud::new();
    let create = |size: &str| {
        cloud.call("CreateVolume", &[("AvailabilityZone", "us-east-1a"), ("Size", size), ("ClientToken", "t-1")])
    };
    let first = element(&create("10"), "volumeId");
    assert_eq!(element(&create("10"), "volumeId"), first);
    assert_eq!(element(&create("11"), "Code").as_deref(), Some("IdempotentParameterMismatch"));
    assert_eq!(count(&cloud.call("DescribeVolumes", &[]), "<volumeId>"), 1);
    let other = cloud.other_client();
    let parameters = [("AvailabilityZone", "us-east-1a"), ("Size", "11"), ("ClientToken", "t-1")];
    assert_eq!(cloud.call_as(&other, Service::Ec2, "CreateVolume", &parameters).status, 200);
    cloud.refused(
        "CreateVolume",
        &[("AvailabilityZone", "us-east-1a"), ("Size", "1"), ("ClientToken", &"x".repeat(65))],
        "InvalidParameterValue",
    );
}

#[test]
fn a_new_resource_can_be_unknown_for_some_lookups() {
    let cloud = Cloud::new();
    cloud.simulator.set_hidden_lookups(2);
    let id = cloud.get("CreateVolume", &[("AvailabilityZone", "us-east-1a"), ("Size", "10")], "volumeId");
    cloud.refused("DescribeVolumes", &[("VolumeId.1", &id)], "InvalidVolume.NotFound");
    let listed = cloud.call("DescribeVolumes", &[("Filter.1.Name", "volume-id"), ("Filter.1.Value.1", &id)]);
    assert_eq!(count(&listed, &id), 0, "{}", text(&listed));
    cloud.done("DescribeVolumes", &[("VolumeId.1", &id)]);
}

#[test]
fn a_volume_is_attached_once_in_its_zone() {
    let cloud = Cloud::new();
    let (instance, volume) = (cloud.running(), cloud.available_volume("us-east-1a"));
    let elsewhere = cloud.available_volume("us-east-1b");
    let attach = |volume: &str, device: &str| {
        let parameters = [("VolumeId", volume), ("InstanceId", instance.as_str()), ("Device", device)];
        cloud.call("AttachVolume", &parameters)
    };
    let code = |response: &Response| element(response, "Code");
    assert_eq!(code(&attach(&elsewhere, "/dev/sdf")).as_deref(), Some("InvalidVolume.ZoneMismatch"));
    assert_eq!(code(&attach(&volume, "sdf")).as_deref(), Some("InvalidParameterValue"));
    assert_eq!(code(&attach(&volume, "/dev/xvda")).as_deref(), Some("InvalidParameterValue"), "the root device");
    assert_eq!(element(&attach(&volume, "/dev/sdf"), "status").as_deref(), Some("attaching"));
    assert_eq!(code(&attach(&volume, "/dev/sdg")).as_deref(), Some("VolumeInUse"));
    cloud.refused("DeleteVolume", &[("VolumeId", &volume)], "VolumeInUse");
    let states = |id: &str| cloud.call("DescribeVolumes", &[("VolumeId.1", id)]);
    states(&volume);
    assert_eq!(count(&states(&volume), "<status>attached</status>"), 1);
    cloud.refused(
        "DetachVolume",
        &[("VolumeId", &volume), ("InstanceId", "i-0123456789abcdef0")],
        "InvalidAttachment.NotFound",
    );
    let detach = [("VolumeId", volume.as_str()), ("InstanceId", instance.as_str())];
    assert_eq!(cloud.get("DetachVolume", &detach, "status"), "detaching");
    states(&volume);
    assert_eq!(count(&states(&volume), "<status>available</status>"), 1);
    cloud.refused("DetachVolume", &detach, "IncorrectState");
}

#[test]
fn a_modification_passes_through_its_states() {
    let cloud = Cloud::new();
    let id = cloud.available_volume("us-east-1a");
    let modify = |size: &str| cloud.call("ModifyVolume", &[("VolumeId", &id), ("Size", size)]);
    cloud.refused("DescribeVolumesModifications", &[("VolumeId.1", &id)], "InvalidVolumeModification.NotFound");
    assert_eq!(element(&modify("9"), "Code").as_deref(), Some("InvalidParameterValue"));
    assert_eq!(element(&modify("20"), "modificationState").as_deref(), Some("modifying"));
    assert_eq!(element(&modify("21"), "Code").as_deref(), Some("IncorrectModificationState"));
    let mut states = Vec::new();
    for _ in 0..5 {
        states.push(cloud.get("DescribeVolumesModifications", &[("VolumeId.1", &id)], "modificationState"));
    }
    assert_eq!(states, ["modifying", "optimizing", "optimizing", "completed", "completed"]);
    assert_eq!(cloud.get("DescribeVolumes", &[("VolumeId.1", &id)], "size"), "20");
    cloud.refused(
        "ModifyVolume",
        &[("VolumeId", &id), ("VolumeType", "gp2"), ("Iops", "3000")],
        "InvalidParameterCombination",
    );
}

#[test]
fn lists_come_in_pages() {
    let cloud = Cloud::new();
    for _ in 0..7 {
        cloud.available_volume("us-east-1a");
    }
    let first = cloud.call("DescribeVolumes", &[("MaxResults", "5")]);
    assert_eq!(count(&first, "<volumeId>"), 5);
    let token = element(&first, "nextToken").unwrap_or_default();
    let second = cloud.call("DescribeVolumes", &[("MaxResults", "5"), ("NextToken", &token)]);
    assert_eq!((count(&second, "<volumeId>"), element(&second, "nextToken")), (2, None));
    cloud.refused("DescribeVolumes", &[("MaxResults", "4")], "InvalidParameterValue");
    cloud.refused(
        "DescribeVolumes",
        &[("Filter.1.Name", "colour"), ("Filter.1.Value.1", "x")],
        "InvalidParameterValue",
    );
}

#[test]
fn tags_are_set_on_resources_that_exist() {
    let cloud = Cloud::new();
    let id = cloud.available_volume("us-east-1a");
    let tag = |id: &str, key: &str, value: &str| {
        cloud.call("CreateTags", &[("ResourceId.1", id), ("Tag.1.Key", key), ("Tag.1.Value", value)])
    };
    for (id, key, value, code) in [
        (id.as_str(), "job", "db", None),
        (&id, "job", "web", None),
        (&id, "aws:x", "y", Some("InvalidParameterValue")),
        (&id, "k", &"v".repeat(257), Some("InvalidParameterValue")),
        ("vol-0123456789abcdef0", "k", "v", Some("InvalidVolume.NotFound")),
        ("x-1", "k", "v", Some("InvalidID")),
    ] {
        let response = tag(id, key, value);
        assert_eq!(element(&response, "Code").as_deref(), code, "{id} {key} {}", text(&response));
    }
    let by_tag =
        |value: &str| cloud.call("DescribeVolumes", &[("Filter.1.Name", "tag:job"), ("Filter.1.Value.1", value)]);
    assert_eq!((count(&by_tag("web"), &id), count(&by_tag("db"), &id)), (1, 0));
    cloud.simulator.set_limit("tags-per-resource", 1);
    assert_eq!(element(&tag(&id, "more", "x"), "Code").as_deref(), Some("TagLimitExceeded"));
}
