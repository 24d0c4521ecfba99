//! Multi-CPI: one installed guest serves two clouds at once. The properties of a
//! cpi-config, in the context of the request, select the cloud.

use serde_json::{Value, json};
use tests::openstack::{Api, Gateway, Simulator};
use tests::response::CANARY;
use tests::{CPI_ERROR, Job, Response, dist};

/// Returns the properties of a cpi-config for a cloud.
fn properties(cloud: &Value) -> Vec<(&'static str, Value)> {
    let keys = ["auth_url", "region", "username", "api_key", "domain", "project", "endpoints"];
    let mut properties: Vec<_> = keys.into_iter().map(|key| (key, cloud[key].clone())).collect();
    properties.push(("default_key_name", cloud["key_name"].clone()));
    properties.push(("default_security_groups", json!([cloud["security_group"]])));
    properties
}

/// Installs the guest for all clouds. Its grants use the properties of the job or of a cpi-config.
fn install(own: Vec<(&str, Value)>) -> Job {
    let mut openstack = json!({"wait_resource_poll_interval": 1, "state_timeout": 60});
    own.into_iter().for_each(|(key, value)| openstack[key] = value);
    let job = Job::installed(&json!({
        "guest": {"file": "openstack.wasm"}, "cache": dist::shared_cache(), "allow_local": true,
        "openstack": openstack,
        "policy": {"presets": [{"package": "wasm-cpi-guests", "file": "openstack.json",
                                "addresses": ["127.0.0.0/8"], "plain_http": true}]},
        "agent": {"mbus": format!("nats://nats:{CANARY}-mbus@10.0.0.6:4222")},
    }));
    assert!(job.call("info", json!([])).run().result()["stemcell_formats"].is_array());
    job
}

/// Runs a call with the cpi-config of a cloud.
#[track_caller]
fn run(job: &Job, cloud: &Value, method: &str, arguments: Value) -> Response {
    let call =
        properties(cloud).into_iter().fold(job.call(method, arguments), |call, (key, value)| call.context(key, value));
    let response = call.run();
    let output = format!("{}{}", response.json, response.stderr);
    assert!(!output.contains(cloud["api_key"].as_str().unwrap()), "a secret is in the output: {output}");
    response
}

#[test]
fn one_module_serves_two_clouds_at_once() {
    let gateways = ["of-one-cloud", "of-the-other"]
        .map(|whose| Gateway::start(Simulator::with_password(&format!("{CANARY}-{whose}"))));
    let clouds = gateways.each_ref().map(Gateway::cloud);
    let apis = clouds.each_ref().map(Api::tenant);
    // The job itself has no credentials, and its own cloud does not exist.
    let job = install(vec![("auth_url", json!("http://127.0.0.1:1/v3"))]);
    std::thread::scope(|scope| {
        let made: Vec<_> = clouds
            .iter()
            .map(|cloud| {
                let job = &job;
                scope.spawn(move || {
                    let disk = run(job, cloud, "create_disk", json!([1024, {}, null])).result().clone();
                    assert_eq!(*run(job, cloud, "has_disk", json!([disk])).result(), true);
                    disk
                })
            })
            .collect();
        let disks: Vec<Value> = made.into_iter().map(|one| one.join().unwrap()).collect();
        for (index, api) in apis.iter().enumerate() {
            let ids: Vec<Value> = api.volumes().iter().map(|volume| volume["id"].clone()).collect();
            assert_eq!(ids, [disks[index].clone()], "each cloud must have only its own disk");
        }
        // A disk of one cloud does not exist in the other one.
        assert_eq!(*run(&job, &clouds[0], "has_disk", json!([disks[1]])).result(), false);
        for (cloud, disk) in clouds.iter().zip(&disks) {
            assert_eq!(*run(&job, cloud, "delete_disk", json!([disk])).result(), Value::Null);
        }
    });
    assert!(apis.iter().all(|api| api.volumes().is_empty()));
    for (gateway, other) in [(&gateways[0], &clouds[1]), (&gateways[1], &clouds[0])] {
        let (own, other) = (gateway.cloud(), other["api_key"].as_str().unwrap());
        let bodies: String = gateway.records().iter().map(|record| record.json().to_string()).collect();
        assert!(bodies.contains(own["api_key"].as_str().unwrap()) && !bodies.contains(other), "{bodies}");
    }
}

#[test]
fn a_context_without_a_cloud_uses_that_of_the_job_and_half_a_cloud_is_refused() {
    let [own, other] = ["of-the-job", "of-the-other"]
        .map(|whose| Gateway::start(Simulator::with_password(&format!("{CANARY}-{whose}"))));
    let cloud = own.cloud();
    let job = install(properties(&cloud));
    let disk = job.call("create_disk", json!([1024, {}, null])).run().result().clone();
    let volumes: Vec<Value> = Api::tenant(&cloud).volumes().iter().map(|volume| volume["id"].clone()).collect();
    assert_eq!(
        volumes,
        std::slice::from_ref(&disk),
        "without properties in the context, those of the job must be used"
    );
    // The credentials of the job are not sent to an origin that the context chose.
    let half = job.call("has_disk", json!([disk])).context("auth_url", other.cloud()["auth_url"].clone()).run();
    half.fails(CPI_ERROR, &["to an origin that the context (a cpi-config) chose"]);
    assert!(other.records().is_empty(), "no request must be sent with half of the credentials");
}
