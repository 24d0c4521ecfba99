//! Pools of load balancers: a VM is a member from its creation to its deletion. These
//! tests use only the simulator, because the real cloud of the tests has no Octavia.

use super::{Cpi, Login, small_vm};
use serde_json::{Value, json};
use tests::openstack::{Fault, Gateway, Rule, Service, Simulator};
use tests::{CLOUD_ERROR, CPI_ERROR, dist, job};

/// Adds the preset for pools to the preset for the login.
fn with_pools(gateway: &Gateway, login: Login) -> Cpi<'_> {
    let mut cpi = Cpi::with_login(gateway, login);
    let text = std::fs::read(dist::root().join("guests/openstack/policy-loadbalancer.json"));
    job::write(&cpi.job.path("config/pools.json"), &text.unwrap_or_else(|error| panic!("{error}")));
    let preset = |file: &str| json!({"file": file, "addresses": ["127.0.0.0/8"], "plain_http": true});
    cpi.job = cpi.job.policy(json!({"version": 1, "presets": [preset("openstack.json"), preset("pools.json")]}));
    cpi
}

/// Creates a load balancer with a pool of that name and returns the ID of the pool.
fn create_pool(cpi: &Cpi<'_>, name: &str) -> String {
    let made = |path: &str, key: &str, body: Value| {
        let body = json!({key: body});
        let answer = cpi.api.request(Service::LoadBalancer, "POST", path, Some(&body)).value();
        answer[key]["id"].as_str().unwrap_or_else(|| panic!("{path}: {answer}")).to_owned()
    };
    let balancer = made("/lbaas/loadbalancers", "loadbalancer", json!({"vip_subnet_id": cpi.cloud["subnet"]}));
    let body = json!({"name": name, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "loadbalancer_id": balancer});
    made("/lbaas/pools", "pool", body)
}

/// Returns the arguments of `create_vm` for a VM in two pools.
fn vm_in_pools(cpi: &Cpi<'_>, stemcell: &str) -> Value {
    let mut arguments = small_vm(cpi, stemcell, "10.0.0.95");
    arguments[2]["loadbalancer_pools"] =
        json!([{"name": "web", "port": 80}, {"name": "api", "port": 8080, "monitoring_port": 8081}]);
    arguments
}

