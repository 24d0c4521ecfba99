//! Native tests: the fake is the host and the cloud, and sleeps take no time.

use super::*;
use serde_json::Value;
use wasm_cpi_sdk::fake::{AgentEvent, Answer, Fake};
use wasm_cpi_sdk::{ErrorKind, Json, RetryAdvice};

const SERVERS: &str = "https://cloud.example/servers";
const SERVER: &str = "https://cloud.example/servers/s-1";

fn fake() -> Fake {
    Fake::new().properties(json!({"endpoint": "https://cloud.example/", "token": "a seal"}))
}

fn server(status: &str) -> Value {
    json!({"id": "s-1", "status": status})
}

fn request(cloud_properties: Value) -> VmRequest {
    VmRequest {
        agent_id: "agent-1".into(),
        stemcell: "image-1".into(),
        cloud_properties: Json::named("cloud_properties", cloud_properties.to_string()),
        networks: vec![],
        disks: vec![],
        env: Json::default(),
    }
}

#[test]
fn create_vm_sends_the_sealed_settings_and_waits_until_the_server_runs() {
    let host = fake()
        .on("POST", SERVERS, Answer::json(201, server("building")))
        .on("GET", SERVER, Answer::json(200, server("building")))
        .on("GET", SERVER, Answer::json(200, server("running")))
        .install();
    let created = Cloud::open().unwrap().create_vm(request(json!({"size": "small"}))).unwrap();
    assert_eq!(created.vm, "s-1");
    let sealed = "sealed-user-data-1";
    let body = json!({"name": "vm-agent-1", "image": "image-1", "size": "small", "user_data": sealed});
    assert_eq!(host.request_json(0), Some(body));
    assert_eq!(host.sleeps(), [1000]);
    let stored = AgentEvent::Created { vm: "s-1".into(), registry_key: "s-1".into() };
    assert_eq!(host.agent_events().last(), Some(&stored));
}

#[test]
fn a_server_that_does_not_start_is_deleted() {
    let host = fake()
        .on("POST", SERVERS, Answer::json(201, server("building")))
        .on("GET", SERVER, Answer::json(200, server("error")))
        .on("DELETE", SERVER, Answer::text(204, ""))
        .install();
    let error = Cloud::open().unwrap().create_vm(request(json!({"size": "small"}))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: true }));
    assert_eq!(host.requests().last().unwrap().method, "DELETE");
}

#[test]
fn wrong_cloud_properties_are_reported_before_anything_is_sent() {
    let host = fake().install();
    let cloud = Cloud::open().unwrap();
    for (properties, named) in [(json!({"size": 1}), "cloud_properties.size"), (json!({"sise": "s"}), "sise")] {
        let error = cloud.create_vm(request(properties)).unwrap_err();
        assert!(error.message.contains(named), "{error}");
    }
    assert!(host.requests().is_empty());
}

#[test]
fn a_server_exists_until_it_is_deleted() {
    let _host = fake()
        .on("GET", SERVER, Answer::json(200, server("running")))
        .on("GET", SERVER, Answer::text(404, ""))
        .on("DELETE", SERVER, Answer::text(204, ""))
        .on("DELETE", SERVER, Answer::text(404, ""))
        .install();
    let cloud = Cloud::open().unwrap();
    assert!(cloud.has_vm("s-1".into()).unwrap());
    cloud.delete_vm("s-1".into()).unwrap();
    assert!(!cloud.has_vm("s-1".into()).unwrap());
    assert_eq!(cloud.delete_vm("s-1".into()).unwrap_err().kind, ErrorKind::VmNotFound);
}

#[test]
fn both_policies_grant_what_the_guest_needs() {
    let needs: Value = serde_json::from_str(NEEDS).unwrap();
    for text in [include_str!("../policy.json"), include_str!("../examples/policy.json")] {
        let policy: Value = serde_json::from_str(text).unwrap();
        assert_eq!(policy["expose"], needs["expose"]);
        for key in ["to", "methods", "paths", "slots"] {
            assert_eq!(policy["http"][0][key], needs["http"][0][key], "{key}");
        }
    }
}
