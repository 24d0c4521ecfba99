//! Jobs whose cloud is a server on this machine, and the outcomes of the probe's
//! requests to it.

use crate::{Call, Job, Response, dist, probe};
use serde_json::{Value, json};

/// Returns a job with these grants and access to loopback addresses.
pub fn job(grants: Value) -> Job {
    with_policy(json!({"http": grants}))
}

/// Returns a job with this policy and access to loopback addresses.
pub fn with_policy(mut policy: Value) -> Job {
    policy["version"] = json!(1);
    Job::default().policy(policy).configure(|config| config["allow_local"] = json!(true))
}

/// Runs a probe script that returns its outcomes as JSON in the error message, where
/// they stay readable even if they contain seals.
pub fn call(job: &Job, operations: &Value) -> Response {
    job.call("has_vm", json!([probe::cid(operations)])).run()
}

/// Runs a probe script and returns the outcome of each operation.
#[track_caller]
pub fn outcomes(job: &Job, operations: &Value) -> Vec<Value> {
    probe::outcomes_in(call(job, operations).message())
}

/// Runs a single probe operation and returns its outcome.
#[track_caller]
pub fn outcome(job: &Job, operation: Value) -> Value {
    let mut all = outcomes(job, &json!([operation]));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Returns the networks that `create_vm` below passes.
pub fn networks() -> Value {
    json!({"net": {
        "type": "manual", "ip": "10.0.0.5", "netmask": "255.255.255.0", "gateway": "10.0.0.1", "dns": ["10.0.0.2"],
        "default": ["dns", "gateway"], "cloud_properties": {"subnet": "a"},
    }})
}

/// Returns a VM's `env` as a Director sends it: some values are public, some secret.
pub fn env() -> Value {
    json!({"bosh": {
        "group": "a-group", "groups": ["a-group", "another"], "tags": {"team": "us"},
        "password": format!("{}-env-password", crate::response::CANARY),
        "mbus": {"cert": {"private_key": format!("{}-env-key", crate::response::CANARY)}},
    }})
}

/// Returns a `create_vm` call that runs a script, or the probe's default behaviour if
/// the script is null.
pub fn create_vm<'a>(job: &'a Job, operations: &Value) -> Call<'a> {
    let properties = if operations.is_null() { json!({}) } else { json!({"probe": operations}) };
    job.call("create_vm", json!(["agent-1", "stemcell-1", properties, networks(), ["disk-1"], env()]))
}

/// Returns the outcomes of such a script. Needs API version 2.
#[track_caller]
pub fn vm_outcomes(response: &Response) -> Vec<Value> {
    let outcomes = response.result()[1]["net"]["probe"].as_array().cloned();
    outcomes.unwrap_or_else(|| panic!("{} holds no outcomes", response.json))
}

/// Returns the probe's bytes with its needs replaced by these.
pub fn probe_with_needs(needs: &Value) -> Vec<u8> {
    let file =
        |path: &std::path::Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (own, mut guest) = (file(&dist::root().join("guests/probe/needs.json")), file(&dist::probe()));
    let needs = format!("{:width$}", needs.to_string(), width = own.len());
    assert_eq!(needs.len(), own.len(), "these needs are too long: {needs}");
    let places: Vec<usize> = (0..guest.len()).filter(|at| guest[*at..].starts_with(&own)).collect();
    assert!(!places.is_empty(), "the section with the probe's needs was not found");
    for at in places {
        guest[at..at + own.len()].copy_from_slice(needs.as_bytes());
    }
    guest
}

/// Returns the probe's bytes without needs: their custom section is renamed.
pub fn probe_without_needs() -> Vec<u8> {
    let mut guest = std::fs::read(dist::probe()).unwrap_or_else(|error| panic!("the probe: {error}"));
    let name = b"bosh-cpi:needs";
    let places: Vec<usize> = (0..guest.len()).filter(|at| guest[*at..].starts_with(name)).collect();
    assert!(!places.is_empty(), "the section with the probe's needs was not found");
    for at in places {
        guest[at] = b'B';
    }
    guest
}

/// Returns a probe operation that sends a GET request.
pub fn get(url: &str) -> Value {
    json!({"op": "http", "url": url})
}

/// Returns a probe operation that sends a POST request with a JSON body.
pub fn post(url: &str, body: &Value) -> Value {
    json!({"op": "http", "method": "POST", "url": url, "headers": {"Content-Type": "application/json"}, "body": body})
}

/// Asserts that the operation failed with this error kind, that `sent` is as
/// expected, and that the message contains all of these texts.
#[track_caller]
pub fn failed(outcome: &Value, kind: &str, sent: bool, texts: &[&str]) {
    let error = &outcome["error"];
    assert_eq!((error["kind"].as_str(), error["sent"].as_bool()), (Some(kind), Some(sent)), "{outcome}");
    let message = error["message"].as_str().unwrap_or_default();
    for part in texts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

/// Asserts that the operation was denied for this reason before anything was sent.
#[track_caller]
pub fn denied(outcome: &Value, reason: &str, texts: &[&str]) {
    assert_eq!(outcome["error"]["reason"], reason, "{outcome}");
    failed(outcome, "denied", false, texts);
}

/// Asserts that the request got a response with this status and returns it.
#[track_caller]
pub fn answered(outcome: &Value, status: u16) -> &Value {
    assert_eq!(outcome["ok"]["status"], status, "{outcome}");
    &outcome["ok"]
}
