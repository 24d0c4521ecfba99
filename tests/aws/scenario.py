"""The life of a deployment: every operation that a CPI uses, and mistakes that the simulator must refuse.

Steps have names, under which the outcomes of two clouds are compared, and README.md lists deviations.
"""
import base64
import hashlib

BLOCK = 512 << 10


def scenario(cloud):
    own = cloud.description
    identities(cloud, own)
    networks(cloud, own)
    instance = launch(cloud, own)
    load_balancers(cloud, own, instance)
    disks(cloud, own, instance)
    images(cloud, own)
    blocks(cloud)
    finish(cloud, instance)


def expect(cloud, what, found, wanted):
    """Reports a problem if a result differs. Only the simulator's results matter."""
    if found != wanted:
        cloud.problems.append(f"{what}: expected {wanted}, got {found}")


def identities(cloud, own):
    result = cloud.do("who am I", "sts", "get_caller_identity", lambda: {})
    expect(cloud, "the account", result and result["Account"], own["account"])
    role = cloud.do(
        "assume a role", "sts", "assume_role", lambda: {"RoleArn": own["role_arn"], "RoleSessionName": "bosh"}
    )
    key = role["Credentials"] if role else {}
    session = {
        "aws_access_key_id": key.get("AccessKeyId", "x"), "aws_secret_access_key": key.get("SecretAccessKey", "x"),
    }
    token = key.get("SessionToken", "x")
    cloud.do("use a role", "ec2", "describe_volumes", lambda: {}, aws_session_token=token, **session)
    cloud.do("use a role without its token", "ec2", "describe_volumes", lambda: {}, "AuthFailure", **session)
    cloud.do(
        "use a role with another token", "ec2", "describe_volumes", lambda: {}, "AuthFailure",
        aws_session_token="x" * 32, **session,
    )
    cloud.do(
        "assume a role that does not exist", "sts", "assume_role",
        lambda: {"RoleArn": own["role_arn"] + "-x", "RoleSessionName": "bosh"}, "AccessDenied",
    )


def networks(cloud, own):
    vpc = {"Name": "vpc-id", "Values": [own["vpc"]]}
    cloud.do("list zones", "ec2", "describe_availability_zones", lambda: {})
    result = cloud.do("find subnets", "ec2", "describe_subnets", lambda: {"SubnetIds": [own["subnet"]]})
    expect(cloud, "the zone of the subnet", result and result["Subnets"][0]["AvailabilityZone"], own["availability_zone"])
    name = {"Name": "group-name", "Values": [own["security_group_name"]]}
    result = cloud.do("find groups", "ec2", "describe_security_groups", lambda: {"Filters": [vpc, name]})
    expect(cloud, "groups", [group["GroupId"] for group in (result or {}).get("SecurityGroups", [])], [own["security_group"]])
    cloud.do("find no subnet", "ec2", "describe_subnets", lambda: {"SubnetIds": ["subnet-0123456789abcdef0"]}, "InvalidSubnetID.NotFound")
    cloud.do("find route tables", "ec2", "describe_route_tables", lambda: {"Filters": [vpc]})
    cloud.do("find an address", "ec2", "describe_addresses", lambda: {"PublicIps": [own["elastic_ip"]]})
    types = {"InstanceTypes": [own["instance_type"]]}
    result = cloud.do("find an instance type", "ec2", "describe_instance_types", lambda: types)
    expect(cloud, "NVMe", result and result["InstanceTypes"][0]["EbsInfo"]["NvmeSupport"], "required")
    cloud.do("find no instance type", "ec2", "describe_instance_types", lambda: {"InstanceTypes": ["m99.large"]}, "InvalidInstanceType")
    new = {"SubnetId": own["subnet"], "PrivateIpAddress": "10.0.0.10", "ClientToken": "interface-1", "Groups": [own["security_group"]]}
    first = cloud.do("create an interface", "ec2", "create_network_interface", lambda: new)
    again = cloud.do("create the same interface again", "ec2", "create_network_interface", lambda: new)
    same = lambda result: result and result["NetworkInterface"]["NetworkInterfaceId"]
    expect(cloud, "the interface of the same token", same(again), same(first))
    cloud.do(
        "create another interface with the same token", "ec2", "create_network_interface",
        lambda: {**new, "PrivateIpAddress": "10.0.0.11"}, "IdempotentParameterMismatch",
    )
    cloud.do(
        "create an interface with a used address", "ec2", "create_network_interface",
        lambda: {**new, "ClientToken": "interface-2"}, "InvalidIPAddress.InUse",
    )
    cloud.do(
        "create an interface with an address of another subnet", "ec2", "create_network_interface",
        lambda: {**new, "PrivateIpAddress": "10.0.1.10", "ClientToken": "interface-3"}, "InvalidParameterValue",
    )
    interface = lambda: {"NetworkInterfaceId": first["NetworkInterface"]["NetworkInterfaceId"]}
    ipv6 = lambda: cloud_ipv6(cloud, own)
    cloud.do("assign an IPv4 prefix", "ec2", "assign_private_ip_addresses", lambda: {**interface(), "Ipv4Prefixes": ["10.0.0.64/28"]})
    cloud.do("assign an IPv6 address", "ec2", "assign_ipv6_addresses", lambda: {**interface(), "Ipv6Addresses": [ipv6()]})
    cloud.do("turn off the source check of an interface", "ec2", "modify_network_interface_attribute", lambda: {**interface(), "SourceDestCheck": {"Value": False}})
    cloud.do("describe an interface", "ec2", "describe_network_interfaces", lambda: {"NetworkInterfaceIds": [interface()["NetworkInterfaceId"]]})
    cloud.do("delete an interface", "ec2", "delete_network_interface", interface)
    cloud.do("delete an interface again", "ec2", "delete_network_interface", interface, "InvalidNetworkInterfaceID.NotFound")


