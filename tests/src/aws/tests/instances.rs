//! Launches and ends of instances.

use super::*;

/// Changes and additions to the parameters of a launch.
fn launch_with(cloud: &Cloud, changes: &[(&str, &str)]) -> Response {
    let own = cloud.launch_parameters();
    let mut all: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for (name, value) in changes {
        all.retain(|(known, _)| known != name);
        if !value.is_empty() {
            all.push((name, value));
        }
    }
    cloud.call("RunInstances", &all)
}

#[test]
fn an_instance_passes_through_its_states_and_frees_what_it_used() {
    let cloud = Cloud::new();
    let id = cloud.launch(&[("PrivateIpAddress", "10.0.0.10"), ("UserData", "e30=")]);
    let state = || cloud.get("DescribeInstances", &[("InstanceId.1", &id)], "name");
    assert_eq!([state(), state()], ["pending", "running"]);
    assert_eq!(cloud.get("DescribeInstances", &[("InstanceId.1", &id)], "privateIpAddress"), "10.0.0.10");
    let attribute = [("InstanceId", id.as_str()), ("Attribute", "userData")];
    assert_eq!(cloud.get("DescribeInstanceAttribute", &attribute, "value"), "e30=");
    let interface = [("SubnetId", cloud.value("subnet")), ("PrivateIpAddress", "10.0.0.10".to_owned())];
    let interface = interface.each_ref().map(|(name, value)| (*name, value.as_str()));
    cloud.refused("CreateNetworkInterface", &interface, "InvalidIPAddress.InUse");
    assert_eq!(count(&cloud.call("DescribeVolumes", &[]), "<status>in-use</status>"), 1);
    cloud.simulator.set_reads_before_change(2);
    cloud.done("TerminateInstances", &[("InstanceId.1", &id)]);
    assert_eq!([state(), state(), state()], ["shutting-down", "shutting-down", "terminated"]);
    assert_eq!(count(&cloud.call("DescribeVolumes", &[]), "<volumeId>"), 0);
    assert_eq!(count(&cloud.call("DescribeNetworkInterfaces", &[]), "<networkInterfaceId>"), 0);
    cloud.done("CreateNetworkInterface", &interface);
    cloud.done("TerminateInstances", &[("InstanceId.1", &id)]);
    cloud.refused("RebootInstances", &[("InstanceId.1", &id)], "IncorrectInstanceState");
    cloud.refused("TerminateInstances", &[("InstanceId.1", "i-0123456789abcdef0")], "InvalidInstanceID.NotFound");
}

