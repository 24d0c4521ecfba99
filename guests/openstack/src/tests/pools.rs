//! Members of pools of load balancers.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::http::TransportError;
use wasm_cpi_sdk::{Cpi, Error, ErrorKind};

use super::cloud::{Fault, Shared};
use super::failures::{fail, failures, requests};
use super::{cpi, manual, properties, properties_with_pools, request, start};

fn pooled() -> Value {
    let pools = json!([{"name": "web", "port": 80}, {"name": "api", "port": 8080, "monitoring_port": 8081}]);
    json!({"instance_type": "m1.small", "loadbalancer_pools": pools})
}

fn with_pools(cloud: &Shared) {
    for (id, name) in [("pool-1", "web"), ("pool-2", "api"), ("pool-3", "twice"), ("pool-4", "twice")] {
        cloud.borrow_mut().put("pools", id, json!({"name": name}));
    }
}

fn create() -> Result<String, Error> {
    cpi().create_vm(request(pooled(), vec![manual()])).map(|created| created.vm)
}

#[test]
fn a_vm_is_a_member_of_its_pools_until_it_is_deleted() {
    let (_host, cloud) = start(properties_with_pools());
    with_pools(&cloud);
    let vm = create().unwrap();
    let members = cloud.borrow().all("members");
    let attributes = |member: &Value| {
        ["address", "protocol_port", "monitor_port", "provisioning_status"].map(|key| member[key].clone())
    };
    assert_eq!(attributes(&members[0]), [json!("10.0.0.5"), json!(80), Value::Null, json!("ACTIVE")]);
    assert_eq!(attributes(&members[1]), [json!("10.0.0.5"), json!(8080), json!(8081), json!("ACTIVE")]);
    let metadata = cloud.borrow().only("servers")["metadata"].clone();
    for (key, pool, member) in [("lbaas_pool_1", "pool-1", &members[0]), ("lbaas_pool_2", "pool-2", &members[1])] {
        assert_eq!(metadata[key], format!("{pool}/{}", member["id"].as_str().unwrap()));
    }
    cloud.borrow_mut().busy = true;
    cpi().delete_vm(vm).unwrap();
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn create_vm_waits_for_a_busy_load_balancer_and_uses_an_existing_member() {
    let (_host, cloud) = start(properties_with_pools());
    with_pools(&cloud);
    cloud.borrow_mut().put("members", "old", json!({"address": "10.0.0.5", "protocol_port": 80}));
    cloud.borrow_mut().busy = true;
    create().unwrap();
    assert_eq!(cloud.borrow().only("servers")["metadata"]["lbaas_pool_1"], "pool-1/old");
    assert_eq!(cloud.borrow().all("members").len(), 2);
}

#[test]
fn failures_of_pools_leave_no_unknown_member() {
    for delete in [false, true] {
        let prepared = || {
            let (host, cloud) = start(properties_with_pools());
            with_pools(&cloud);
            let vm = if delete { create().unwrap() } else { String::new() };
            cloud.borrow_mut().seen.clear();
            (host, cloud, vm)
        };
        let call = |vm: &str| if delete { cpi().delete_vm(vm.to_owned()) } else { create().map(drop) };
        let (_host, cloud, vm) = prepared();
        call(&vm).unwrap();
        let requests = requests(&cloud);
        assert!(requests.iter().filter(|(_, path, _)| path.starts_with("pools")).count() >= 4);
        for (method, path, number) in requests.into_iter().filter(|(_, path, _)| path.starts_with("pools")) {
            for (name, fault, times) in failures() {
                let (_host, cloud, vm) = prepared();
                fail(&cloud, &method, &path, number, &fault, times);
                let case = format!("{method} {path} #{number}, {name}");
                match call(&vm) {
                    Ok(()) if delete => assert!(cloud.borrow().left().is_empty(), "{case}"),
                    Ok(()) => assert_eq!(cloud.borrow().all("members").len(), 2, "{case}"),
                    // The metadata of the server still names its members.
                    Err(error) if delete => {
                        assert_eq!(error.kind, ErrorKind::Cloud, "{case}: {error}");
                        assert_eq!(cloud.borrow().all("servers").len(), 1, "{case}: {error}");
                        cloud.borrow_mut().clear_faults();
                        call(&vm).unwrap();
                        assert!(cloud.borrow().left().is_empty(), "{case}: {error}");
                    }
                    Err(error) => assert!(cloud.borrow().left().is_empty(), "{case}: {error}"),
                }
            }
        }
    }
}

#[test]
fn the_error_says_that_a_member_may_exist() {
    let (_host, cloud) = start(properties_with_pools());
    with_pools(&cloud);
    let reset = Answer::fail(TransportError::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("POST", "pools/*/members", 0, Fault::After(reset));
    for _ in 0..50 {
        cloud.borrow_mut().fault("GET", "pools/*/members", 0, Fault::Before(Answer::text(503, "down")));
    }
    let error = create().unwrap_err();
    assert!(matches!(error.kind, ErrorKind::VmCreationFailed(_)), "{error:?}");
    assert!(error.message.contains("the address may still be a member"), "{error}");
}

#[test]
fn wrong_pools_are_rejected_before_anything_is_created() {
    let pools = |pools: Value| json!({"instance_type": "m1.small", "loadbalancer_pools": pools});
    for (properties, cloud_properties, said) in [
        (
            properties_with_pools(),
            pools(json!([{"port": 80}])),
            "cloud_properties.loadbalancer_pools[0].name: is missing",
        ),
        (
            properties_with_pools(),
            pools(json!([{"name": "web"}])),
            "cloud_properties.loadbalancer_pools[0].port: is missing",
        ),
        (
            properties_with_pools(),
            pools(json!([{"name": "web", "port": "http"}])),
            "cloud_properties.loadbalancer_pools[0].port",
        ),
        (properties_with_pools(), pools(json!([{"name": "none", "port": 80}])), "pool `none` was not found"),
        (properties_with_pools(), pools(json!([{"name": "twice", "port": 80}])), "several pools have the name `twice`"),
        (properties(), pooled(), "needs the property endpoints.loadbalancer"),
    ] {
        let (_host, cloud) = start(properties);
        with_pools(&cloud);
        let error = cpi().create_vm(request(cloud_properties, vec![manual()])).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cpi, "{error}");
        assert!(error.message.contains(said), "{error}");
        assert_eq!(cloud.borrow().left(), Vec::<String>::new());
    }
}
