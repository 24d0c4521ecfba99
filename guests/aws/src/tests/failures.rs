//! What happens when a request of `create_vm` or `delete_vm` fails: what is undone, and what BOSH sees.

use serde_json::{Value, json};
use wasm_cpi_sdk::bindings::bosh::cpi::http::ErrorKind as Transport;
use wasm_cpi_sdk::fake::{AgentEvent, Answer, Fake, Installed};
use wasm_cpi_sdk::{Cpi, ErrorKind, Json, Network, RetryAdvice};

use super::answers::{
    done, failure, failure_with, groups, image, instance, interface, interfaces, launched, route_table, running,
};
use super::{cpi, form_of, manual, network, operations, properties, request, small, start, vip, with};

fn advice(kind: &ErrorKind) -> Option<bool> {
    match kind {
        ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry }) => Some(*ok_to_retry),
        _ => None,
    }
}

#[test]
fn a_launch_that_ec2_refuses_leaves_nothing_and_says_whether_to_retry() {
    for (status, code, retry, hint) in [
        (400, "InsufficientInstanceCapacity", true, ""),
        (500, "InsufficientInstanceCapacity", true, ""),
        (400, "InsufficientHostCapacity", true, ""),
        (400, "InvalidParameterValue", false, ""),
        (400, "Unsupported", false, ""),
        (400, "InstanceLimitExceeded", false, "Service Quotas"),
        (400, "TagLimitExceeded", false, "at most 50 tags"),
        (403, "UnauthorizedOperation", false, "ec2:RunInstances"),
        (401, "AuthFailure", false, "does not accept the credentials"),
    ] {
        let message = "A message of EC2.";
        let host = start(&[("DescribeImages", image()), ("RunInstances", failure_with(status, code, message))]);
        let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
        assert_eq!(advice(&error.kind), Some(retry), "{error}");
        for part in [code, "A message of EC2", "request ID req-1", hint] {
            assert!(error.message.contains(part), "{part}: {error}");
        }
        assert_eq!(operations(&host), ["DescribeImages", "RunInstances"], "{code}");
    }
}

#[test]
fn spot_instances_fall_back_to_demand_if_the_operator_says_so() {
    let answers = [
        ("DescribeImages", image()),
        ("RunInstances", failure("SpotMaxPriceTooLow")),
        ("RunInstances", launched()),
        ("DescribeInstances", running("i-1", &interfaces(1))),
    ];
    let vm = with(small(), "spot_bid_price", json!("0.001"));
    let host = start(&answers);
    cpi().create_vm(request(with(vm.clone(), "spot_ondemand_fallback", json!(true)), vec![manual()])).unwrap();
    let (spot, demand) = (host.request_form(1).unwrap(), host.request_form(2).unwrap());
    assert!(
        spot.contains_key("InstanceMarketOptions.MarketType")
            && !demand.contains_key("InstanceMarketOptions.MarketType")
    );
    assert_ne!(spot["ClientToken"], demand["ClientToken"]);

    let _host = start(&answers);
    let error = cpi().create_vm(request(vm, vec![manual()])).unwrap_err();
    assert_eq!(advice(&error.kind), Some(true));
    assert!(error.message.contains("raise spot_bid_price"), "{error}");
}

#[test]
fn a_launch_waits_for_what_passes_with_the_same_token() {
    for code in ["InvalidIPAddress.InUse", "InvalidNetworkInterfaceID.NotFound", "IncorrectState"] {
        let host = start(&[
            ("DescribeImages", image()),
            ("RunInstances", failure(code)),
            ("RunInstances", launched()),
            ("DescribeInstances", running("i-1", &interfaces(1))),
        ]);
        cpi().create_vm(request(small(), vec![manual()])).unwrap();
        assert_eq!(host.request_form(1).unwrap(), host.request_form(2).unwrap(), "{code}");
    }
}

/// Returns the SDK's fake with a launch whose answer gets lost every time, and EC2's answers to others.
fn with_lost_launch(others: &[(&str, String)]) -> Installed {
    let fake = Fake::new().properties(properties());
    let lost = Answer::fail(Transport::Timeout, "no answer in time", true);
    let fake = others.iter().fold(fake, |fake, (name, body)| fake.on_operation(name, super::answers::answer(body)));
    fake.on_operation("RunInstances", lost).install()
}

