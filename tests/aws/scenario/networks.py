"""What an operator creates, and network interfaces."""


def networks(cloud, own):
    vpc = {"Name": "vpc-id", "Values": [own["vpc"]]}
    cloud.do("list zones", "ec2", "describe_availability_zones", lambda: {})
    result = cloud.do("find subnets", "ec2", "describe_subnets", lambda: {"SubnetIds": [own["subnet"]]})
    cloud.expect(
        "the zone of the subnet", result and result["Subnets"][0]["AvailabilityZone"], own["availability_zone"]
    )
    name = {"Name": "group-name", "Values": [own["security_group_name"]]}
    result = cloud.do("find groups", "ec2", "describe_security_groups", lambda: {"Filters": [vpc, name]})
    cloud.expect(
        "groups",
        [group["GroupId"] for group in (result or {}).get("SecurityGroups", [])],
        [own["security_group"]],
    )
    cloud.do(
        "find no subnet",
        "ec2",
        "describe_subnets",
        lambda: {"SubnetIds": ["subnet-0123456789abcdef0"]},
        "InvalidSubnetID.NotFound",
    )
    cloud.do("find route tables", "ec2", "describe_route_tables", lambda: {"Filters": [vpc]})
    cloud.do("find an address", "ec2", "describe_addresses", lambda: {"PublicIps": [own["elastic_ip"]]})
    types = {"InstanceTypes": [own["instance_type"]]}
    result = cloud.do("find an instance type", "ec2", "describe_instance_types", lambda: types)
    cloud.expect("NVMe", result and result["InstanceTypes"][0]["EbsInfo"]["NvmeSupport"], "required")
    cloud.do(
        "find no instance type",
        "ec2",
        "describe_instance_types",
        lambda: {"InstanceTypes": ["m99.large"]},
        "InvalidInstanceType",
    )
    new = {
        "SubnetId": own["subnet"],
        "PrivateIpAddress": "10.0.0.10",
        "ClientToken": "interface-1",
        "Groups": [own["security_group"]],
    }
    first = cloud.do("create an interface", "ec2", "create_network_interface", lambda: new)
    again = cloud.do("create the same interface again", "ec2", "create_network_interface", lambda: new)
    same = lambda result: result and result["NetworkInterface"]["NetworkInterfaceId"]
    cloud.expect("the interface of the same token", same(again), same(first))
    cloud.do(
        "create another interface with the same token",
        "ec2",
        "create_network_interface",
        lambda: {**new, "PrivateIpAddress": "10.0.0.11"},
        "IdempotentParameterMismatch",
    )
    cloud.do(
        "create an interface with a used address",
        "ec2",
        "create_network_interface",
        lambda: {**new, "ClientToken": "interface-2"},
        "InvalidIPAddress.InUse",
    )
    cloud.do(
        "create an interface with an address of another subnet",
        "ec2",
        "create_network_interface",
        lambda: {**new, "PrivateIpAddress": "10.0.1.10", "ClientToken": "interface-3"},
        "InvalidParameterValue",
    )
    interface = lambda: {"NetworkInterfaceId": first["NetworkInterface"]["NetworkInterfaceId"]}
    ipv6 = lambda: cloud_ipv6(cloud, own)
    cloud.do(
        "assign an IPv4 prefix",
        "ec2",
        "assign_private_ip_addresses",
        lambda: {**interface(), "Ipv4Prefixes": ["10.0.0.64/28"]},
    )
    cloud.do(
        "assign an IPv6 address", "ec2", "assign_ipv6_addresses", lambda: {**interface(), "Ipv6Addresses": [ipv6()]}
    )
    cloud.do(
        "turn off the source check of an interface",
        "ec2",
        "modify_network_interface_attribute",
        lambda: {**interface(), "SourceDestCheck": {"Value": False}},
    )
    cloud.do(
        "describe an interface",
        "ec2",
        "describe_network_interfaces",
        lambda: {"NetworkInterfaceIds": [interface()["NetworkInterfaceId"]]},
    )
    cloud.do("delete an interface", "ec2", "delete_network_interface", interface)
    cloud.do(
        "delete an interface again", "ec2", "delete_network_interface", interface, "InvalidNetworkInterfaceID.NotFound"
    )


def cloud_ipv6(cloud, own):
    """Returns an IPv6 address of the subnet."""
    subnet = cloud.client("ec2").describe_subnets(SubnetIds=[own["subnet"]])["Subnets"][0]
    return subnet["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"].replace("::/64", "::10")
