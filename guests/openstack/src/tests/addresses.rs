//! Networks and addresses of VMs: who has an address, and what is wrong with a network.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::{Cpi, ErrorKind, RetryAdvice};

use super::cloud::{Fault, NETWORK};
use super::{cpi, manual, network, properties, properties_with, request, small, start, vip};

#[test]
fn an_unused_port_with_the_address_is_replaced_and_the_error_names_who_uses_it() {
    for (device, owner, said) in [
        ("", "", None),
        ("vm-9", "compute:nova", Some("address 10.0.0.5: VM `vm-9` has it, with port `old`; delete that")),
        ("dhcp-1", "network:dhcp", Some("address 10.0.0.5: port `old` of device `dhcp-1` (network:dhcp) has it")),
        ("other", "", Some("address 10.0.0.5: port `old` of device `other` has it")),
        ("", "network:reserved", Some("address 10.0.0.5: port `old` has it")),
    ] {
        let (_host, cloud) = start(properties());
        let port = json!({
            "network_id": NETWORK, "fixed_ips": [{"ip_address": "10.0.0.5"}], "status": "DOWN", "device_id": device,
            "device_owner": owner,
        });
        cloud.borrow_mut().put("ports", "old", port);
        let outcome = cpi().create_vm(request(small(), vec![manual()]));
        assert_eq!(outcome.is_ok(), said.is_none(), "{outcome:?}");
        assert_eq!(cloud.borrow().get("ports", "old").is_null(), said.is_none());
        if let (Err(error), Some(said)) = (outcome, said) {
            assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: true }));
            assert!(error.message.contains("IP address already allocated"), "{error}");
            assert!(error.message.contains(said), "{error}");
        }
    }
}

#[test]
fn the_error_for_an_address_without_a_visible_port_differs_from_that_of_a_quota() {
    for (message, hidden) in [("IP address 10.0.0.5 already allocated in subnet s", true), ("Quota exceeded", false)] {
        let (_host, cloud) = start(properties());
        let answer = Answer::json(409, json!({"NeutronError": {"type": "x", "message": message}}));
        cloud.borrow_mut().fault("POST", "ports", 0, Fault::Before(answer));
        let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
        assert_eq!(error.message.contains("a port that this project cannot see has it"), hidden, "{error}");
    }
}

#[test]
fn an_allowed_address_needs_a_port_unless_the_network_or_the_vm_type_says_otherwise() {
    for (on_network, on_vm_type, port, works) in [
        (Value::Null, Value::Null, false, false),
        (Value::Null, Value::Null, true, true),
        (json!(false), Value::Null, false, true),
        (json!(true), Value::Null, false, false),
        (Value::Null, json!(false), false, true),
        (json!(true), json!(false), false, false),
        (json!(false), json!(true), false, true),
    ] {
        let (_host, cloud) = start(properties());
        if port {
            let port = json!({"network_id": "another", "fixed_ips": [{"ip_address": "10.0.0.9"}]});
            cloud.borrow_mut().put("ports", "vrrp", port);
        }
        let network_properties = json!({"net_id": NETWORK, "vrrp_port_check": on_network});
        let networks = vec![network("default", "manual", Some("10.0.0.5"), network_properties)];
        let vm_type =
            json!({"instance_type": "m1.small", "allowed_address_pairs": "10.0.0.9", "vrrp_port_check": on_vm_type});
        match cpi().create_vm(request(vm_type, networks)) {
            Ok(_) => assert!(works, "{on_network} {on_vm_type}"),
            Err(error) => {
                let said = "no port has the address 10.0.0.9; create a port that reserves it, or set vrrp_port_check: \
                            false in the cloud_properties of network `default`";
                assert!(!works && error.message.contains(said), "{on_network} {on_vm_type}: {error}");
                assert_eq!(cloud.borrow().count_requests("POST"), 0);
            }
        }
    }
}

#[test]
fn wrong_networks_are_named() {
    let other = |name: &str| network(name, "manual", Some("10.0.1.5"), json!({"net_id": "net-2"}));
    let dynamic = |name: &str, id: &str| network(name, "dynamic", None, json!({"net_id": id}));
    for (networks, message) in [
        (vec![], "the VM has no manual or dynamic network"),
        (vec![vip()], "the VM has no manual or dynamic network"),
        (
            vec![manual(), vip(), network("more", "vip", Some("1.2.3.4"), json!({}))],
            "networks.more: this VM has two vip",
        ),
        (vec![dynamic("a", "1"), dynamic("b", "2")], "networks.b: this VM has two dynamic"),
        (vec![manual(), network("b", "manual", Some("10.0.0.6"), json!({"net_id": NETWORK}))], "has the same net_id"),
        (vec![network("a", "manual", Some("10.0.0.6"), json!({}))], "networks.a: cloud_properties.net_id"),
        (vec![network("a", "manual", None, json!({"net_id": "x"}))], "networks.a: a manual network needs an ip"),
        (
            vec![network("a", "manual", Some("1.1.1.1"), json!({"net_id": 7}))],
            "networks.a.cloud_properties.net_id: invalid",
        ),
        (vec![network("a", "strange", None, json!({}))], "networks.a: type `strange` is not supported"),
        (vec![manual(), other("b")], "use_dhcp: false and config_drive"),
        (vec![manual(), network("v", "vip", Some("1.2.3.4"), json!({}))], "floating IP 1.2.3.4 is not allocated"),
    ] {
        let (_host, cloud) = start(properties());
        let error = cpi().create_vm(request(small(), networks)).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(cloud.borrow().left(), Vec::<String>::new());
    }
    let (_host, cloud) = start(properties_with(json!({"use_dhcp": false, "config_drive": "cdrom"})));
    cpi().create_vm(request(small(), vec![manual(), other("b")])).unwrap();
    assert_eq!(cloud.borrow().all("ports").len(), 2);
}