#[test]
fn an_instance_whose_launch_had_no_answer_is_found_by_its_token_and_ended() {
    let host = with_lost_launch(&[
        ("DescribeImages", image()),
        ("DescribeInstances", running("i-7", &interfaces(1))),
        ("DescribeInstances", instance("i-7", "terminated", "")),
        ("TerminateInstances", done()),
    ]);
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert_eq!(advice(&error.kind), Some(true), "{error}");
    let sent = operations(&host);
    let launches: Vec<_> = (0..sent.len()).filter(|index| sent[*index] == "RunInstances").collect();
    assert!(launches.len() > 2);
    let tokens: Vec<_> =
        launches.iter().map(|index| host.request_form(*index).unwrap()["ClientToken"].clone()).collect();
    assert!(tokens.iter().all(|token| *token == tokens[0]));
    let lookup = host.request_form(launches.last().unwrap() + 1).unwrap();
    assert_eq!((&*lookup["Filter.1.Name"], &*lookup["Filter.1.Value.1"]), ("client-token", tokens[0].as_str()));
    assert_eq!(sent[sent.len() - 2..], ["TerminateInstances", "DescribeInstances"]);
}

#[test]
fn an_instance_that_ends_at_once_is_reported_with_its_reason() {
    for (code, retry, hint) in [
        ("Server.InternalError", true, ""),
        ("Server.InsufficientInstanceCapacity", true, ""),
        ("Client.InternalError", false, "KMS"),
        ("Client.VolumeLimitExceeded", false, ""),
    ] {
        let reason = format!("<stateReason><code>{code}</code><message>Why.</message></stateReason>");
        let host = start(&[
            ("DescribeImages", image()),
            ("RunInstances", launched()),
            ("DescribeInstances", instance("i-1", "pending", "")),
            ("DescribeInstances", instance("i-1", "terminated", &reason)),
            ("TerminateInstances", done()),
        ]);
        let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
        assert_eq!(advice(&error.kind), Some(retry), "{error}");
        assert!(error.message.contains(code) && error.message.contains(hint), "{error}");
        assert!(operations(&host).contains(&"TerminateInstances".to_owned()));
    }
}

#[test]
fn a_failure_after_the_launch_ends_the_instance_and_removes_what_points_to_it() {
    let host = start(&[
        ("DescribeImages", image()),
        ("DescribeAddresses", super::answers::address("198.51.100.1", "eipalloc-1")),
        ("RunInstances", launched()),
        ("DescribeInstances", running("i-1", &interfaces(1))),
        ("DescribeInstances", instance("i-1", "terminated", "")),
        ("RegisterInstancesWithLoadBalancer", done()),
        ("AssociateAddress", failure("AuthFailure")),
        ("DeregisterInstancesFromLoadBalancer", done()),
        ("TerminateInstances", done()),
        ("DescribeRouteTables", route_table("rtb-1", "10.9.0.0/16", "i-1")),
        ("DeleteRoute", done()),
    ]);
    let vm = with(small(), "elbs", json!(["elb-1"]));
    let vm = with(vm, "advertised_routes", json!([{"table_id": "rtb-1", "destination": "10.9.0.0/16"}]));
    let error = cpi().create_vm(request(vm, vec![manual(), vip()])).unwrap_err();
    assert_eq!(advice(&error.kind), Some(false), "{error}");
    assert!(!error.message.contains("not certain"), "{error}");
    let sent = operations(&host);
    let undone = [
        "DeregisterInstancesFromLoadBalancer",
        "DescribeRouteTables",
        "DeleteRoute",
        "TerminateInstances",
        "DescribeInstances",
    ];
    assert_eq!(sent[sent.len() - 5..], undone, "{sent:?}");
}

