//! `create_vm`: what it sends.

use serde_json::json;
use wasm_cpi_sdk::Cpi;
use wasm_cpi_sdk::fake::AgentEvent;

use super::answers::{
    address, done, groups, image, image_with, instance_types, interface, interfaces, launched, running,
};
use super::{
    cpi, dynamic, fields, form_of, manual, network, operations, properties, request, small, start, start_with, vip,
    with,
};

/// The answers to a VM with one network.
fn plain() -> Vec<(&'static str, String)> {
    vec![
        ("DescribeImages", image()),
        ("RunInstances", launched()),
        ("DescribeInstances", running("i-1", &interfaces(1))),
    ]
}

#[test]
fn a_vm_with_one_network_is_one_launch_between_two_reads() {
    let host = start(&plain());
    let created = cpi().create_vm(request(small(), vec![manual()])).unwrap();
    assert_eq!(created.vm, "i-1");
    assert_eq!(created.networks, [manual()]);
    assert_eq!(operations(&host), ["DescribeImages", "RunInstances", "DescribeInstances"]);
    let form = form_of(&host, "RunInstances");
    let token = form["ClientToken"].clone();
    let name = match &host.agent_events()[..] {
        [AgentEvent::Bootstrap(settings), AgentEvent::Created { vm, registry_key }] => {
            assert_eq!((vm.as_str(), registry_key.as_str()), ("i-1", "i-1"));
            assert_eq!(settings.system_disk.as_deref(), Some("/dev/xvda"));
            assert_eq!(settings.networks.len(), 1);
            assert_eq!((settings.networks[0].use_dhcp, settings.networks[0].mac.as_deref()), (Some(true), None));
            settings.vm_name.clone()
        }
        other => panic!("{other:?}"),
    };
    assert!(name.starts_with("vm-") && token.len() <= 64);
    let expected = [
        ("Action", "RunInstances"),
        ("BlockDeviceMapping.1.DeviceName", "/dev/sdb"),
        ("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"),
        ("BlockDeviceMapping.1.Ebs.VolumeSize", "10"),
        ("BlockDeviceMapping.1.Ebs.VolumeType", "gp3"),
        ("BlockDeviceMapping.2.DeviceName", "/dev/xvda"),
        ("BlockDeviceMapping.2.Ebs.DeleteOnTermination", "true"),
        ("BlockDeviceMapping.2.Ebs.VolumeSize", "5"),
        ("BlockDeviceMapping.2.Ebs.VolumeType", "gp3"),
        ("ClientToken", &token),
        ("ImageId", "ami-1"),
        ("InstanceType", "m5.large"),
        ("KeyName", "bosh"),
        ("MaxCount", "1"),
        ("MinCount", "1"),
        ("NetworkInterface.1.AssociatePublicIpAddress", "false"),
        ("NetworkInterface.1.DeleteOnTermination", "true"),
        ("NetworkInterface.1.DeviceIndex", "0"),
        ("NetworkInterface.1.PrivateIpAddress", "10.0.0.5"),
        ("NetworkInterface.1.SecurityGroupId.1", "sg-0a1b2c3d"),
        ("NetworkInterface.1.SubnetId", "subnet-1"),
        ("Placement.AvailabilityZone", "us-east-1a"),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "team"),
        ("TagSpecification.1.Tag.1.Value", "a"),
        ("TagSpecification.2.ResourceType", "volume"),
        ("TagSpecification.2.Tag.1.Key", "team"),
        ("TagSpecification.2.Tag.1.Value", "a"),
        ("TagSpecification.3.ResourceType", "network-interface"),
        ("TagSpecification.3.Tag.1.Key", "team"),
        ("TagSpecification.3.Tag.1.Value", "a"),
        ("UserData", "sealed-user-data-1"),
        ("Version", "2016-11-15"),
    ];
    assert_eq!(form, fields(&expected));
}

