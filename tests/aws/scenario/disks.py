"""Volumes, attachments and snapshots of disks."""


def disks(cloud, own, instance):
    new = {
        "AvailabilityZone": own["availability_zone"],
        "Size": 10,
        "VolumeType": "gp3",
        "ClientToken": "disk-1",
        "Encrypted": True,
        "KmsKeyId": own["kms_key_arn"],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "job", "Value": "db"}]}],
    }
    first = cloud.do("create a volume", "ec2", "create_volume", lambda: new)
    again = cloud.do("create the same volume again", "ec2", "create_volume", lambda: new)
    cloud.expect("the volume of the same token", again and again["VolumeId"], first and first["VolumeId"])
    cloud.do(
        "create another volume with the same token",
        "ec2",
        "create_volume",
        lambda: {**new, "Size": 11},
        "IdempotentParameterMismatch",
    )
    cloud.do(
        "create a volume with IOPS that its type does not have",
        "ec2",
        "create_volume",
        lambda: {**new, "VolumeType": "gp2", "Iops": 3000, "ClientToken": "disk-2"},
        "InvalidParameterCombination",
    )
    cloud.do(
        "create a volume in no zone",
        "ec2",
        "create_volume",
        lambda: {**new, "AvailabilityZone": own["region"] + "x", "ClientToken": "disk-3"},
        "InvalidZone.NotFound",
    )
    volume = lambda: {"VolumeId": first["VolumeId"]}
    read = lambda: {"VolumeIds": [first["VolumeId"]]}
    states = cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "State"), "available")
    cloud.expect("the states of a new volume", states, ["creating", "available"])
    place = lambda: {**volume(), "InstanceId": instance(), "Device": "/dev/sdf"}
    cloud.do("attach", "ec2", "attach_volume", place)
    states = cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "Attachments", 0, "State"), "attached")
    cloud.expect("the states of an attachment", states, ["attaching", "attached"])
    cloud.do("attach again", "ec2", "attach_volume", lambda: {**place(), "Device": "/dev/sdg"}, "VolumeInUse")
    cloud.do("delete an attached volume", "ec2", "delete_volume", volume, "VolumeInUse")
    other = cloud.do(
        "create a volume in another zone",
        "ec2",
        "create_volume",
        lambda: {"AvailabilityZone": own["region"] + "b", "Size": 1},
    )
    away = lambda: {"VolumeIds": [other["VolumeId"]]}
    cloud.read_until("ec2", "describe_volumes", away, ("Volumes", 0, "State"), "available")
    cloud.do(
        "attach in another zone",
        "ec2",
        "attach_volume",
        lambda: {**place(), "VolumeId": other["VolumeId"], "Device": "/dev/sdh"},
        "InvalidVolume.ZoneMismatch",
    )
    cloud.do("grow a volume", "ec2", "modify_volume", lambda: {**volume(), "Size": 20})
    states = cloud.read_until(
        "ec2", "describe_volumes_modifications", read, ("VolumesModifications", 0, "ModificationState"), "completed"
    )
    cloud.expect("the states of a modification", states, ["modifying", "optimizing", "optimizing", "completed"])
    cloud.do("shrink a volume", "ec2", "modify_volume", lambda: {**volume(), "Size": 5}, "InvalidParameterValue")
    tags = [{"ResourceType": "snapshot", "Tags": [{"Key": "job", "Value": "db"}]}]
    snapshot = cloud.do(
        "create a snapshot",
        "ec2",
        "create_snapshot",
        lambda: {**volume(), "Description": "of a disk", "TagSpecifications": tags},
    )
    cloud.do("delete a snapshot", "ec2", "delete_snapshot", lambda: {"SnapshotId": snapshot["SnapshotId"]})
    cloud.do(
        "delete a snapshot again",
        "ec2",
        "delete_snapshot",
        lambda: {"SnapshotId": snapshot["SnapshotId"]},
        "InvalidSnapshot.NotFound",
    )
    cloud.do("detach", "ec2", "detach_volume", lambda: {**volume(), "InstanceId": instance()})
    states = cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "State"), "available")
    cloud.expect("the states of a detached volume", states, ["in-use", "available"])
    cloud.do("detach again", "ec2", "detach_volume", volume, "IncorrectState")
    cloud.do("delete a volume", "ec2", "delete_volume", volume)
    cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "State"), None)
    cloud.do("delete a volume again", "ec2", "delete_volume", volume, "InvalidVolume.NotFound")