#[test]
fn interfaces_are_deleted_if_a_later_one_or_the_launch_fails() {
    for (second, launch, deleted) in [
        (failure("InsufficientFreeAddressesInSubnet"), launched(), 1),
        (interface(1), failure("InvalidParameterValue"), 2),
    ] {
        let host = start(&[
            ("DescribeImages", image()),
            ("CreateNetworkInterface", interface(0)),
            ("CreateNetworkInterface", second),
            ("RunInstances", launch),
            ("DeleteNetworkInterface", failure("InvalidParameterValue")),
            ("DeleteNetworkInterface", done()),
        ]);
        let other = network("other", "manual", Some("10.0.1.5"), json!({"subnet": "subnet-2"}));
        let error = cpi().create_vm(request(small(), vec![manual(), other])).unwrap_err();
        assert!(!error.message.contains("not certain"), "{error}");
        let sent = operations(&host);
        // The first request to delete is refused while the interface is in use.
        assert_eq!(sent.iter().filter(|name| *name == "DeleteNetworkInterface").count(), deleted + 1, "{sent:?}");
    }
}

#[test]
fn wrong_cloud_properties_and_networks_are_refused_before_anything_is_sent() {
    let cases: &[(&str, Value, &str)] = &[
        ("instance_type", json!(null), "cloud_properties.instance_type: is missing"),
        ("availability_zone", json!(null), "cloud_properties.availability_zone: is missing"),
        ("tenancy", json!("shared"), "cloud_properties.tenancy: `shared` is not supported"),
        ("spot_bid_price", json!("cheap"), "cloud_properties.spot_bid_price: is not a number"),
        ("ephemeral_disk", json!({"use_instance_storage": true, "size": 1}), "cannot be combined with size"),
        ("metadata_options", json!({"http_token": "x"}), "metadata_options.http_token: is not an option"),
        (
            "root_disk",
            json!({"kms_key_arn": "k"}),
            "cloud_properties.root_disk.kms_key_arn is set, but encryption is off",
        ),
        ("ephemeral_disk", json!({"kms_key_arn": "k"}), "ephemeral_disk.kms_key_arn is set, but encryption is off"),
    ];
    for (name, value, part) in cases {
        let host = start(&[("DescribeImages", image())]);
        let error = cpi().create_vm(request(with(small(), name, value.clone()), vec![manual()])).unwrap_err();
        assert!(error.message.contains(part), "{name}: {error}");
        assert!(!operations(&host).contains(&"RunInstances".to_owned()));
    }
    let subnet = || json!({"subnet": "subnet-1"});
    let grouped = |network: Network, group: Value| Network {
        extra: Json::raw(json!({"nic_group": group}).to_string()),
        ..network
    };
    for (networks, part) in [
        (vec![], "no manual or dynamic network"),
        (vec![vip()], "no manual or dynamic network"),
        (vec![network("a", "manual", None, subnet())], "networks.a: a manual network needs an ip"),
        (vec![network("a", "manual", Some("10.0.0.5"), json!({}))], "networks.a: cloud_properties.subnet: is missing"),
        (vec![network("a", "odd", None, subnet())], "networks.a: type `odd` is not supported"),
        (vec![manual(), vip(), vip()], "two vip networks"),
        (
            vec![manual(), grouped(vip(), json!("two"))],
            "networks.public: no manual or dynamic network has its nic_group `two`",
        ),
        (vec![grouped(manual(), json!(true))], "networks.default: nic_group: expected a text or a number, found true"),
        (
            vec![network("a", "dynamic", None, subnet()), network("b", "dynamic", None, subnet())],
            "two dynamic networks",
        ),
    ] {
        let host = start(&[]);
        let error = cpi().create_vm(request(small(), networks)).unwrap_err();
        assert!(error.message.contains(part), "{error}");
        assert!(host.requests().is_empty());
    }
}

#[test]
fn a_vm_in_another_zone_than_its_disk_is_refused_before_it_is_created() {
    let volume = |zone: &str| {
        format!(
            "<R><volumeSet><item><volumeId>vol-1</volumeId><size>1</size><status>available</status>\
             <availabilityZone>{zone}</availabilityZone></item></volumeSet></R>"
        )
    };
    for (found, is_created) in
        [(volume("us-east-1a"), true), (volume("us-east-1b"), false), (failure("InvalidVolume.NotFound"), true)]
    {
        let host = start(&[
            ("DescribeImages", image()),
            ("DescribeVolumes", found),
            ("RunInstances", launched()),
            ("DescribeInstances", running("i-1", &interfaces(1))),
        ]);
        let mut request = request(small(), vec![manual()]);
        request.disks = vec!["vol-1".into()];
        let created = cpi().create_vm(request);
        assert_eq!(created.is_ok(), is_created);
        assert_eq!(operations(&host).contains(&"RunInstances".to_owned()), is_created);
        if let Err(error) = created {
            assert!(error.message.contains("disk `vol-1` is in `us-east-1b`"), "{error}");
            assert_eq!(advice(&error.kind), Some(false));
        }
    }
}