#[test]
fn launches_that_break_a_rule_are_refused_and_leave_nothing() {
    let cloud = Cloud::new();
    let big = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, vec![b'x'; 16_385]);
    let subnet_c = cloud.description["subnets"]["us-east-1c"].as_str().unwrap_or_default().to_owned();
    let subnet_b = cloud.description["subnets"]["us-east-1b"].as_str().unwrap_or_default().to_owned();
    for (changes, code) in [
        (vec![("ImageId", "ami-0123456789abcdef0")], "InvalidAMIID.NotFound"),
        (vec![("ImageId", "ami-x")], "InvalidAMIID.Malformed"),
        (vec![("InstanceType", "m99.large")], "InvalidParameterValue"),
        (vec![("InstanceType", "m6g.large")], "InvalidParameterValue"),
        (vec![("InstanceType", "m7i.large"), ("SubnetId", &subnet_b)], "Unsupported"),
        (vec![("MinCount", "")], "MissingParameter"),
        (vec![("MaxCount", "2")], "InvalidParameterValue"),
        (vec![("KeyName", "unknown")], "InvalidKeyPair.NotFound"),
        (vec![("SecurityGroupId.1", "sg-0123456789abcdef0")], "InvalidGroup.NotFound"),
        (vec![("SecurityGroup.1", "bosh")], "InvalidParameterCombination"),
        (vec![("Placement.AvailabilityZone", "us-east-1b")], "InvalidParameterValue"),
        (vec![("Placement.GroupName", "unknown")], "InvalidPlacementGroup.Unknown"),
        (vec![("Placement.HostId", "h-1")], "UnsupportedOperation"),
        (vec![("IamInstanceProfile.Name", "unknown")], "InvalidParameterValue"),
        (vec![("PrivateIpAddress", "10.0.1.10")], "InvalidParameterValue"),
        (vec![("PrivateIpAddress", "10.0.0.2")], "InvalidParameterValue"),
        (vec![("UserData", "no base64")], "InvalidUserData.Malformed"),
        (vec![("UserData", &big)], "InvalidParameterValue"),
        (vec![("LaunchTemplate.LaunchTemplateName", "x")], "UnsupportedOperation"),
        (vec![("MetadataOptions.HttpTokens", "always")], "InvalidParameterValue"),
        (vec![("MetadataOptions.HttpPutResponseHopLimit", "65")], "InvalidParameterValue"),
        (
            vec![("BlockDeviceMapping.1.DeviceName", "/dev/xvda"), ("BlockDeviceMapping.1.Ebs.VolumeSize", "4")],
            "InvalidParameterValue",
        ),
        (
            vec![("BlockDeviceMapping.1.DeviceName", "/dev/sdb"), ("BlockDeviceMapping.1.Ebs.VolumeType", "gp3")],
            "MissingParameter",
        ),
        (
            vec![("BlockDeviceMapping.1.DeviceName", "sdb"), ("BlockDeviceMapping.1.Ebs.VolumeSize", "4")],
            "InvalidBlockDeviceMapping",
        ),
        (vec![("TagSpecification.1.ResourceType", "snapshot")], "InvalidParameterValue"),
        (
            vec![("InstanceMarketOptions.MarketType", "spot"), ("InstanceMarketOptions.SpotOptions.MaxPrice", "0.001")],
            "SpotMaxPriceTooLow",
        ),
        (
            vec![("NetworkInterface.1.DeviceIndex", "0"), ("NetworkInterface.1.SubnetId", &subnet_c)],
            "InvalidParameterCombination",
        ),
    ] {
        let response = launch_with(&cloud, &changes);
        assert_eq!(element(&response, "Code").as_deref(), Some(code), "{changes:?}: {}", text(&response));
    }
    assert_eq!(count(&cloud.call("DescribeInstances", &[]), "<instanceId>"), 0);
    assert_eq!(count(&cloud.call("DescribeNetworkInterfaces", &[]), "<networkInterfaceId>"), 0);
    cloud.simulator.set_limit("instances", 0);
    assert_eq!(element(&launch_with(&cloud, &[]), "Code").as_deref(), Some("InstanceLimitExceeded"));
}

#[test]
fn a_launch_that_cannot_create_its_volumes_leaves_nothing() {
    let cloud = Cloud::new();
    cloud.simulator.set_limit("volumes", 0);
    assert_eq!(element(&launch_with(&cloud, &[]), "Code").as_deref(), Some("VolumeLimitExceeded"));
    assert_eq!(count(&cloud.call("DescribeInstances", &[]), "<instanceId>"), 0);
    assert_eq!(count(&cloud.call("DescribeNetworkInterfaces", &[]), "<networkInterfaceId>"), 0);
}

#[test]
fn a_launch_creates_interfaces_volumes_and_tags_at_once() {
    let cloud = Cloud::new();
    let (subnet, group) = (cloud.value("subnet"), cloud.value("security_group"));
    let parameters = [
        ("SubnetId", ""),
        ("NetworkInterface.1.DeviceIndex", "0"),
        ("NetworkInterface.1.SubnetId", subnet.as_str()),
        ("NetworkInterface.1.SecurityGroupId.1", group.as_str()),
        ("NetworkInterface.1.PrivateIpAddress", "10.0.0.20"),
        ("NetworkInterface.1.Ipv6Addresses.1.Ipv6Address", "2001:db8:0:0::20"),
        ("NetworkInterface.1.AssociatePublicIpAddress", "true"),
        ("BlockDeviceMapping.1.DeviceName", "/dev/sdb"),
        ("BlockDeviceMapping.1.Ebs.VolumeSize", "20"),
        ("BlockDeviceMapping.1.Ebs.VolumeType", "gp3"),
        ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "job"),
        ("TagSpecification.1.Tag.1.Value", "db"),
        ("TagSpecification.2.ResourceType", "network-interface"),
        ("TagSpecification.2.Tag.1.Key", "job"),
        ("TagSpecification.2.Tag.1.Value", "nic"),
        ("TagSpecification.3.ResourceType", "volume"),
        ("TagSpecification.3.Tag.1.Key", "job"),
        ("TagSpecification.3.Tag.1.Value", "disk"),
        ("ClientToken", "launch-1"),
    ];
    let first = launch_with(&cloud, &parameters);
    assert_eq!(first.status, 200, "{}", text(&first));
    for part in
        ["<ipv6Address>2001:db8::20<", "<deviceName>/dev/sdb<", "<deviceName>/dev/xvda<", "<ipAddress>203.0.113."]
    {
        assert!(count(&first, part) > 0, "{part}: {}", text(&first));
    }
    assert_eq!(
        count(
            &cloud.call("DescribeVolumes", &[("Filter.1.Name", "tag:job"), ("Filter.1.Value.1", "disk")]),
            "<volumeId>vol"
        ),
        4
    );
    assert_eq!(
        count(
            &cloud.call("DescribeNetworkInterfaces", &[("Filter.1.Name", "tag:job"), ("Filter.1.Value.1", "nic")]),
            "<macAddress>"
        ),
        1
    );
    let again = launch_with(&cloud, &parameters);
    assert_eq!(element(&again, "instanceId"), element(&first, "instanceId"));
    let other = [parameters.as_slice(), &[("EbsOptimized", "true")]].concat();
    assert_eq!(element(&launch_with(&cloud, &other), "Code").as_deref(), Some("IdempotentParameterMismatch"));
    let found = cloud.call("DescribeInstances", &[("Filter.1.Name", "client-token"), ("Filter.1.Value.1", "launch-1")]);
    assert_eq!(element(&found, "instanceId"), element(&first, "instanceId"));
}