#[test]
fn a_vm_is_a_member_of_its_pools_until_it_is_deleted() {
    for login in Login::ALL {
        let gateway = Gateway::start(Simulator::new());
        let cpi = with_pools(&gateway, login);
        let (web, api) = (create_pool(&cpi, "web"), create_pool(&cpi, "api"));
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let (vm, _) = cpi.create_vm(vm_in_pools(&cpi, &stemcell));
        let members = cpi.api.members();
        let keys = ["address", "protocol_port", "monitor_port", "subnet_id", "provisioning_status"];
        let fields: Vec<_> = members.iter().map(|member| keys.map(|key| member[key].clone())).collect();
        let (ip, subnet, active) = (json!("10.0.0.95"), cpi.cloud["subnet"].clone(), json!("ACTIVE"));
        assert_eq!(fields[0], [ip.clone(), json!(80), Value::Null, subnet.clone(), active.clone()]);
        assert_eq!(fields[1], [ip, json!(8080), json!(8081), subnet, active]);
        let server = cpi.api.request(Service::Compute, "GET", &format!("/servers/{vm}"), None).value();
        for (key, pool, member) in [("lbaas_pool_1", web, &members[0]), ("lbaas_pool_2", api, &members[1])] {
            let place = format!("{pool}/{}", member["id"].as_str().unwrap_or_default());
            assert_eq!(server["server"]["metadata"][key], json!(place));
        }
        cpi.ok("delete_vm", json!([vm]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{login:?}");
    }
}

#[test]
fn a_vm_is_not_deleted_before_it_has_left_its_pools() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = with_pools(&gateway, Login::Password);
    create_pool(&cpi, "web");
    create_pool(&cpi, "api");
    let stemcell = cpi.stemcell();
    let before = cpi.api.contents();
    let (vm, _) = cpi.create_vm(vm_in_pools(&cpi, &stemcell));
    let rule = Rule::on(Service::LoadBalancer, "DELETE", "/lbaas/pools/*/members/*").times(1000);
    gateway.inject(rule, Fault::status(403));
    cpi.run("delete_vm", json!([vm])).fails(CLOUD_ERROR, &["403"]);
    gateway.clear_faults();
    assert_eq!((cpi.api.servers().len(), cpi.api.members().len()), (1, 2));
    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

#[test]
fn a_vm_that_cannot_join_its_pools_leaves_nothing_behind() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = with_pools(&gateway, Login::Password);
    create_pool(&cpi, "web");
    create_pool(&cpi, "api");
    let stemcell = cpi.stemcell();
    let before = cpi.api.contents();
    for (nth, fault) in [(1, Fault::status(403)), (2, Fault::status(403))] {
        gateway.inject(Rule::on(Service::LoadBalancer, "POST", "/lbaas/pools/*/members").nth(nth), fault);
        cpi.run("create_vm", vm_in_pools(&cpi, &stemcell)).fails("Bosh::Clouds::VMCreationFailed", &["403"]);
        gateway.clear_faults();
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{nth}");
    }
    // If a response is lost, no second member is created.
    gateway.inject(Rule::on(Service::LoadBalancer, "POST", "/lbaas/pools/*/members"), Fault::ResetAfter);
    let (vm, _) = cpi.create_vm(vm_in_pools(&cpi, &stemcell));
    assert_eq!(cpi.api.members().len(), 2);
    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

#[test]
fn without_a_load_balancer_endpoint_pools_are_refused_and_existing_members_are_logged() {
    let gateway = Gateway::start(Simulator::new());
    let mut endpoints = gateway.cloud()["endpoints"].clone();
    endpoints["loadbalancer"] = Value::Null;
    let cpi = Cpi::new(&gateway).set("endpoints", endpoints);
    let stemcell = cpi.stemcell();
    let before = cpi.api.contents();
    let expected = ["cloud_properties.loadbalancer_pools", "endpoints.loadbalancer", "openstack-loadbalancer.json"];
    cpi.run("create_vm", vm_in_pools(&cpi, &stemcell)).fails(CPI_ERROR, &expected);
    let (vm, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.96"));
    cpi.ok("set_vm_metadata", json!([vm, {"lbaas_pool_1": "pool-1/member-1"}]));
    let response = cpi.run("delete_vm", json!([vm]));
    response.result();
    let stderr = &response.stderr;
    assert!(stderr.contains("stays member member-1 of load balancer pool pool-1"), "{stderr}");
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

#[test]
fn every_grant_of_the_preset_for_pools_is_used() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = with_pools(&gateway, Login::Password);
    create_pool(&cpi, "web");
    create_pool(&cpi, "api");
    let stemcell = cpi.stemcell();
    gateway.clear_records();
    gateway.inject(Rule::on(Service::LoadBalancer, "POST", "/lbaas/pools/*/members"), Fault::ResetAfter);
    let (vm, _) = cpi.create_vm(vm_in_pools(&cpi, &stemcell));
    cpi.ok("delete_vm", json!([vm]));
    let text = std::fs::read(cpi.job.path("config/pools.json")).unwrap_or_default();
    let preset: Value = serde_json::from_slice(&text).unwrap_or_default();
    let records = gateway.records();
    let used = |method: &Value, path: &Value| {
        let wanted: Vec<&str> = path.as_str().unwrap_or_default().split('/').collect();
        records.iter().filter(|record| record.service == Service::LoadBalancer && *method == record.method).any(
            |record| {
                let parts: Vec<&str> = record.target.split('?').next().unwrap_or_default().split('/').collect();
                parts.len() == wanted.len()
                    && parts.iter().zip(&wanted).all(|(part, wanted)| part == wanted || *wanted == "*")
            },
        )
    };
    for grant in preset["http"].as_array().into_iter().flatten() {
        for path in grant["paths"].as_array().into_iter().flatten() {
            assert!(used(&grant["methods"][0], path), "{} {path} is not used", grant["methods"][0]);
        }
    }
}
