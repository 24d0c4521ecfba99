//! Network interfaces, Elastic IPs and routes.

use super::*;

fn create(cloud: &Cloud, further: &[(&str, &str)]) -> Response {
    let subnet = cloud.value("subnet");
    cloud.call("CreateNetworkInterface", &[&[("SubnetId", subnet.as_str())], further].concat())
}

#[test]
fn an_address_belongs_to_one_interface() {
    let cloud = Cloud::new();
    let first = create(&cloud, &[("PrivateIpAddress", "10.0.0.10"), ("ClientToken", "n-1")]);
    let id = element(&first, "networkInterfaceId").unwrap_or_default();
    assert_eq!(
        element(&create(&cloud, &[("PrivateIpAddress", "10.0.0.10"), ("ClientToken", "n-1")]), "networkInterfaceId"),
        Some(id.clone())
    );
    for (parameters, code) in [
        (vec![("PrivateIpAddress", "10.0.0.10")], "InvalidIPAddress.InUse"),
        (vec![("Ipv4Prefix.1.Ipv4Prefix", "10.0.0.0/28")], "InvalidIPAddress.InUse"),
        (vec![("PrivateIpAddress", "10.0.0.255")], "InvalidParameterValue"),
        (vec![("PrivateIpAddress", "10.1.0.1")], "InvalidParameterValue"),
        (vec![("PrivateIpAddress", "10.0.0")], "InvalidParameterValue"),
        (vec![("PrivateIpAddress", "10.0.0.11"), ("ClientToken", "n-1")], "IdempotentParameterMismatch"),
        (vec![("SecurityGroupId.1", "sg-0123456789abcdef0")], "InvalidGroup.NotFound"),
    ] {
        let response = create(&cloud, &parameters);
        assert_eq!(element(&response, "Code").as_deref(), Some(code), "{parameters:?} {}", text(&response));
    }
    cloud.done("DeleteNetworkInterface", &[("NetworkInterfaceId", &id)]);
    assert_eq!(create(&cloud, &[("PrivateIpAddress", "10.0.0.10")]).status, 200);
    cloud.simulator.set_limit("network-interfaces", 1);
    assert_eq!(element(&create(&cloud, &[]), "Code").as_deref(), Some("NetworkInterfaceLimitExceeded"));
}

#[test]
fn a_new_interface_has_prefixes_or_addresses_of_a_version_of_ip() {
    let cloud = Cloud::new();
    for (prefix, address) in [
        (("Ipv4Prefix.1.Ipv4Prefix", "10.0.0.32/28"), ("PrivateIpAddress", "10.0.0.10")),
        (("Ipv4PrefixCount", "1"), ("SecondaryPrivateIpAddressCount", "1")),
        (("Ipv6Prefix.1.Ipv6Prefix", "2001:db8:0:0:1::/80"), ("Ipv6Addresses.1.Ipv6Address", "2001:db8::10")),
    ] {
        let code = element(&create(&cloud, &[prefix, address]), "Code");
        assert_eq!(code.as_deref(), Some("InvalidParameterCombination"), "{prefix:?} {address:?}");
        assert_eq!(create(&cloud, &[prefix]).status, 200, "{prefix:?}");
    }
}

#[test]
fn addresses_and_prefixes_are_assigned() {
    let cloud = Cloud::new();
    let id = element(&create(&cloud, &[]), "networkInterfaceId").unwrap_or_default();
    let own = ("NetworkInterfaceId", id.as_str());
    let ipv4 = |parameters: &[(&str, &str)]| cloud.call("AssignPrivateIpAddresses", &[&[own], parameters].concat());
    assert_eq!(element(&ipv4(&[("Ipv4Prefix.1", "10.0.0.32/28")]), "ipv4Prefix").as_deref(), Some("10.0.0.32/28"));
    assert_eq!(element(&ipv4(&[("Ipv4Prefix.1", "10.0.0.32/27")]), "Code").as_deref(), Some("InvalidParameterValue"));
    assert_eq!(
        element(&ipv4(&[("PrivateIpAddress.1", "10.0.0.40")]), "Code").as_deref(),
        Some("InvalidIPAddress.InUse")
    );
    assert_eq!(element(&ipv4(&[]), "Code").as_deref(), Some("MissingParameter"));
    let ipv6 =
        cloud.call("AssignIpv6Addresses", &[own, ("Ipv6Prefix.1", "2001:db8:0:0:1::/80"), ("Ipv6AddressCount", "1")]);
    assert_eq!(ipv6.status, 200, "{}", text(&ipv6));
    let shown = cloud.call("DescribeNetworkInterfaces", &[("NetworkInterfaceId.1", &id)]);
    for part in ["<ipv4Prefix>10.0.0.32/28<", "<ipv6Prefix>2001:db8:0:0:1::/80<", "<ipv6Address>2001:db8::"] {
        assert_eq!(count(&shown, part), 1, "{part} {}", text(&shown));
    }
}