#[test]
fn deleting_a_vm_removes_it_from_what_points_to_it_and_waits_until_it_has_ended() {
    let tag = |key: &str, value: &str| format!("<item><key>{key}</key><value>{value}</value></item>");
    let tags = [
        tag("bosh-cpi/elbs", "elb-1"),
        tag("bosh-cpi/target-groups", "tg"),
        tag("bosh-cpi/routes", "rtb-1=10.9.0.0/16"),
    ];
    let host = start(&[
        ("DescribeInstances", instance("i-1", "running", &format!("<tagSet>{}</tagSet>", tags.concat()))),
        ("DescribeTargetGroups", super::answers::target_groups(&[("tg", "arn:tg")])),
        ("DeregisterInstancesFromLoadBalancer", done()),
        ("DeregisterTargets", done()),
        ("TerminateInstances", done()),
        ("DescribeRouteTables", route_table("rtb-1", "10.9.0.0/16", "i-1")),
        ("DeleteRoute", failure_with(403, "UnauthorizedOperation", "No.")),
        ("DescribeInstances", instance("i-1", "shutting-down", "")),
        ("DescribeInstances", failure("InvalidInstanceID.NotFound")),
    ]);
    cpi().delete_vm("i-1".into()).unwrap();
    let sent = operations(&host);
    let expected = [
        "DescribeInstances",
        "DescribeTargetGroups",
        "DeregisterInstancesFromLoadBalancer",
        "DeregisterTargets",
        "DescribeRouteTables",
        "DeleteRoute",
        "TerminateInstances",
        "DescribeInstances",
        "DescribeInstances",
    ];
    assert_eq!(sent, expected);
    // An IAM policy for bosh-aws-cpi does not have ec2:DeleteRoute.
    assert!(
        host.logs().iter().any(|(_, line)| line.contains("ec2:DeleteRoute") || line.contains("DeleteRoute failed"))
    );
}

#[test]
fn what_was_deleted_before_does_not_hide_other_target_groups_and_route_tables() {
    let tag = |key: &str, value: &str| format!("<item><key>{key}</key><value>{value}</value></item>");
    let tags =
        [tag("bosh-cpi/target-groups", "gone tg"), tag("bosh-cpi/routes", "rtb-0=10.8.0.0/16 rtb-1=10.9.0.0/16")];
    let missing = failure("TargetGroupNotFound");
    let host = start(&[
        ("DescribeInstances", instance("i-1", "running", &format!("<tagSet>{}</tagSet>", tags.concat()))),
        ("DescribeTargetGroups", missing.clone()),
        ("DescribeTargetGroups", missing),
        ("DescribeTargetGroups", super::answers::target_groups(&[("tg", "arn:tg")])),
        ("DeregisterTargets", done()),
        ("DescribeRouteTables", route_table("rtb-1", "10.9.0.0/16", "i-1")),
        ("DeleteRoute", done()),
        ("TerminateInstances", done()),
        ("DescribeInstances", instance("i-1", "terminated", "")),
    ]);
    cpi().delete_vm("i-1".into()).unwrap();
    assert_eq!(form_of(&host, "DeregisterTargets")["TargetGroupArn"], "arn:tg");
    assert_eq!(form_of(&host, "DeleteRoute")["RouteTableId"], "rtb-1");
    // With a list of IDs, EC2 answers with an error if one does not exist.
    let lookup = form_of(&host, "DescribeRouteTables");
    assert_eq!((&*lookup["Filter.1.Name"], &*lookup["Filter.1.Value.2"]), ("route-table-id", "rtb-1"));
    assert!(!lookup.contains_key("RouteTableId.1"));
}