def cloud_ipv6(cloud, own):
    """Returns an IPv6 address of the subnet."""
    subnet = cloud.client("ec2").describe_subnets(SubnetIds=[own["subnet"]])["Subnets"][0]
    return subnet["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"].replace("::/64", "::10")


def launch(cloud, own):
    tags = [{"Key": "job", "Value": "db"}]
    new = {
        "ImageId": own["image"], "InstanceType": own["instance_type"], "MinCount": 1, "MaxCount": 1,
        "KeyName": own["key_name"], "ClientToken": "vm-1", "IamInstanceProfile": {"Name": own["instance_profile"]},
        "UserData": '{"agent": "settings"}', "Placement": {"AvailabilityZone": own["availability_zone"]},
        "NetworkInterfaces": [{
            "DeviceIndex": 0, "SubnetId": own["subnet"], "Groups": [own["security_group"]],
            "PrivateIpAddress": "10.0.0.20", "DeleteOnTermination": True, "AssociatePublicIpAddress": False,
        }],
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "DeleteOnTermination": True}},
            {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 30, "VolumeType": "gp3", "Encrypted": True}},
        ],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "network-interface")],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"},
    }
    first = cloud.do("launch", "ec2", "run_instances", lambda: new)
    instance = lambda: first["Instances"][0]["InstanceId"]
    again = cloud.do("launch the same again", "ec2", "run_instances", lambda: new)
    expect(cloud, "the instance of the same token", again and again["Instances"][0]["InstanceId"], instance())
    read = lambda: {"InstanceIds": [instance()]}
    state = ("Reservations", 0, "Instances", 0, "State", "Name")
    states = cloud.read_until("ec2", "describe_instances", read, state, "running")
    expect(cloud, "the states of a launch", states, ["pending", "running"])
    wrong = lambda name, code, **changes: cloud.do(
        name, "ec2", "run_instances", lambda: {**new, "ClientToken": name[:64].replace(" ", "-"), **changes}, code
    )
    wrong("launch something else with the same token", "IdempotentParameterMismatch", ClientToken="vm-1", EbsOptimized=True)
    wrong("launch an image that does not exist", "InvalidAMIID.NotFound", ImageId="ami-0123456789abcdef0")
    wrong("launch a type that does not exist", "InvalidParameterValue", InstanceType="m99.large")
    wrong("launch with an unknown key", "InvalidKeyPair.NotFound", KeyName="unknown")
    wrong("launch with a used address", "InvalidIPAddress.InUse")
    wrong("launch in another zone than the subnet's", "InvalidParameterValue", Placement={"AvailabilityZone": own["region"] + "b"})
    wrong("launch with a subnet and interfaces", "InvalidParameterCombination", SubnetId=own["subnet"])
    wrong("launch without a right", "DryRunOperation", DryRun=True)
    cloud.do("find an instance by its token", "ec2", "describe_instances", lambda: {"Filters": [{"Name": "client-token", "Values": ["vm-1"]}]})
    described = cloud.do("describe an instance", "ec2", "describe_instances", read)
    shown = described["Reservations"][0]["Instances"][0] if described else {}
    expect(cloud, "the address", shown.get("PrivateIpAddress"), "10.0.0.20")
    devices = sorted(mapping["DeviceName"] for mapping in shown.get("BlockDeviceMappings", []))
    expect(cloud, "the devices", devices, ["/dev/sdb", "/dev/xvda"])
    data = cloud.do("read user-data", "ec2", "describe_instance_attribute", lambda: {"InstanceId": instance(), "Attribute": "userData"})
    encoded = base64.b64encode(new["UserData"].encode()).decode()
    expect(cloud, "user-data", data and data["UserData"].get("Value"), encoded)
    interface = lambda: shown["NetworkInterfaces"][0]
    cloud.do(
        "keep an interface with its instance", "ec2", "modify_network_interface_attribute",
        lambda: {"NetworkInterfaceId": interface()["NetworkInterfaceId"], "Attachment": {"AttachmentId": interface()["Attachment"]["AttachmentId"], "DeleteOnTermination": True}},
    )
    cloud.do("turn off the source check of an instance", "ec2", "modify_instance_attribute", lambda: {"InstanceId": instance(), "SourceDestCheck": {"Value": False}})
    route = lambda: {"RouteTableId": own["route_table"], "DestinationCidrBlock": "10.9.0.0/16", "InstanceId": instance()}
    cloud.do("replace a route that does not exist", "ec2", "replace_route", route, "InvalidParameterValue")
    cloud.do("create a route", "ec2", "create_route", route)
    cloud.do("create a route again", "ec2", "create_route", route, "RouteAlreadyExists")
    cloud.do("replace a route", "ec2", "replace_route", route)
    association = cloud.do("associate an address", "ec2", "associate_address", lambda: {"AllocationId": own["allocation"], "InstanceId": instance()})
    cloud.do("disassociate an address", "ec2", "disassociate_address", lambda: {"AssociationId": association["AssociationId"]})
    cloud.do("tag an instance", "ec2", "create_tags", lambda: {"Resources": [instance()], "Tags": [{"Key": "Name", "Value": "db/0"}]})
    cloud.do("tag what does not exist", "ec2", "create_tags", lambda: {"Resources": ["i-0123456789abcdef0"], "Tags": tags}, "InvalidInstanceID.NotFound")
    cloud.do("reboot", "ec2", "reboot_instances", read)
    cloud.do("find no instance", "ec2", "describe_instances", lambda: {"InstanceIds": ["i-0123456789abcdef0"]}, "InvalidInstanceID.NotFound")
    cloud.do("find by an unknown filter", "ec2", "describe_volumes", lambda: {"Filters": [{"Name": "colour", "Values": ["x"]}]}, "InvalidParameterValue")
    return instance


