//! Networks that the Director manages.

use serde_json::{Value, json};
use wasm_cpi_sdk::{Cpi, ErrorKind, Json, NetworkSpec};

use super::cloud::Fault;
use super::{cpi, properties, properties_with, start};
use wasm_cpi_sdk::fake::Answer;

fn spec(range: Option<&str>, netmask_bits: Option<u32>, cloud_properties: Value) -> NetworkSpec {
    NetworkSpec {
        kind: "manual".into(),
        cloud_properties: Json::from(cloud_properties),
        range: range.map(str::to_owned),
        gateway: Some("10.9.0.1".into()),
        netmask_bits,
    }
}

#[test]
fn a_network_has_a_subnet_with_addresses_for_neutron() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().fault("POST", "subnets", 0, Fault::After(subnet()));
    let created = cpi().create_network(spec(Some("10.9.0.0/24"), None, json!({"security_groups": ["web"]}))).unwrap();
    let subnet = cloud.borrow().only("subnets");
    assert_eq!(subnet["network_id"], created.network);
    assert_eq!(subnet["allocation_pools"], json!([{"start": "10.9.0.252", "end": "10.9.0.254"}]));
    assert_eq!((created.range.as_str(), created.gateway.as_str()), ("10.9.0.0/24", "10.9.0.1"));
    assert_eq!(created.reserved, ["10.9.0.252", "10.9.0.253", "10.9.0.254"]);
    let properties = created.cloud_properties.value().unwrap();
    assert_eq!(properties, json!({"net_id": created.network, "security_groups": ["web"]}));
    cpi().delete_network(created.network.clone()).unwrap();
    assert_eq!(cpi().delete_network(created.network).unwrap_err().kind, ErrorKind::NetworkNotFound);
}

#[test]
fn dhcp_starts_after_neutron_has_its_addresses_of_a_chosen_range() {
    for dhcp in [true, false] {
        let (_host, cloud) = start(properties_with(json!({"use_dhcp": dhcp})));
        let created = cpi().create_network(spec(None, Some(26), json!({"subnetpool_id": "pool"}))).unwrap();
        assert_eq!((created.range.as_str(), created.gateway.as_str()), ("10.8.0.0/26", "10.8.0.1"));
        assert_eq!(created.reserved, ["10.8.0.60", "10.8.0.61", "10.8.0.62"]);
        let subnet = cloud.borrow().only("subnets");
        assert_eq!(subnet["allocation_pools"], json!([{"start": "10.8.0.60", "end": "10.8.0.62"}]));
        assert_eq!(subnet["enable_dhcp"], dhcp);
    }
}

fn subnet() -> Answer {
    Answer::json(201, json!({"subnet": {"id": "s", "cidr": "10.9.0.0/24", "gateway_ip": "10.9.0.1"}}))
}

#[test]
fn a_network_whose_subnet_fails_is_deleted() {
    for (spec, part) in [
        (spec(None, None, json!({})), "the subnet has no range; set its range"),
        (spec(Some("nonsense"), None, json!({})), "expected one like 10.0.0.0/24"),
        (spec(Some("10.9.0.0/24"), None, json!({})), "overlaps"),
        (spec(Some("10.9.0.0/30"), None, json!({})), "has no room for DHCP"),
    ] {
        let (_host, cloud) = start(properties());
        let overlap = json!({"NeutronError": {"message": "overlaps with another subnet"}});
        cloud.borrow_mut().fault("POST", "subnets", 0, Fault::Before(Answer::json(400, overlap)));
        let error = cpi().create_network(spec).unwrap_err();
        assert!(error.message.contains(part), "{error}");
        assert_eq!(cloud.borrow().left(), Vec::<String>::new());
    }
}

#[test]
fn delete_network_waits_while_the_network_is_busy() {
    let (host, cloud) = start(properties());
    cloud.borrow_mut().put("networks", "n", json!({}));
    for _ in 0..2 {
        cloud.borrow_mut().fault("DELETE", "networks/*", 0, Fault::Before(Answer::text(409, "in use")));
    }
    cpi().delete_network("n".into()).unwrap();
    assert_eq!(host.sleeps(), [1000, 2000]);
}