/// The parameters that cloud properties and properties add to or change in the launch above.
#[test]
fn cloud_properties_become_parameters_of_the_launch() {
    let global = |name: &str, value| with(properties(), name, value);
    for (all, name, value, expected) in [
        (properties(), "key_name", json!("other"), &[("KeyName", "other")][..]),
        (properties(), "iam_instance_profile", json!("p"), &[("IamInstanceProfile.Name", "p")]),
        (global("default_iam_instance_profile", json!("d")), "x", json!(1), &[("IamInstanceProfile.Name", "d")]),
        (properties(), "placement_group", json!("pg"), &[("Placement.GroupName", "pg")]),
        (properties(), "tenancy", json!("dedicated"), &[("Placement.Tenancy", "dedicated")]),
        (properties(), "tenancy", json!("host"), &[("Placement.Tenancy", "host")]),
        (
            properties(),
            "auto_assign_public_ip",
            json!(true),
            &[("NetworkInterface.1.AssociatePublicIpAddress", "true")],
        ),
        (
            properties(),
            "security_groups",
            json!(["sg-11111111"]),
            &[("NetworkInterface.1.SecurityGroupId.1", "sg-11111111")],
        ),
        (
            properties(),
            "metadata_options",
            json!({"http_tokens": "required", "http_put_response_hop_limit": 2}),
            &[("MetadataOptions.HttpTokens", "required"), ("MetadataOptions.HttpPutResponseHopLimit", "2")],
        ),
        (
            global("metadata_options", json!({"http_tokens": "required", "http_endpoint": "enabled"})),
            "metadata_options",
            json!({"http_tokens": "optional"}),
            &[("MetadataOptions.HttpTokens", "optional"), ("MetadataOptions.HttpEndpoint", "enabled")],
        ),
        (
            properties(),
            "spot_bid_price",
            json!(0.05),
            &[
                ("InstanceMarketOptions.MarketType", "spot"),
                ("InstanceMarketOptions.SpotOptions.MaxPrice", "0.05"),
                ("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time"),
                ("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate"),
            ],
        ),
        (
            properties(),
            "ephemeral_disk",
            json!({"size": 20000, "type": "io1", "iops": 300, "encrypted": true, "kms_key_arn": "k"}),
            &[
                ("BlockDeviceMapping.1.Ebs.VolumeSize", "20"),
                ("BlockDeviceMapping.1.Ebs.VolumeType", "io1"),
                ("BlockDeviceMapping.1.Ebs.Iops", "300"),
                ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
                ("BlockDeviceMapping.1.Ebs.KmsKeyId", "k"),
            ],
        ),
        (
            properties(),
            "root_disk",
            json!({"size": 10240, "iops": 4000, "throughput": 200, "encrypted": true}),
            &[
                ("BlockDeviceMapping.2.Ebs.VolumeSize", "10"),
                ("BlockDeviceMapping.2.Ebs.Iops", "4000"),
                ("BlockDeviceMapping.2.Ebs.Throughput", "200"),
                ("BlockDeviceMapping.2.Ebs.Encrypted", "true"),
            ],
        ),
        (
            with(global("encrypted", json!(true)), "kms_key_arn", json!("k")),
            "x",
            json!(1),
            &[
                ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
                ("BlockDeviceMapping.1.Ebs.KmsKeyId", "k"),
                ("BlockDeviceMapping.2.Ebs.Encrypted", "true"),
                ("BlockDeviceMapping.2.Ebs.KmsKeyId", "k"),
            ],
        ),
        (
            properties(),
            "tags",
            json!({"team": "b", "n": 1}),
            &[("TagSpecification.1.Tag.1.Key", "n"), ("TagSpecification.1.Tag.2.Value", "b")],
        ),
    ] {
        let host = start_with(all, &plain());
        cpi().create_vm(request(with(small(), name, value), vec![manual()])).unwrap();
        let form = form_of(&host, "RunInstances");
        for (field, value) in expected {
            assert_eq!(form.get(*field).map(String::as_str), Some(*value), "{name}: {field} in {form:?}");
        }
    }
}