def load_balancers(cloud, own, instance):
    name = own["load_balancer"]
    targets = lambda: {"LoadBalancerName": name, "Instances": [{"InstanceId": instance()}]}
    cloud.do("find a load balancer", "elb", "describe_load_balancers", lambda: {"LoadBalancerNames": [name]})
    cloud.do("register with a load balancer", "elb", "register_instances_with_load_balancer", targets)
    cloud.do("register with no load balancer", "elb", "register_instances_with_load_balancer", lambda: {**targets(), "LoadBalancerName": "unknown"}, "LoadBalancerNotFound")
    cloud.do("read the health of instances", "elb", "describe_instance_health", lambda: {"LoadBalancerName": name})
    cloud.do("deregister from a load balancer", "elb", "deregister_instances_from_load_balancer", targets)
    found = cloud.do("find a target group", "elbv2", "describe_target_groups", lambda: {"Names": [own["target_group"]]})
    expect(cloud, "the target group", found and found["TargetGroups"][0]["TargetGroupArn"], own["target_group_arn"])
    cloud.do("find no target group", "elbv2", "describe_target_groups", lambda: {"Names": ["unknown"]}, "TargetGroupNotFound")
    group = {"TargetGroupArn": own["target_group_arn"]}
    target = lambda: {**group, "Targets": [{"Id": instance(), "Port": 443}]}
    cloud.do("register a target", "elbv2", "register_targets", target)
    states = cloud.read_until("elbv2", "describe_target_health", lambda: group, ("TargetHealthDescriptions", 0, "TargetHealth", "State"), "healthy")
    expect(cloud, "the states of a target", states, ["initial", "healthy"])
    cloud.do("register a target that does not exist", "elbv2", "register_targets", lambda: {**group, "Targets": [{"Id": "i-0123456789abcdef0"}]}, "InvalidTarget")
    cloud.do("deregister a target", "elbv2", "deregister_targets", target)


