"""Images, and snapshots that are written block by block."""

import base64
import hashlib

BLOCK = 512 << 10


def images(cloud, own):
    volume = cloud.do(
        "create the volume of an image",
        "ec2",
        "create_volume",
        lambda: {"AvailabilityZone": own["availability_zone"], "Size": 5},
    )
    cloud.read_until(
        "ec2", "describe_volumes", lambda: {"VolumeIds": [volume["VolumeId"]]}, ("Volumes", 0, "State"), "available"
    )
    snapshot = cloud.do(
        "create the snapshot of an image", "ec2", "create_snapshot", lambda: {"VolumeId": volume["VolumeId"]}
    )
    read = lambda: {"SnapshotIds": [snapshot["SnapshotId"]]}
    states = cloud.read_until("ec2", "describe_snapshots", read, ("Snapshots", 0, "State"), "completed")
    cloud.expect("the states of a snapshot", states, ["pending", "completed"])
    new = lambda: {
        "Name": "a stemcell",
        "Architecture": "x86_64",
        "RootDeviceName": "/dev/xvda",
        "VirtualizationType": "hvm",
        "EnaSupport": True,
        "BootMode": "uefi-preferred",
        "SriovNetSupport": "simple",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": snapshot["SnapshotId"], "DeleteOnTermination": True}}
        ],
        "TagSpecifications": [{"ResourceType": "image", "Tags": [{"Key": "name", "Value": "stemcell"}]}],
    }
    image = cloud.do("register an image", "ec2", "register_image", new)
    cloud.do("register an image again", "ec2", "register_image", new, "InvalidAMIName.Duplicate")
    cloud.do(
        "register an image from no snapshot",
        "ec2",
        "register_image",
        lambda: {
            **new(),
            "Name": "another",
            "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": "snap-0123456789abcdef0"}}],
        },
        "InvalidSnapshot.NotFound",
    )
    described = cloud.do(
        "describe an image",
        "ec2",
        "describe_images",
        lambda: {"ImageIds": [image["ImageId"]], "IncludeDeprecated": True},
    )
    shown = described["Images"][0] if described and described["Images"] else {}
    cloud.expect("the root device", shown.get("RootDeviceName"), "/dev/xvda")
    cloud.do(
        "delete the snapshot of an image",
        "ec2",
        "delete_snapshot",
        lambda: {"SnapshotId": snapshot["SnapshotId"]},
        "InvalidSnapshot.InUse",
    )
    copy = {
        "Name": "a copy",
        "SourceImageId": own["image"],
        "SourceRegion": own["region"],
        "Encrypted": True,
        "KmsKeyId": own["kms_key_arn"],
        "ClientToken": "copy-1",
    }
    first = cloud.do("copy an image", "ec2", "copy_image", lambda: copy)
    again = cloud.do("copy the same image again", "ec2", "copy_image", lambda: copy)
    cloud.expect("the copy of the same token", again and again["ImageId"], first and first["ImageId"])
    states = cloud.read_until(
        "ec2", "describe_images", lambda: {"ImageIds": [first["ImageId"]]}, ("Images", 0, "State"), "available"
    )
    cloud.expect("the states of a copy", states, ["pending", "available"])
    cloud.do(
        "deregister an image",
        "ec2",
        "deregister_image",
        lambda: {"ImageId": image["ImageId"], "DeleteAssociatedSnapshots": True},
    )
    cloud.do(
        "deregister an image again",
        "ec2",
        "deregister_image",
        lambda: {"ImageId": image["ImageId"]},
        "InvalidAMIID.NotFound",
    )


def blocks(cloud):
    content = {0: b"\7" * BLOCK, 3: b"\0\1" * (BLOCK // 2)}
    new = {"VolumeSize": 1, "Description": "a stemcell", "ClientToken": "blocks-1"}
    started = cloud.do("start a snapshot", "ebs", "start_snapshot", lambda: new)
    cloud.do(
        "start another snapshot with the same token",
        "ebs",
        "start_snapshot",
        lambda: {**new, "VolumeSize": 2},
        "ConflictException",
    )
    digest = lambda data: base64.b64encode(hashlib.sha256(data).digest()).decode()
    block = lambda index: {
        "SnapshotId": started["SnapshotId"],
        "BlockIndex": index,
        "BlockData": content[index],
        "DataLength": BLOCK,
        "Checksum": digest(content[index]),
        "ChecksumAlgorithm": "SHA256",
    }
    for index in content:
        cloud.do(f"put the block {index}", "ebs", "put_snapshot_block", lambda: block(index))
    cloud.do(
        "put a block with a wrong checksum",
        "ebs",
        "put_snapshot_block",
        lambda: {**block(0), "Checksum": digest(b"x")},
        "ValidationException",
    )
    whole = b"".join(hashlib.sha256(data).digest() for data in content.values())
    end = lambda: {
        "SnapshotId": started["SnapshotId"],
        "ChangedBlocksCount": len(content),
        "Checksum": digest(whole),
        "ChecksumAlgorithm": "SHA256",
        "ChecksumAggregationMethod": "LINEAR",
    }
    cloud.do(
        "complete a snapshot with a wrong count",
        "ebs",
        "complete_snapshot",
        lambda: {**end(), "ChangedBlocksCount": 1},
        "ValidationException",
    )
    cloud.do("complete a snapshot", "ebs", "complete_snapshot", end)
    states = cloud.read_until(
        "ec2",
        "describe_snapshots",
        lambda: {"SnapshotIds": [started["SnapshotId"]]},
        ("Snapshots", 0, "State"),
        "completed",
    )
    cloud.expect("the states of a snapshot of blocks", states, ["pending", "completed"])
    listed = cloud.do("list blocks", "ebs", "list_snapshot_blocks", lambda: {"SnapshotId": started["SnapshotId"]})
    cloud.expect("the blocks", [one["BlockIndex"] for one in (listed or {}).get("Blocks", [])], list(content))
    token = lambda: listed["Blocks"][1]["BlockToken"]
    read = cloud.do(
        "read a block",
        "ebs",
        "get_snapshot_block",
        lambda: {"SnapshotId": started["SnapshotId"], "BlockIndex": 3, "BlockToken": token()},
    )
    cloud.expect("the content of a block", read and read["BlockData"].read() == content[3], True)