#[test]
fn an_accepted_launch_can_fail() {
    let cloud = Cloud::new();
    cloud.simulator.fail_launches(1);
    let id = cloud.launch(&[]);
    let describe = || cloud.call("DescribeInstances", &[("InstanceId.1", &id)]);
    assert_eq!(element(&describe(), "name").as_deref(), Some("pending"));
    let failed = describe();
    assert_eq!(element(&failed, "name").as_deref(), Some("terminated"));
    assert!(text(&failed).contains("Server.InternalError"), "{}", text(&failed));
}

#[test]
fn load_balancers_know_the_instances_that_run() {
    let cloud = Cloud::new();
    let elb = |operation: &str, parameters: &[(&str, &str)]| {
        cloud.call_as(&cloud.client, Service::Elb, operation, parameters)
    };
    let (id, group) = (cloud.launch(&[]), cloud.value("target_group_arn"));
    let target = [("TargetGroupArn", group.as_str()), ("Targets.member.1.Id", id.as_str())];
    assert_eq!(element(&elb("RegisterTargets", &target), "Code").as_deref(), Some("InvalidTarget"));
    assert_eq!(elb("RegisterTargets", &target).status, 200, "the instance runs at the second read");
    let health = || elb("DescribeTargetHealth", &target[..1]);
    assert_eq!(
        [element(&health(), "State"), element(&health(), "State")],
        [Some("initial".to_owned()), Some("healthy".to_owned())]
    );
    let classic = [("LoadBalancerName", "bosh-elb"), ("Instances.member.1.InstanceId", id.as_str())];
    let registered = elb("RegisterInstancesWithLoadBalancer", &classic);
    assert_eq!(element(&registered, "InstanceId").as_deref(), Some(id.as_str()));
    let unknown = [("LoadBalancerName", "unknown"), classic[1]];
    assert_eq!(
        element(&elb("RegisterInstancesWithLoadBalancer", &unknown), "Code").as_deref(),
        Some("LoadBalancerNotFound")
    );
    assert_eq!(
        element(&elb("DescribeTargetGroups", &[("Names.member.1", "unknown")]), "Code").as_deref(),
        Some("TargetGroupNotFound")
    );
    assert_eq!(elb("DeregisterTargets", &target).status, 200);
    assert_eq!([element(&health(), "State"), element(&health(), "State")], [Some("draining".to_owned()), None]);
    cloud.done("TerminateInstances", &[("InstanceId.1", &id)]);
    for _ in 0..2 {
        cloud.done("DescribeInstances", &[("InstanceId.1", &id)]);
    }
    assert_eq!(count(&elb("DescribeInstanceHealth", &classic[..1]), &id), 0);
}

#[test]
fn instance_types_say_how_volumes_appear() {
    let cloud = Cloud::new();
    for (name, nvme) in [("m5.large", "required"), ("t2.micro", "unsupported")] {
        assert_eq!(cloud.get("DescribeInstanceTypes", &[("InstanceType.1", name)], "nvmeSupport"), nvme);
    }
    assert_eq!(cloud.get("DescribeInstanceTypes", &[("InstanceType.1", "i3en.xlarge")], "sizeInGB"), "2500");
    cloud.refused("DescribeInstanceTypes", &[("InstanceType.1", "m99.large")], "InvalidInstanceType");
    assert_eq!(count(&cloud.call("DescribeAvailabilityZones", &[]), "<zoneName>"), 3);
}