def disks(cloud, own, instance):
    new = {
        "AvailabilityZone": own["availability_zone"], "Size": 10, "VolumeType": "gp3", "ClientToken": "disk-1",
        "Encrypted": True, "KmsKeyId": own["kms_key_arn"],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "job", "Value": "db"}]}],
    }
    first = cloud.do("create a volume", "ec2", "create_volume", lambda: new)
    again = cloud.do("create the same volume again", "ec2", "create_volume", lambda: new)
    expect(cloud, "the volume of the same token", again and again["VolumeId"], first and first["VolumeId"])
    cloud.do("create another volume with the same token", "ec2", "create_volume", lambda: {**new, "Size": 11}, "IdempotentParameterMismatch")
    cloud.do("create a volume with IOPS that its type does not have", "ec2", "create_volume", lambda: {**new, "VolumeType": "gp2", "Iops": 3000, "ClientToken": "disk-2"}, "InvalidParameterCombination")
    cloud.do("create a volume in no zone", "ec2", "create_volume", lambda: {**new, "AvailabilityZone": own["region"] + "x", "ClientToken": "disk-3"}, "InvalidZone.NotFound")
    volume = lambda: {"VolumeId": first["VolumeId"]}
    read = lambda: {"VolumeIds": [first["VolumeId"]]}
    states = cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "State"), "available")
    expect(cloud, "the states of a new volume", states, ["creating", "available"])
    place = lambda: {**volume(), "InstanceId": instance(), "Device": "/dev/sdf"}
    cloud.do("attach", "ec2", "attach_volume", place)
    states = cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "Attachments", 0, "State"), "attached")
    expect(cloud, "the states of an attachment", states, ["attaching", "attached"])
    cloud.do("attach again", "ec2", "attach_volume", lambda: {**place(), "Device": "/dev/sdg"}, "VolumeInUse")
    cloud.do("delete an attached volume", "ec2", "delete_volume", volume, "VolumeInUse")
    other = cloud.do("create a volume in another zone", "ec2", "create_volume", lambda: {"AvailabilityZone": own["region"] + "b", "Size": 1})
    away = lambda: {"VolumeIds": [other["VolumeId"]]}
    cloud.read_until("ec2", "describe_volumes", away, ("Volumes", 0, "State"), "available")
    cloud.do("attach in another zone", "ec2", "attach_volume", lambda: {**place(), "VolumeId": other["VolumeId"], "Device": "/dev/sdh"}, "InvalidVolume.ZoneMismatch")
    cloud.do("grow a volume", "ec2", "modify_volume", lambda: {**volume(), "Size": 20})
    states = cloud.read_until("ec2", "describe_volumes_modifications", read, ("VolumesModifications", 0, "ModificationState"), "completed")
    expect(cloud, "the states of a modification", states, ["modifying", "optimizing", "optimizing", "completed"])
    cloud.do("shrink a volume", "ec2", "modify_volume", lambda: {**volume(), "Size": 5}, "InvalidParameterValue")
    tags = [{"ResourceType": "snapshot", "Tags": [{"Key": "job", "Value": "db"}]}]
    snapshot = cloud.do("create a snapshot", "ec2", "create_snapshot", lambda: {**volume(), "Description": "of a disk", "TagSpecifications": tags})
    cloud.do("delete a snapshot", "ec2", "delete_snapshot", lambda: {"SnapshotId": snapshot["SnapshotId"]})
    cloud.do("delete a snapshot again", "ec2", "delete_snapshot", lambda: {"SnapshotId": snapshot["SnapshotId"]}, "InvalidSnapshot.NotFound")
    cloud.do("detach", "ec2", "detach_volume", lambda: {**volume(), "InstanceId": instance()})
    states = cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "State"), "available")
    expect(cloud, "the states of a detached volume", states, ["in-use", "available"])
    cloud.do("detach again", "ec2", "detach_volume", volume, "IncorrectState")
    cloud.do("delete a volume", "ec2", "delete_volume", volume)
    cloud.read_until("ec2", "describe_volumes", read, ("Volumes", 0, "State"), None)
    cloud.do("delete a volume again", "ec2", "delete_volume", volume, "InvalidVolume.NotFound")


