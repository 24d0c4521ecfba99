//! Pools of load balancers: VMs are members from their beginning to their end.
//! On the simulator alone, as the real cloud of the tests has no Octavia.

use super::{Cpi, Way, small};
use serde_json::{Value, json};
use tests::openstack::{Fault, Gateway, Rule, Service, Simulator};
use tests::{CLOUD_ERROR, CPI_ERROR, dist, job};

/// With the second preset beside that for the login.
fn with_pools(gateway: &Gateway, way: Way) -> Cpi<'_> {
    let mut cpi = Cpi::by(gateway, way);
    let text = std::fs::read(dist::root().join("guests/openstack/policy-loadbalancer.json"));
    job::write(&cpi.job.path("config/pools.json"), &text.unwrap_or_else(|error| panic!("{error}")));
    let preset = |file: &str| json!({"file": file, "addresses": ["127.0.0.0/8"], "plain_http": true});
    cpi.job = cpi.job.policy(json!({"version": 1, "presets": [preset("openstack.json"), preset("pools.json")]}));
    cpi
}

/// A load balancer with a pool of that name.
fn pool(cpi: &Cpi<'_>, name: &str) -> String {
    let made = |path: &str, key: &str, body: Value| {
        let body = json!({key: body});
        let answer = cpi.api.request(Service::LoadBalancer, "POST", path, Some(&body)).value();
        answer[key]["id"].as_str().unwrap_or_else(|| panic!("{path}: {answer}")).to_owned()
    };
    let balancer = made("/lbaas/loadbalancers", "loadbalancer", json!({"vip_subnet_id": cpi.cloud["subnet"]}));
    let body = json!({"name": name, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "loadbalancer_id": balancer});
    made("/lbaas/pools", "pool", body)
}

fn pooled(cpi: &Cpi<'_>, stemcell: &str) -> Value {
    let mut arguments = small(cpi, stemcell, "10.0.0.95");
    arguments[2]["loadbalancer_pools"] =
        json!([{"name": "web", "port": 80}, {"name": "api", "port": 8080, "monitoring_port": 8081}]);
    arguments
}

#[test]
fn a_vm_is_a_member_of_its_pools_until_it_is_deleted() {
    for way in Way::ALL {
        let gateway = Gateway::start(Simulator::new());
        let cpi = with_pools(&gateway, way);
        let (web, api) = (pool(&cpi, "web"), pool(&cpi, "api"));
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let (vm, _) = cpi.create_vm(pooled(&cpi, &stemcell));
        let members = cpi.api.members();
        let keys = ["address", "protocol_port", "monitor_port", "subnet_id", "provisioning_status"];
        let told: Vec<_> = members.iter().map(|member| keys.map(|key| member[key].clone())).collect();
        let (ip, subnet, active) = (json!("10.0.0.95"), cpi.cloud["subnet"].clone(), json!("ACTIVE"));
        assert_eq!(told[0], [ip.clone(), json!(80), Value::Null, subnet.clone(), active.clone()]);
        assert_eq!(told[1], [ip, json!(8080), json!(8081), subnet, active]);
        let server = cpi.api.request(Service::Compute, "GET", &format!("/servers/{vm}"), None).value();
        for (key, pool, member) in [("lbaas_pool_1", web, &members[0]), ("lbaas_pool_2", api, &members[1])] {
            let place = format!("{pool}/{}", member["id"].as_str().unwrap_or_default());
            assert_eq!(server["server"]["metadata"][key], json!(place));
        }
        cpi.ok("delete_vm", json!([vm]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{way:?}");
    }
}

#[test]
fn a_vm_stays_until_it_is_out_of_its_pools() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = with_pools(&gateway, Way::Password);
    pool(&cpi, "web");
    pool(&cpi, "api");
    let stemcell = cpi.stemcell();
    let before = cpi.api.contents();
    let (vm, _) = cpi.create_vm(pooled(&cpi, &stemcell));
    let rule = Rule::on(Service::LoadBalancer, "DELETE", "/lbaas/pools/*/members/*").times(1000);
    gateway.inject(rule, Fault::status(403));
    cpi.ask("delete_vm", json!([vm])).fails(CLOUD_ERROR, &["403"]);
    gateway.clear_faults();
    assert_eq!((cpi.api.servers().len(), cpi.api.members().len()), (1, 2));
    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

#[test]
fn a_vm_that_cannot_join_leaves_nothing() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = with_pools(&gateway, Way::Password);
    pool(&cpi, "web");
    pool(&cpi, "api");
    let stemcell = cpi.stemcell();
    let before = cpi.api.contents();
    for (nth, fault) in [(1, Fault::status(403)), (2, Fault::status(403))] {
        gateway.inject(Rule::on(Service::LoadBalancer, "POST", "/lbaas/pools/*/members").nth(nth), fault);
        cpi.ask("create_vm", pooled(&cpi, &stemcell)).fails("Bosh::Clouds::VMCreationFailed", &["403"]);
        gateway.clear_faults();
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{nth}");
    }
    // A lost answer is no reason for a second member.
    gateway.inject(Rule::on(Service::LoadBalancer, "POST", "/lbaas/pools/*/members"), Fault::ResetAfter);
    let (vm, _) = cpi.create_vm(pooled(&cpi, &stemcell));
    assert_eq!(cpi.api.members().len(), 2);
    cpi.ok("delete_vm", json!([vm]));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

#[test]
fn without_the_service_pools_are_refused_and_members_of_the_old_cpi_are_named() {
    let gateway = Gateway::start(Simulator::new());
    let mut endpoints = gateway.cloud()["endpoints"].clone();
    endpoints["loadbalancer"] = Value::Null;
    let cpi = Cpi::new(&gateway).set("endpoints", endpoints);
    let stemcell = cpi.stemcell();
    let before = cpi.api.contents();
    let said = ["cloud_properties.loadbalancer_pools", "endpoints.loadbalancer", "policy-loadbalancer.json"];
    cpi.ask("create_vm", pooled(&cpi, &stemcell)).fails(CPI_ERROR, &said);
    let (vm, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.96"));
    cpi.ok("set_vm_metadata", json!([vm, {"lbaas_pool_1": "pool-1/member-1"}]));
    let response = cpi.ask("delete_vm", json!([vm]));
    response.result();
    let said = &response.stderr;
    assert!(said.contains("stays member member-1 of load balancer pool pool-1"), "{said}");
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

/// What is asked for with the second preset alone is in it, and all of it is used.
#[test]
fn the_preset_for_pools_grants_what_is_used() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = with_pools(&gateway, Way::Password);
    pool(&cpi, "web");
    pool(&cpi, "api");
    let stemcell = cpi.stemcell();
    gateway.forget();
    gateway.inject(Rule::on(Service::LoadBalancer, "POST", "/lbaas/pools/*/members"), Fault::ResetAfter);
    let (vm, _) = cpi.create_vm(pooled(&cpi, &stemcell));
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
            assert!(used(&grant["methods"][0], path), "nobody uses {} {path}", grant["methods"][0]);
        }
    }
}