#[test]
fn an_instance_uses_an_interface_that_exists() {
    let cloud = Cloud::new();
    let id = element(&create(&cloud, &[]), "networkInterfaceId").unwrap_or_default();
    let launch = || {
        cloud.call(
            "RunInstances",
            &[
                ("ImageId", &cloud.value("image")),
                ("InstanceType", "m5.large"),
                ("MinCount", "1"),
                ("MaxCount", "1"),
                ("NetworkInterface.1.DeviceIndex", "0"),
                ("NetworkInterface.1.NetworkInterfaceId", &id),
            ],
        )
    };
    let instance = element(&launch(), "instanceId").unwrap_or_default();
    assert_eq!(element(&launch(), "Code").as_deref(), Some("InvalidNetworkInterface.InUse"));
    cloud.refused("DeleteNetworkInterface", &[("NetworkInterfaceId", &id)], "InvalidParameterValue");
    let shown = cloud.call("DescribeNetworkInterfaces", &[("NetworkInterfaceId.1", &id)]);
    let attachment = element(&shown, "attachmentId").unwrap_or_default();
    let modify = |attachment: &str| {
        cloud.call(
            "ModifyNetworkInterfaceAttribute",
            &[
                ("NetworkInterfaceId", &id),
                ("Attachment.AttachmentId", attachment),
                ("Attachment.DeleteOnTermination", "true"),
            ],
        )
    };
    assert_eq!(element(&modify("eni-attach-1"), "Code").as_deref(), Some("InvalidAttachmentID.NotFound"));
    assert_eq!(modify(&attachment).status, 200);
    cloud.done("ModifyNetworkInterfaceAttribute", &[("NetworkInterfaceId", &id), ("SourceDestCheck.Value", "false")]);
    assert_eq!(cloud.get("DescribeInstances", &[("InstanceId.1", &instance)], "sourceDestCheck"), "false");
    cloud.done("TerminateInstances", &[("InstanceId.1", &instance)]);
    for _ in 0..2 {
        cloud.done("DescribeInstances", &[("InstanceId.1", &instance)]);
    }
    cloud.refused("DescribeNetworkInterfaces", &[("NetworkInterfaceId.1", &id)], "InvalidNetworkInterfaceID.NotFound");
}

#[test]
fn an_elastic_ip_moves_between_instances() {
    let cloud = Cloud::new();
    let (pending, allocation) = (cloud.launch(&[]), cloud.value("allocation"));
    let associate = |instance: &str, further: &[(&str, &str)]| {
        cloud.call(
            "AssociateAddress",
            &[&[("AllocationId", allocation.as_str()), ("InstanceId", instance)], further].concat(),
        )
    };
    assert_eq!(element(&associate(&pending, &[]), "Code").as_deref(), Some("InvalidInstanceID"));
    let first = element(&associate(&pending, &[]), "associationId");
    assert!(first.is_some());
    assert_eq!(element(&associate(&pending, &[]), "associationId"), first, "it is associated already");
    let other = cloud.running();
    let refused = associate(&other, &[("AllowReassociation", "false")]);
    assert_eq!(element(&refused, "Code").as_deref(), Some("Resource.AlreadyAssociated"));
    let second = element(&associate(&other, &[]), "associationId").unwrap_or_default();
    assert_ne!(Some(&second), first.as_ref());
    let ip = cloud.value("elastic_ip");
    assert_eq!(cloud.get("DescribeInstances", &[("InstanceId.1", &other)], "ipAddress"), ip);
    assert_eq!(cloud.get("DescribeAddresses", &[("PublicIp.1", &ip)], "instanceId"), other);
    cloud.done("DisassociateAddress", &[("AssociationId", &second)]);
    cloud.refused("DisassociateAddress", &[("AssociationId", &second)], "InvalidAssociationID.NotFound");
    cloud.refused("DescribeAddresses", &[("PublicIp.1", "192.0.2.1")], "InvalidAddress.NotFound");
}

#[test]
fn routes_lead_to_instances() {
    let cloud = Cloud::new();
    let (table, instance) = (cloud.value("route_table"), cloud.running());
    let route = |operation: &str, destination: &str| {
        cloud.call(
            operation,
            &[("RouteTableId", &table), ("DestinationCidrBlock", destination), ("InstanceId", &instance)],
        )
    };
    let code = |response: &Response| element(response, "Code");
    assert_eq!(code(&route("ReplaceRoute", "10.9.0.0/16")).as_deref(), Some("InvalidParameterValue"));
    assert_eq!(route("CreateRoute", "10.9.0.0/16").status, 200);
    assert_eq!(code(&route("CreateRoute", "10.9.0.0/16")).as_deref(), Some("RouteAlreadyExists"));
    assert_eq!(route("ReplaceRoute", "10.9.0.0/16").status, 200);
    assert_eq!(code(&route("CreateRoute", "10.9.0.1/16")).as_deref(), Some("InvalidParameterValue"));
    cloud.done("TerminateInstances", &[("InstanceId.1", &instance)]);
    for _ in 0..2 {
        cloud.done("DescribeInstances", &[("InstanceId.1", &instance)]);
    }
    assert_eq!(count(&cloud.call("DescribeRouteTables", &[]), "<state>blackhole</state>"), 1);
}