def images(cloud, own):
    volume = cloud.do("create the volume of an image", "ec2", "create_volume", lambda: {"AvailabilityZone": own["availability_zone"], "Size": 5})
    cloud.read_until("ec2", "describe_volumes", lambda: {"VolumeIds": [volume["VolumeId"]]}, ("Volumes", 0, "State"), "available")
    snapshot = cloud.do("create the snapshot of an image", "ec2", "create_snapshot", lambda: {"VolumeId": volume["VolumeId"]})
    read = lambda: {"SnapshotIds": [snapshot["SnapshotId"]]}
    states = cloud.read_until("ec2", "describe_snapshots", read, ("Snapshots", 0, "State"), "completed")
    expect(cloud, "the states of a snapshot", states, ["pending", "completed"])
    new = lambda: {
        "Name": "a stemcell", "Architecture": "x86_64", "RootDeviceName": "/dev/xvda", "VirtualizationType": "hvm",
        "EnaSupport": True, "BootMode": "uefi-preferred", "SriovNetSupport": "simple",
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": snapshot["SnapshotId"], "DeleteOnTermination": True}}],
        "TagSpecifications": [{"ResourceType": "image", "Tags": [{"Key": "name", "Value": "stemcell"}]}],
    }
    image = cloud.do("register an image", "ec2", "register_image", new)
    cloud.do("register an image again", "ec2", "register_image", new, "InvalidAMIName.Duplicate")
    cloud.do("register an image from no snapshot", "ec2", "register_image", lambda: {**new(), "Name": "another", "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": "snap-0123456789abcdef0"}}]}, "InvalidSnapshot.NotFound")
    described = cloud.do("describe an image", "ec2", "describe_images", lambda: {"ImageIds": [image["ImageId"]], "IncludeDeprecated": True})
    shown = described["Images"][0] if described and described["Images"] else {}
    expect(cloud, "the root device", shown.get("RootDeviceName"), "/dev/xvda")
    cloud.do("delete the snapshot of an image", "ec2", "delete_snapshot", lambda: {"SnapshotId": snapshot["SnapshotId"]}, "InvalidSnapshot.InUse")
    copy = {"Name": "a copy", "SourceImageId": own["image"], "SourceRegion": own["region"], "Encrypted": True, "KmsKeyId": own["kms_key_arn"], "ClientToken": "copy-1"}
    first = cloud.do("copy an image", "ec2", "copy_image", lambda: copy)
    again = cloud.do("copy the same image again", "ec2", "copy_image", lambda: copy)
    expect(cloud, "the copy of the same token", again and again["ImageId"], first and first["ImageId"])
    states = cloud.read_until("ec2", "describe_images", lambda: {"ImageIds": [first["ImageId"]]}, ("Images", 0, "State"), "available")
    expect(cloud, "the states of a copy", states, ["pending", "available"])
    cloud.do("deregister an image", "ec2", "deregister_image", lambda: {"ImageId": image["ImageId"], "DeleteAssociatedSnapshots": True})
    cloud.do("deregister an image again", "ec2", "deregister_image", lambda: {"ImageId": image["ImageId"]}, "InvalidAMIID.NotFound")