#[test]
fn disks_of_the_host_become_ephemeral_or_raw_disks() {
    for (kind, types, value, ephemeral, mappings, raw) in [
        ("m5.large", None, json!({"ephemeral_disk": {"use_root_disk": true}}), None, &["/dev/xvda"][..], &[][..]),
        (
            "c3.large",
            Some(("unsupported", 2, 16)),
            json!({"ephemeral_disk": {"use_instance_storage": true}}),
            Some("/dev/sdb"),
            &["/dev/sdb", "/dev/xvda"],
            &[],
        ),
        (
            "c3.large",
            Some(("unsupported", 2, 16)),
            json!({"raw_instance_storage": true}),
            Some("/dev/sdb"),
            &["/dev/sdb", "/dev/xvdba", "/dev/xvdbb", "/dev/xvda"],
            &["/dev/xvdba", "/dev/xvdbb"],
        ),
        (
            "m5d.large",
            Some(("required", 1, 75)),
            json!({"raw_instance_storage": true}),
            Some("/dev/sdb"),
            &["/dev/sdb", "/dev/xvda"],
            &["/dev/nvme0n1"],
        ),
    ] {
        let mut answers = plain();
        if let Some((nvme, count, size)) = types {
            answers.push(("DescribeInstanceTypes", instance_types(&[(kind, 2, 8192, nvme, count, size)])));
        }
        let host = start(&answers);
        let mut vm = with(small(), "instance_type", json!(kind));
        for (key, value) in value.as_object().unwrap() {
            vm[key] = value.clone();
        }
        cpi().create_vm(request(vm, vec![manual()])).unwrap();
        let form = form_of(&host, "RunInstances");
        let devices: Vec<&str> =
            (1..9).map_while(|n| form.get(&format!("BlockDeviceMapping.{n}.DeviceName")).map(String::as_str)).collect();
        assert_eq!(devices, mappings, "{kind} {value}");
        let AgentEvent::Bootstrap(settings) = &host.agent_events()[0] else { panic!() };
        let path = |hint: &wasm_cpi_sdk::DiskHint| match hint {
            wasm_cpi_sdk::DiskHint::Text(path) => path.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(settings.ephemeral_disk.as_ref().map(path).as_deref(), ephemeral, "{kind} {value}");
        assert_eq!(settings.raw_ephemeral_disks.iter().map(path).collect::<Vec<_>>(), raw, "{kind} {value}");
    }
}

#[test]
fn an_ephemeral_disk_as_large_as_the_instance_store_is_warned_about() {
    let host = start(&plain());
    let vm = with(with(small(), "instance_type", json!("i3en.xlarge")), "ephemeral_disk", json!({}));
    cpi().create_vm(request(vm, vec![manual()])).unwrap();
    assert_eq!(form_of(&host, "RunInstances")["BlockDeviceMapping.1.Ebs.VolumeSize"], "2500");
    assert!(host.logs().iter().any(|(_, line)| line.contains("an EBS volume of 2500 GiB")), "{:?}", host.logs());
}

#[test]
fn a_vm_with_everything_needs_at_most_half_of_the_requests_of_bosh_aws_cpi() {
    let mut answers = plain();
    answers.extend([
        ("DescribeSecurityGroups", groups(&[("sg-1", "web", "vpc-1")])),
        ("DescribeAddresses", address("198.51.100.1", "eipalloc-1")),
        ("DescribeTargetGroups", super::answers::target_groups(&[("tg", "arn:tg")])),
        ("RegisterTargets", done()),
        ("AssociateAddress", done()),
        ("CreateRoute", done()),
    ]);
    let host = start(&answers);
    let vm = with(small(), "lb_target_groups", json!(["tg"]));
    let vm = with(vm, "advertised_routes", json!([{"table_id": "rtb-1", "destination": "10.9.0.0/16"}]));
    let vm = with(vm, "security_groups", json!(["web"]));
    cpi().create_vm(request(vm, vec![manual(), vip()])).unwrap();
    let sent = operations(&host);
    assert!(sent.len() <= 21 / 2, "{sent:?}");
    assert_eq!(form_of(&host, "AssociateAddress")["NetworkInterfaceId"], "eni-0");
    assert_eq!(form_of(&host, "RegisterTargets")["Targets.member.1.Id"], "i-1");
    assert_eq!(form_of(&host, "CreateRoute")["NetworkInterfaceId"], "eni-0");
    let launch = form_of(&host, "RunInstances");
    assert_eq!(launch["NetworkInterface.1.SecurityGroupId.1"], "sg-1");
    let tags: Vec<&str> =
        (1..9).map_while(|n| launch.get(&format!("TagSpecification.1.Tag.{n}.Value")).map(String::as_str)).collect();
    assert_eq!(tags, ["rtb-1=10.9.0.0/16", "tg", "a"]);
}

#[test]
fn a_route_that_exists_is_replaced_and_load_balancers_get_the_vm() {
    let mut answers = plain();
    answers.extend([
        ("CreateRoute", super::answers::failure("RouteAlreadyExists")),
        ("ReplaceRoute", done()),
        ("RegisterInstancesWithLoadBalancer", done()),
        ("ModifyNetworkInterfaceAttribute", done()),
    ]);
    let host = start(&answers);
    let vm = with(small(), "elbs", json!(["elb-1"]));
    let vm = with(vm, "advertised_routes", json!([{"table_id": "rtb-1", "destination": "2001:db8::/64"}]));
    let vm = with(vm, "source_dest_check", json!(false));
    cpi().create_vm(request(vm, vec![manual()])).unwrap();
    assert_eq!(form_of(&host, "ReplaceRoute")["DestinationIpv6CidrBlock"], "2001:db8::/64");
    assert_eq!(form_of(&host, "RegisterInstancesWithLoadBalancer")["Instances.member.1.InstanceId"], "i-1");
    let modified = form_of(&host, "ModifyNetworkInterfaceAttribute");
    assert_eq!((&*modified["NetworkInterfaceId"], &*modified["SourceDestCheck.Value"]), ("eni-0", "false"));
}

#[test]
fn several_networks_get_interfaces_before_the_launch() {
    let answers = [
        ("DescribeImages", image()),
        ("CreateNetworkInterface", interface(0)),
        ("CreateNetworkInterface", interface(1)),
        ("RunInstances", launched()),
        ("DescribeInstances", running("i-1", &interfaces(2))),
        ("ModifyNetworkInterfaceAttribute", done()),
    ];
    let host = start(&answers);
    let other = network("other", "manual", Some("10.0.1.5"), json!({"subnet": "subnet-2"}));
    cpi().create_vm(request(small(), vec![manual(), other])).unwrap();
    let sent =
        ["DescribeImages", "CreateNetworkInterface", "CreateNetworkInterface", "RunInstances", "DescribeInstances"];
    assert_eq!(operations(&host)[..5], sent);
    let first = form_of(&host, "CreateNetworkInterface");
    assert_eq!((&*first["SubnetId"], &*first["PrivateIpAddress"]), ("subnet-1", "10.0.0.5"));
    assert_eq!(first["TagSpecification.1.Tag.1.Key"], "bosh-cpi/vm-name");
    let second = host.request_form(2).unwrap();
    assert_ne!(first["ClientToken"], second["ClientToken"]);
    let launch = form_of(&host, "RunInstances");
    assert_eq!(launch["NetworkInterface.2.NetworkInterfaceId"], "eni-1");
    assert!(!launch.contains_key("NetworkInterface.1.SubnetId"));
    let AgentEvent::Bootstrap(settings) = &host.agent_events()[0] else { panic!() };
    let macs: Vec<_> = settings.networks.iter().map(|network| network.mac.clone().unwrap()).collect();
    assert_eq!(macs, ["02:00:00:00:00:00", "02:00:00:00:00:01"]);
    let deleted: Vec<_> = (5..7).map(|index| host.request_form(index).unwrap()).collect();
    assert!(deleted.iter().all(|form| form["Attachment.DeleteOnTermination"] == "true"));
}

#[test]
fn a_dynamic_network_gets_the_address_that_ec2_chose() {
    let host = start(&plain());
    let created = cpi().create_vm(request(small(), vec![dynamic()])).unwrap();
    assert_eq!(created.networks[0].ip.as_deref(), Some("10.0.0.200"));
    assert!(!form_of(&host, "RunInstances").contains_key("NetworkInterface.1.PrivateIpAddress"));
}

#[test]
fn a_light_stemcell_and_a_partition_as_root_device_are_understood() {
    let answers = [
        ("DescribeImages", image_with("/dev/sda1", "/dev/sda")),
        ("RunInstances", launched()),
        ("DescribeInstances", running("i-1", &interfaces(1))),
    ];
    let host = start(&answers);
    let mut request = request(small(), vec![manual()]);
    request.stemcell = "ami-1 light".into();
    cpi().create_vm(request).unwrap();
    assert_eq!(form_of(&host, "DescribeImages")["Filter.1.Value.1"], "ami-1");
    assert_eq!(form_of(&host, "RunInstances")["BlockDeviceMapping.2.DeviceName"], "/dev/sda");
}

#[test]
fn a_name_of_groups_in_several_vpcs_is_that_of_the_subnet() {
    let mut answers = plain();
    answers.extend([
        (
            "DescribeSecurityGroups",
            groups(&[("sg-1", "web", "vpc-1"), ("sg-2", "web", "vpc-2"), ("sg-3", "web-x", "vpc-2")]),
        ),
        ("DescribeSubnets", super::answers::subnet("subnet-1", "vpc-2")),
    ]);
    let host = start(&answers);
    cpi().create_vm(request(with(small(), "security_groups", json!(["web"])), vec![manual()])).unwrap();
    assert_eq!(form_of(&host, "RunInstances")["NetworkInterface.1.SecurityGroupId.1"], "sg-2");
}