#[test]
fn deleting_a_vm_that_does_not_exist_removes_its_entry_in_the_registry() {
    for found in ["<R/>".to_owned(), failure("InvalidInstanceID.NotFound")] {
        let host = start(&[("DescribeInstances", found)]);
        assert_eq!(cpi().delete_vm("i-1".into()).unwrap_err().kind, ErrorKind::VmNotFound);
        assert_eq!(host.agent_events(), [AgentEvent::Deleted { registry_key: "i-1".into() }]);
    }
}

#[test]
fn missing_rights_and_groups_and_subnets_that_do_not_exist_are_not_retried() {
    let denied = failure_with(403, "UnauthorizedOperation", "No.");
    let two = groups(&[("sg-1", "web", "vpc-1"), ("sg-2", "web", "vpc-2")]);
    let subnets = || ("DescribeSubnets", "<R/>".to_owned());
    for (part, answers) in [
        ("DescribeInstances", vec![("DescribeInstances", denied.clone()), ("TerminateInstances", denied.clone())]),
        ("security group `web` does not exist", vec![("DescribeSecurityGroups", groups(&[])), subnets()]),
        ("subnet `subnet-1` does not exist", vec![("DescribeSecurityGroups", two.clone()), subnets()]),
        ("DescribeSubnets", vec![("DescribeSecurityGroups", two), ("DescribeSubnets", denied)]),
    ] {
        let web = ("DescribeSecurityGroups", groups(&[("sg-1", "web", "vpc-1")]));
        let common = [("DescribeImages", image()), ("RunInstances", launched())];
        let own = if answers[0].0 == web.0 { vec![] } else { vec![web] };
        let _host = start(&[&common[..], &own, &answers].concat());
        let vm = with(small(), "security_groups", json!(["web"]));
        let error = cpi().create_vm(request(vm, vec![manual()])).unwrap_err();
        assert!(error.message.contains(part), "{part}: {error}");
        assert_eq!(advice(&error.kind), Some(false), "{part}: {error}");
    }
}

#[test]
fn a_route_that_leads_to_another_vm_by_now_stays() {
    let tags = "<tagSet><item><key>bosh-cpi/routes</key><value>rtb-1=10.9.0.0/16</value></item></tagSet>";
    let host = start(&[
        ("DescribeInstances", instance("i-1", "running", tags)),
        ("TerminateInstances", done()),
        ("DescribeRouteTables", route_table("rtb-1", "10.9.0.0/16", "i-2")),
        ("DescribeInstances", instance("i-1", "terminated", "")),
    ]);
    cpi().delete_vm("i-1".into()).unwrap();
    assert!(!operations(&host).contains(&"DeleteRoute".to_owned()));
}

#[test]
fn a_vm_that_does_not_exist_is_reported_as_such() {
    for method in ["delete_vm", "reboot_vm", "set_vm_metadata"] {
        let missing = failure("InvalidInstanceID.NotFound");
        let _host = start(&[("DescribeInstances", missing.clone()), ("RebootInstances", missing)]);
        let outcome = match method {
            "delete_vm" => cpi().delete_vm("i-1".into()),
            "reboot_vm" => cpi().reboot_vm("i-1".into()),
            _ => cpi().set_vm_metadata("i-1".into(), vec![("a".into(), "b".into())]),
        };
        assert_eq!(outcome.unwrap_err().kind, ErrorKind::VmNotFound, "{method}");
    }
}

#[test]
fn a_fast_deletion_names_the_instance_and_does_not_wait() {
    let fake = Fake::new().properties(with(properties(), "fast_path_delete", json!(true)));
    let host = fake
        .on_operation("DescribeInstances", Answer::xml(200, &instance("i-1", "running", "")))
        .on_operation("TerminateInstances", Answer::xml(200, &done()))
        .on_operation("CreateTags", Answer::xml(200, &done()))
        .install();
    cpi().delete_vm("i-1".into()).unwrap();
    assert_eq!(operations(&host), ["DescribeInstances", "TerminateInstances", "CreateTags"]);
    assert_eq!(form_of(&host, "CreateTags")["Tag.1.Value"], "to be deleted");
}
