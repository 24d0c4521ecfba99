//! Delegated prefixes of a `nic_group`.

use wasm_cpi_sdk::{Cpi, Json, Network};

use serde_json::json;

use super::answers::{done, failure, image, interface, interfaces, launched, running};
use super::{cpi, form_of, network, operations, request, small, start};

/// The networks of one group: an address and a prefix of each version of IP.
fn group() -> Vec<Network> {
    let addresses = [("10.0.0.5", "32"), ("2001:db8::5", "128"), ("10.0.0.16", "28"), ("2001:db8:0:0:1::", "80")];
    let networks = addresses.iter().enumerate().map(|(number, (ip, prefix))| Network {
        extra: Json::raw(r#"{"nic_group": "1"}"#),
        prefix: Some((*prefix).to_owned()),
        ..network(&format!("network-{number}"), "manual", Some(ip), json!({"subnet": "subnet-1"}))
    });
    networks.collect()
}

fn answers(further: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let mut answers = vec![
        ("DescribeImages", image()),
        ("CreateNetworkInterface", interface(0)),
        ("AssignIpv6Addresses", done()),
        ("RunInstances", launched()),
        ("DescribeInstances", running("i-1", &interfaces(1))),
        ("ModifyNetworkInterfaceAttribute", done()),
    ];
    answers.extend_from_slice(further);
    answers
}

#[test]
fn networks_of_a_nic_group_share_an_interface_that_gets_its_prefixes_before_the_launch() {
    let host = start(&answers(&[("AssignPrivateIpAddresses", done())]));
    cpi().create_vm(request(small(), group())).unwrap();
    let created = form_of(&host, "CreateNetworkInterface");
    assert_eq!((&*created["PrivateIpAddress"], &*created["Ipv6Addresses.1.Ipv6Address"]), ("10.0.0.5", "2001:db8::5"));
    assert!(!created.keys().any(|name| name.contains("Prefix")), "{created:?}");
    let expected = ["CreateNetworkInterface", "AssignPrivateIpAddresses", "AssignIpv6Addresses", "RunInstances"];
    assert_eq!(operations(&host)[1..5], expected);
    for (operation, field, prefix) in [
        ("AssignPrivateIpAddresses", "Ipv4Prefix.1", "10.0.0.16/28"),
        ("AssignIpv6Addresses", "Ipv6Prefix.1", "2001:db8:0:0:1::/80"),
    ] {
        let assigned = form_of(&host, operation);
        assert_eq!((&*assigned["NetworkInterfaceId"], &*assigned[field]), ("eni-0", prefix));
    }
}

/// Returns the answer of `DescribeNetworkInterfaces` with these IPv4 prefixes.
fn with_prefixes(prefixes: &str) -> String {
    format!(
        "<R><networkInterfaceSet><item><networkInterfaceId>eni-0</networkInterfaceId><ipv4PrefixSet>{prefixes}\
         </ipv4PrefixSet></item></networkInterfaceSet></R>"
    )
}

#[test]
fn a_prefix_of_a_vm_that_was_just_deleted_is_waited_for_and_an_own_one_is_not() {
    let in_use = || ("AssignPrivateIpAddresses", failure("InvalidIPAddress.InUse"));
    let own = with_prefixes("<item><ipv4Prefix>10.0.0.16/28</ipv4Prefix></item>");
    for (found, further, expected) in
        [(with_prefixes(""), vec![("AssignPrivateIpAddresses", done())], 2), (own, vec![], 1)]
    {
        let further = [vec![in_use(), ("DescribeNetworkInterfaces", found)], further].concat();
        let host = start(&answers(&further));
        cpi().create_vm(request(small(), group())).unwrap();
        let sent = operations(&host);
        assert_eq!(sent.iter().filter(|name| *name == "AssignPrivateIpAddresses").count(), expected, "{sent:?}");
    }
}

#[test]
fn a_prefix_that_ec2_refuses_leaves_no_interface() {
    let host = start(&answers(&[
        ("AssignPrivateIpAddresses", failure("InvalidParameterValue")),
        ("DescribeNetworkInterfaces", with_prefixes("")),
        ("DeleteNetworkInterface", done()),
    ]));
    let error = cpi().create_vm(request(small(), group())).unwrap_err();
    assert!(error.message.contains("InvalidParameterValue") && !error.message.contains("not certain"), "{error}");
    assert_eq!(form_of(&host, "DeleteNetworkInterface")["NetworkInterfaceId"], "eni-0");
    assert!(!operations(&host).contains(&"RunInstances".to_owned()));
}
