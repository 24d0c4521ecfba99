"""Launches, and the end of an instance."""

import base64


def launch(cloud, own):
    tags = [{"Key": "job", "Value": "db"}]
    new = {
        "ImageId": own["image"],
        "InstanceType": own["instance_type"],
        "MinCount": 1,
        "MaxCount": 1,
        "KeyName": own["key_name"],
        "ClientToken": "vm-1",
        "IamInstanceProfile": {"Name": own["instance_profile"]},
        "UserData": '{"agent": "settings"}',
        "Placement": {"AvailabilityZone": own["availability_zone"]},
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": own["subnet"],
                "Groups": [own["security_group"]],
                "PrivateIpAddress": "10.0.0.20",
                "DeleteOnTermination": True,
                "AssociatePublicIpAddress": False,
            }
        ],
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "DeleteOnTermination": True}},
            {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 30, "VolumeType": "gp3", "Encrypted": True}},
        ],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "network-interface")
        ],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"},
    }
    first = cloud.do("launch", "ec2", "run_instances", lambda: new)
    instance = lambda: first["Instances"][0]["InstanceId"]
    again = cloud.do("launch the same again", "ec2", "run_instances", lambda: new)
    cloud.expect("the instance of the same token", again and again["Instances"][0]["InstanceId"], instance())
    read = lambda: {"InstanceIds": [instance()]}
    state = ("Reservations", 0, "Instances", 0, "State", "Name")
    states = cloud.read_until("ec2", "describe_instances", read, state, "running")
    cloud.expect("the states of a launch", states, ["pending", "running"])
    wrong = lambda name, code, **changes: cloud.do(
        name, "ec2", "run_instances", lambda: {**new, "ClientToken": name[:64].replace(" ", "-"), **changes}, code
    )
    wrong(
        "launch something else with the same token",
        "IdempotentParameterMismatch",
        ClientToken="vm-1",
        EbsOptimized=True,
    )
    wrong("launch an image that does not exist", "InvalidAMIID.NotFound", ImageId="ami-0123456789abcdef0")
    wrong("launch a type that does not exist", "InvalidParameterValue", InstanceType="m99.large")
    wrong("launch with an unknown key", "InvalidKeyPair.NotFound", KeyName="unknown")
    wrong("launch with a used address", "InvalidIPAddress.InUse")
    wrong(
        "launch in another zone than the subnet's",
        "InvalidParameterValue",
        Placement={"AvailabilityZone": own["region"] + "b"},
    )
    wrong("launch with a subnet and interfaces", "InvalidParameterCombination", SubnetId=own["subnet"])
    wrong("launch without a right", "DryRunOperation", DryRun=True)
    cloud.do(
        "find an instance by its token",
        "ec2",
        "describe_instances",
        lambda: {"Filters": [{"Name": "client-token", "Values": ["vm-1"]}]},
    )
    described = cloud.do("describe an instance", "ec2", "describe_instances", read)
    shown = described["Reservations"][0]["Instances"][0] if described else {}
    cloud.expect("the address", shown.get("PrivateIpAddress"), "10.0.0.20")
    devices = sorted(mapping["DeviceName"] for mapping in shown.get("BlockDeviceMappings", []))
    cloud.expect("the devices", devices, ["/dev/sdb", "/dev/xvda"])
    data = cloud.do(
        "read user-data",
        "ec2",
        "describe_instance_attribute",
        lambda: {"InstanceId": instance(), "Attribute": "userData"},
    )
    encoded = base64.b64encode(new["UserData"].encode()).decode()
    cloud.expect("user-data", data and data["UserData"].get("Value"), encoded)
    interface = lambda: shown["NetworkInterfaces"][0]
    cloud.do(
        "keep an interface with its instance",
        "ec2",
        "modify_network_interface_attribute",
        lambda: {
            "NetworkInterfaceId": interface()["NetworkInterfaceId"],
            "Attachment": {"AttachmentId": interface()["Attachment"]["AttachmentId"], "DeleteOnTermination": True},
        },
    )
    cloud.do(
        "turn off the source check of an instance",
        "ec2",
        "modify_instance_attribute",
        lambda: {"InstanceId": instance(), "SourceDestCheck": {"Value": False}},
    )
    route = lambda: {
        "RouteTableId": own["route_table"],
        "DestinationCidrBlock": "10.9.0.0/16",
        "InstanceId": instance(),
    }
    cloud.do("replace a route that does not exist", "ec2", "replace_route", route, "InvalidParameterValue")
    cloud.do("create a route", "ec2", "create_route", route)
    cloud.do("create a route again", "ec2", "create_route", route, "RouteAlreadyExists")
    cloud.do("replace a route", "ec2", "replace_route", route)
    cloud.do(
        "delete a route",
        "ec2",
        "delete_route",
        lambda: {"RouteTableId": own["route_table"], "DestinationCidrBlock": "10.9.0.0/16"},
    )
    cloud.do("create a route anew", "ec2", "create_route", route)
    association = cloud.do(
        "associate an address",
        "ec2",
        "associate_address",
        lambda: {"AllocationId": own["allocation"], "InstanceId": instance()},
    )
    cloud.do(
        "disassociate an address",
        "ec2",
        "disassociate_address",
        lambda: {"AssociationId": association["AssociationId"]},
    )
    cloud.do(
        "tag an instance",
        "ec2",
        "create_tags",
        lambda: {"Resources": [instance()], "Tags": [{"Key": "Name", "Value": "db/0"}]},
    )
    cloud.do(
        "tag what does not exist",
        "ec2",
        "create_tags",
        lambda: {"Resources": ["i-0123456789abcdef0"], "Tags": tags},
        "InvalidInstanceID.NotFound",
    )
    cloud.do("reboot", "ec2", "reboot_instances", read)
    cloud.do(
        "find no instance",
        "ec2",
        "describe_instances",
        lambda: {"InstanceIds": ["i-0123456789abcdef0"]},
        "InvalidInstanceID.NotFound",
    )
    cloud.do(
        "find by an unknown filter",
        "ec2",
        "describe_volumes",
        lambda: {"Filters": [{"Name": "colour", "Values": ["x"]}]},
        "InvalidParameterValue",
    )
    return instance


def finish(cloud, instance):
    read = lambda: {"InstanceIds": [instance()]}
    cloud.do("terminate", "ec2", "terminate_instances", read)
    states = cloud.read_until(
        "ec2", "describe_instances", read, ("Reservations", 0, "Instances", 0, "State", "Name"), "terminated"
    )
    cloud.expect("the states of an end", states, ["shutting-down", "terminated"])
    cloud.do("terminate again", "ec2", "terminate_instances", read)
    cloud.do(
        "terminate what does not exist",
        "ec2",
        "terminate_instances",
        lambda: {"InstanceIds": ["i-0123456789abcdef0"]},
        "InvalidInstanceID.NotFound",
    )
