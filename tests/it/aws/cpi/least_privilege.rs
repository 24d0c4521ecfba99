//! The operations that calls really send, compared with the IAM policy that operators get.

use super::{Cpi, with};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::aws::{Gateway, Rule, Service, Simulator, service_error};
use tests::dist;

/// Operations that only unusual clouds and lost answers lead to. The native tests of the guest send them.
const UNUSUAL: [&str; 2] = ["DescribeNetworkInterfaces", "DescribeSubnets"];

#[test]
fn the_iam_policy_has_exactly_the_operations_that_calls_send() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::with(&gateway, 3, &json!({}));
    use_everything(&cpi);
    let mut sent: BTreeSet<String> = cpi.operations().into_iter().collect();
    // The test itself asks for these.
    sent.retain(|name| !["DescribeInstanceAttribute", "DescribeLoadBalancers"].contains(&name.as_str()));
    let file = dist::root().join("guests/aws/iam-policy.json");
    let policy: Value = serde_json::from_slice(&std::fs::read(file).unwrap_or_default()).unwrap_or_default();
    let actions = policy["Statement"].as_array().into_iter().flatten();
    let actions = actions.flat_map(|one| one["Action"].as_array().into_iter().flatten()).filter_map(Value::as_str);
    let of_apis = actions.filter_map(|action| {
        let (service, name) = action.split_once(':')?;
        ["ec2", "elasticloadbalancing", "ebs"].contains(&service).then(|| name.to_owned())
    });
    let mut allowed: BTreeSet<String> = of_apis.collect();
    allowed.retain(|name| !UNUSUAL.contains(&name.as_str()));
    assert_eq!(sent, allowed);
}

/// Makes calls that together need every right.
fn use_everything(cpi: &Cpi<'_>) {
    let heavy = json!({"name": "s", "version": "1", "architecture": "x86_64"});
    let heavy = cpi.ok("create_stemcell", json!([cpi.image(), heavy, {"tags": {"team": "us"}}]));
    let copy = json!({"name": "s", "version": "1", "ami": {"us-east-1": cpi.cloud["image"]}, "encrypted": true});
    let copy = cpi.ok("create_stemcell", json!([cpi.image(), copy, {"tags": {}}]));
    cpi.ok("calculate_vm_cloud_properties", json!([{"ram": 1024, "cpu": 1, "ephemeral_disk_size": 5000}]));
    let properties = with(
        cpi.small(),
        json!({
            "security_groups": [cpi.cloud["security_group_name"]], "elbs": [cpi.cloud["load_balancer"]],
            "lb_target_groups": [cpi.cloud["target_group"]], "source_dest_check": false,
            "advertised_routes": [{"table_id": cpi.cloud["route_table"], "destination": "10.9.0.0/16"}],
        }),
    );
    let mut networks = cpi.manual("10.0.0.21");
    networks["public"] = json!({"type": "vip", "ip": cpi.cloud["elastic_ip"], "cloud_properties": {}});
    let (vm, _) = cpi.create_vm(json!(["agent-1", heavy, properties, networks, [], {}]));
    let mut several = cpi.manual("10.0.0.22");
    several["other"] =
        json!({"type": "manual", "ip": "10.0.0.23", "cloud_properties": {"subnet": cpi.cloud["subnet"]}});
    let prefix = |ip: &str, length: &str| json!({"type": "manual", "ip": ip, "prefix": length, "nic_group": "other", "cloud_properties": {"subnet": cpi.cloud["subnet"]}});
    several["prefix"] = prefix("10.0.0.64", "28");
    several["prefix6"] = prefix("2001:db8:0:0:1::", "80");
    // The route exists, and leads to this VM from now on.
    let (other, _) = cpi.create_vm(json!(["agent-2", cpi.stemcell(), properties, several, [], {}]));
    if let Some(gateway) = cpi.gateway {
        let refused = service_error(Service::Ec2, 400, "InvalidParameterValue", "No.");
        gateway.inject(Rule::operation(Service::Ec2, "RunInstances").times(1), refused);
    }
    let mut failing = cpi.manual("10.0.0.24");
    failing["other"] =
        json!({"type": "manual", "ip": "10.0.0.25", "cloud_properties": {"subnet": cpi.cloud["subnet"]}});
    cpi.run("create_vm", json!(["agent-3", heavy, cpi.small(), failing, [], {}]))
        .fails("Bosh::Clouds::VMCreationFailed", &["InvalidParameterValue"]);
    cpi.ok("set_vm_metadata", json!([vm, {"deployment": "d"}]));
    cpi.ok("reboot_vm", json!([vm]));
    let disk = cpi.ok("create_disk", json!([1024, {}, vm]));
    let elsewhere = cpi.ok("create_disk", json!([1024, {}, null]));
    cpi.ok("attach_disk", json!([vm, disk]));
    cpi.ok("resize_disk", json!([disk, 2048]));
    let snapshot = cpi.ok("snapshot_disk", json!([disk, {"deployment": "d"}]));
    cpi.ok("delete_snapshot", json!([snapshot]));
    cpi.ok("detach_disk", json!([vm, disk]));
    for vm in [vm, other] {
        cpi.ok("delete_vm", json!([vm]));
    }
    for disk in [disk, elsewhere] {
        cpi.ok("delete_disk", json!([disk]));
    }
    for stemcell in [heavy, copy] {
        cpi.ok("delete_stemcell", json!([stemcell]));
    }
}
