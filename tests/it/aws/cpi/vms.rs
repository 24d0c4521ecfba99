//! Variants of VMs on the simulator, and what happens if one cannot be created.

use super::{Cpi, with};
use serde_json::{Value, json};
use tests::aws::{Gateway, Rule, Service, Simulator, service_error, throttled};
use tests::gateway::Fault;

#[test]
fn a_vm_can_have_several_networks_addresses_of_both_versions_and_prefixes() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::new(&gateway);
    let before = cpi.contents();
    let subnet = cpi.cloud["subnet"].clone();
    let network = |ip: &str, prefix: &str, group: &str| json!({"type": "manual", "ip": ip, "prefix": prefix, "nic_group": group, "cloud_properties": {"subnet": subnet}});
    let networks = json!({
        "v4": network("10.0.0.30", "32", "one"), "v6": network("2001:db8:0:0::30", "128", "one"),
        "prefix": network("10.0.0.64", "28", "one"), "prefix6": network("2001:db8:0:0:1::", "80", "one"), "other": network("10.0.0.31", "32", "two"),
    });
    let (vm, _) = cpi.create_vm(cpi.vm(cpi.small(), networks));
    let data = cpi.user_data(&vm);
    let macs: Vec<&Value> = ["v4", "v6", "prefix", "other"].iter().map(|name| &data["networks"][name]["mac"]).collect();
    assert!(macs[0].is_string() && macs[0] == macs[1] && macs[0] == macs[2] && macs[0] != macs[3], "{macs:?}");
    let own = [("InstanceId.1", vm.as_str())];
    assert!(cpi.listed("DescribeInstances", &own, "ipv4Prefix").contains(&"10.0.0.64/28".to_owned()));
    assert!(cpi.listed("DescribeInstances", &own, "ipv6Prefix").contains(&"2001:db8:0:0:1::/80".to_owned()));
    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.contents(), before);
}

#[test]
fn a_dynamic_network_gets_its_address() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::new(&gateway);
    let networks = json!({"net": {"type": "dynamic", "cloud_properties": {"subnet": cpi.cloud["subnet"]}}});
    let (vm, returned) = cpi.create_vm(cpi.vm(with(cpi.small(), json!({"auto_assign_public_ip": true})), networks));
    let own = [("InstanceId.1", vm.as_str())];
    assert_eq!(returned["net"]["ip"], cpi.listed("DescribeInstances", &own, "privateIpAddress")[0]);
    assert!(cpi.listed("DescribeInstances", &own, "publicIp").len() == 1);
    cpi.ok("delete_vm", json!([vm]));
}

#[test]
fn spot_instances_and_encrypted_disks_are_launched() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::with(&gateway, 2, &json!({"encrypted": true, "kms_key_arn": gateway.cloud()["kms_key_arn"]}));
    for (price, lifecycle) in [("0.5", "spot"), ("0.001", "")] {
        let properties = with(cpi.small(), json!({"spot_bid_price": price, "spot_ondemand_fallback": true}));
        let (vm, _) = cpi.create_vm(cpi.vm(properties, cpi.manual("10.0.0.40")));
        let own = [("InstanceId.1", vm.as_str())];
        assert_eq!(cpi.listed("DescribeInstances", &own, "instanceLifecycle").concat(), lifecycle);
        assert_eq!(cpi.listed("DescribeVolumes", &[], "encrypted"), ["true", "true"]);
        cpi.ok("delete_vm", json!([vm]));
    }
}

#[test]
fn the_smallest_instance_type_is_chosen_with_and_without_asking_ec2() {
    let gateway = Gateway::start(Simulator::new());
    for (describes, cpu, ram, expected) in [
        (true, 2, 1024, "t3.micro"),
        (true, 2, 2048, "m5.large"),
        (true, 4, 8192, "i3en.xlarge"),
        (false, 2, 4000, "c5.large"),
    ] {
        let cpi = Cpi::with(&gateway, 2, &json!({"enable_describe_instance_types": describes}));
        let size =
            cpi.ok("calculate_vm_cloud_properties", json!([{"ram": ram, "cpu": cpu, "ephemeral_disk_size": 5000}]));
        assert_eq!(
            size,
            json!({"instance_type": expected, "ephemeral_disk": {"size": 5000}}),
            "{describes} {cpu} {ram}"
        );
    }
}

#[test]
fn nothing_is_left_whatever_fails_and_a_lost_answer_creates_nothing_twice() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::new(&gateway);
    let before = cpi.contents();
    let capacity = || service_error(Service::Ec2, 500, "InsufficientInstanceCapacity", "There is no capacity.");
    let refused = || service_error(Service::Ec2, 403, "UnauthorizedOperation", "You are not authorized.");
    for (operation, fault, retry) in [
        ("RunInstances", capacity(), Some(true)),
        ("RunInstances", refused(), Some(false)),
        ("RunInstances", throttled(Service::Ec2), None),
        ("RunInstances", Fault::ResetAfter, None),
        ("DescribeInstances", throttled(Service::Ec2), None),
        ("AssociateAddress", refused(), Some(false)),
        ("CreateRoute", refused(), Some(false)),
    ] {
        gateway.clear_faults();
        gateway.inject(Rule::operation(Service::Ec2, operation).times(1), fault);
        let mut networks = cpi.manual("10.0.0.50");
        networks["public"] = json!({"type": "vip", "ip": cpi.cloud["elastic_ip"], "cloud_properties": {}});
        let properties = with(
            cpi.small(),
            json!({
                "elbs": [cpi.cloud["load_balancer"]],
                "advertised_routes": [{"table_id": cpi.cloud["route_table"], "destination": "10.9.0.0/16"}],
            }),
        );
        let arguments = cpi.vm(properties, networks);
        match retry {
            None => {
                let (vm, _) = cpi.create_vm(arguments);
                assert_eq!(
                    cpi.listed("DescribeInstances", &[], "instanceId").len(),
                    cpi.listed("DescribeInstances", &[], "reservationId").len()
                );
                cpi.ok("delete_vm", json!([vm]));
            }
            Some(retry) => {
                let response = cpi.run("create_vm", arguments);
                response.fails("Bosh::Clouds::VMCreationFailed", &[operation]);
                assert_eq!(response.json["error"]["ok_to_retry"], retry, "{operation}: {}", response.json);
            }
        }
        assert_eq!(cpi.contents(), before, "{operation}");
    }
}

#[test]
fn a_launch_that_fails_after_it_was_accepted_is_a_failure_that_can_pass() {
    let simulator = Simulator::new();
    simulator.fail_launches(1);
    let gateway = Gateway::start(simulator);
    let cpi = Cpi::new(&gateway);
    let response = cpi.run("create_vm", cpi.vm(cpi.small(), cpi.manual("10.0.0.60")));
    response.fails("Bosh::Clouds::VMCreationFailed", &["Server.InternalError"]);
    assert_eq!(response.json["error"]["ok_to_retry"], true);
}