def blocks(cloud):
    content = {0: b"\7" * BLOCK, 3: b"\0\1" * (BLOCK // 2)}
    new = {"VolumeSize": 1, "Description": "a stemcell", "ClientToken": "blocks-1"}
    started = cloud.do("start a snapshot", "ebs", "start_snapshot", lambda: new)
    cloud.do("start another snapshot with the same token", "ebs", "start_snapshot", lambda: {**new, "VolumeSize": 2}, "ConflictException")
    digest = lambda data: base64.b64encode(hashlib.sha256(data).digest()).decode()
    block = lambda index: {
        "SnapshotId": started["SnapshotId"], "BlockIndex": index, "BlockData": content[index], "DataLength": BLOCK,
        "Checksum": digest(content[index]), "ChecksumAlgorithm": "SHA256",
    }
    for index in content:
        cloud.do(f"put the block {index}", "ebs", "put_snapshot_block", lambda: block(index))
    cloud.do("put a block with a wrong checksum", "ebs", "put_snapshot_block", lambda: {**block(0), "Checksum": digest(b"x")}, "ValidationException")
    whole = b"".join(hashlib.sha256(data).digest() for data in content.values())
    end = lambda: {
        "SnapshotId": started["SnapshotId"], "ChangedBlocksCount": len(content), "Checksum": digest(whole),
        "ChecksumAlgorithm": "SHA256", "ChecksumAggregationMethod": "LINEAR",
    }
    cloud.do("complete a snapshot with a wrong count", "ebs", "complete_snapshot", lambda: {**end(), "ChangedBlocksCount": 1}, "ValidationException")
    cloud.do("complete a snapshot", "ebs", "complete_snapshot", end)
    states = cloud.read_until("ec2", "describe_snapshots", lambda: {"SnapshotIds": [started["SnapshotId"]]}, ("Snapshots", 0, "State"), "completed")
    expect(cloud, "the states of a snapshot of blocks", states, ["pending", "completed"])
    listed = cloud.do("list blocks", "ebs", "list_snapshot_blocks", lambda: {"SnapshotId": started["SnapshotId"]})
    expect(cloud, "the blocks", [one["BlockIndex"] for one in (listed or {}).get("Blocks", [])], list(content))
    token = lambda: listed["Blocks"][1]["BlockToken"]
    read = cloud.do("read a block", "ebs", "get_snapshot_block", lambda: {"SnapshotId": started["SnapshotId"], "BlockIndex": 3, "BlockToken": token()})
    expect(cloud, "the content of a block", read and read["BlockData"].read() == content[3], True)


def finish(cloud, instance):
    read = lambda: {"InstanceIds": [instance()]}
    cloud.do("terminate", "ec2", "terminate_instances", read)
    states = cloud.read_until("ec2", "describe_instances", read, ("Reservations", 0, "Instances", 0, "State", "Name"), "terminated")
    expect(cloud, "the states of an end", states, ["shutting-down", "terminated"])
    cloud.do("terminate again", "ec2", "terminate_instances", read)
    cloud.do("terminate what does not exist", "ec2", "terminate_instances", lambda: {"InstanceIds": ["i-0123456789abcdef0"]}, "InvalidInstanceID.NotFound")
