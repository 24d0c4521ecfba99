//! The log at the default level: one line for each change in the cloud, and no line for a call that changes nothing.

use serde_json::json;
use wasm_cpi_sdk::Cpi;
use wasm_cpi_sdk::fake::Installed;
use wasm_cpi_sdk::log::Level;

use super::answers::{address, done, image, instance, interface, interfaces, launched, route_table, target_groups};
use super::{cpi, manual, network, operations, request, small, start, vip, with};

fn lines(host: &Installed) -> Vec<String> {
    host.logs().into_iter().filter(|(level, _)| *level == Level::Info).map(|(_, line)| line).collect()
}

#[test]
fn each_change_logs_one_line_at_the_default_level_and_reading_logs_none() {
    let tags = "<tagSet><item><key>bosh-cpi/elbs</key><value>elb-1</value></item><item><key>bosh-cpi/target-groups</key>\
                <value>tg</value></item><item><key>bosh-cpi/routes</key><value>rtb-1=10.9.0.0/16</value></item></tagSet>";
    let alive =
        instance("i-1", "running", &format!("{tags}<networkInterfaceSet>{}</networkInterfaceSet>", interfaces(2)));
    let host = start(&[
        ("DescribeImages", image()),
        ("DescribeAddresses", address("198.51.100.1", "eipalloc-1")),
        ("DescribeTargetGroups", target_groups(&[("tg", "arn:tg")])),
        ("CreateNetworkInterface", interface(0)),
        ("CreateNetworkInterface", interface(1)),
        ("RunInstances", launched()),
        ("DescribeInstances", alive.clone()),
        ("DescribeInstances", alive.clone()),
        ("DescribeInstances", alive.clone()),
        ("DescribeInstances", alive),
        ("DescribeInstances", instance("i-1", "terminated", "")),
        ("ModifyNetworkInterfaceAttribute", done()),
        ("AssociateAddress", done()),
        ("RegisterTargets", done()),
        ("RegisterInstancesWithLoadBalancer", done()),
        ("CreateRoute", done()),
        ("CreateTags", done()),
        ("RebootInstances", done()),
        ("DeregisterTargets", done()),
        ("DeregisterInstancesFromLoadBalancer", done()),
        ("TerminateInstances", done()),
        ("DescribeRouteTables", route_table("rtb-1", "10.9.0.0/16", "i-1")),
        ("DeleteRoute", done()),
    ]);
    let vm = with(small(), "elbs", json!(["elb-1"]));
    let vm = with(vm, "lb_target_groups", json!(["tg"]));
    let vm = with(vm, "source_dest_check", json!(false));
    let vm = with(vm, "auto_assign_public_ip", json!(true));
    let vm = with(vm, "advertised_routes", json!([{"table_id": "rtb-1", "destination": "10.9.0.0/16"}]));
    let other = network("other", "manual", Some("10.0.1.5"), json!({"subnet": "subnet-2"}));
    cpi().create_vm(request(vm, vec![manual(), other, vip()])).unwrap();
    let before = lines(&host).len();
    assert!(cpi().has_vm("i-1".into()).unwrap());
    assert_eq!(lines(&host).len(), before);
    cpi().set_vm_metadata("i-1".into(), vec![("name".into(), "web/0".into())]).unwrap();
    cpi().reboot_vm("i-1".into()).unwrap();
    cpi().delete_vm("i-1".into()).unwrap();
    let changes = operations(&host).iter().filter(|name| !name.starts_with("Describe")).count();
    let lines = lines(&host);
    assert_eq!(lines.len(), changes, "{lines:#?}");
    for said in [
        "created network interface eni-0",
        "launched instance i-1",
        "associated Elastic IP eipalloc-1 with network interface eni-0",
        "added instance i-1 to target group arn:tg",
        "created route 10.9.0.0/16 of rtb-1 to network interface eni-0",
        "tagged i-1",
        "ended instance i-1",
        "deleted route 10.9.0.0/16 of rtb-1",
    ] {
        assert!(lines.iter().any(|line| line == said), "{said}: {lines:#?}");
    }
}
