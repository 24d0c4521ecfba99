//! Jobs whose cloud is on this machine, and what the probe did there.

use crate::{Call, Job, Response, dist, probe};
use serde_json::{Value, json};

/// A job with these grants, which may reach this machine.
pub fn job(grants: Value) -> Job {
    with_policy(json!({"http": grants}))
}

pub fn with_policy(mut policy: Value) -> Job {
    policy["version"] = json!(1);
    Job::default().policy(policy).configure(|config| config["allow_local"] = json!(true))
}

/// A call of the probe whose outcomes come back as JSON in its error message,
/// readable though there are seals among them.
pub fn call(job: &Job, operations: &Value) -> Response {
    job.call("has_vm", json!([probe::cid(operations)])).run()
}

/// The outcome of each operation.
#[track_caller]
pub fn outcomes(job: &Job, operations: &Value) -> Vec<Value> {
    probe::outcomes_in(call(job, operations).message())
}

/// The outcome of the only operation.
#[track_caller]
pub fn outcome(job: &Job, operation: Value) -> Value {
    let mut all = outcomes(job, &json!([operation]));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The networks of `create_vm` below.
pub fn networks() -> Value {
    json!({"net": {
        "type": "manual", "ip": "10.0.0.5", "netmask": "255.255.255.0", "gateway": "10.0.0.1", "dns": ["10.0.0.2"],
        "default": ["dns", "gateway"], "cloud_properties": {"subnet": "a"},
    }})
}

/// What a Director puts into a VM's `env`: some of it for all to see.
pub fn env() -> Value {
    json!({"bosh": {
        "group": "a-group", "groups": ["a-group", "another"], "tags": {"team": "us"},
        "password": format!("{}-env-password", crate::response::CANARY),
        "mbus": {"cert": {"private_key": format!("{}-env-key", crate::response::CANARY)}},
    }})
}

/// A `create_vm` that runs a script, or makes a VM of the probe's own if there is none.
pub fn create_vm<'a>(job: &'a Job, operations: &Value) -> Call<'a> {
    let properties = if operations.is_null() { json!({}) } else { json!({"probe": operations}) };
    job.call("create_vm", json!(["agent-1", "stemcell-1", properties, networks(), ["disk-1"], env()]))
}

/// The outcomes of such a script, from API version 2 on.
#[track_caller]
pub fn vm_outcomes(response: &Response) -> Vec<Value> {
    let outcomes = response.result()[1]["net"]["probe"].as_array().cloned();
    outcomes.unwrap_or_else(|| panic!("no outcomes in {}", response.json))
}

/// The probe with other needs, written over its own.
pub fn needing(needs: &Value) -> Vec<u8> {
    let file =
        |path: &std::path::Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (own, mut guest) = (file(&dist::root().join("guests/probe/needs.json")), file(&dist::probe()));
    let needs = format!("{:width$}", needs.to_string(), width = own.len());
    assert_eq!(needs.len(), own.len(), "these needs are too long: {needs}");
    let places: Vec<usize> = (0..guest.len()).filter(|at| guest[*at..].starts_with(&own)).collect();
    assert!(!places.is_empty(), "the probe's needs are not where they were");
    for at in places {
        guest[at..at + own.len()].copy_from_slice(needs.as_bytes());
    }
    guest
}

/// The probe without any needs: their section has another name.
pub fn undeclared() -> Vec<u8> {
    let mut guest = std::fs::read(dist::probe()).unwrap_or_else(|error| panic!("the probe: {error}"));
    let name = b"bosh-cpi:needs";
    let places: Vec<usize> = (0..guest.len()).filter(|at| guest[*at..].starts_with(name)).collect();
    assert!(!places.is_empty(), "the probe's needs are not where they were");
    for at in places {
        guest[at] = b'B';
    }
    guest
}

/// A request in a script.
pub fn get(url: &str) -> Value {
    json!({"op": "http", "url": url})
}

pub fn post(url: &str, body: &Value) -> Value {
    json!({"op": "http", "method": "POST", "url": url, "headers": {"Content-Type": "application/json"}, "body": body})
}

/// Failed in this way, before or after something was sent, and says all of this.
#[track_caller]
pub fn failed(outcome: &Value, kind: &str, sent: bool, said: &[&str]) {
    let error = &outcome["error"];
    assert_eq!((error["kind"].as_str(), error["sent"].as_bool()), (Some(kind), Some(sent)), "{outcome}");
    let message = error["message"].as_str().unwrap_or_default();
    for part in said {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

/// Denied for this reason, before anything was sent.
#[track_caller]
pub fn denied(outcome: &Value, reason: &str, said: &[&str]) {
    assert_eq!(outcome["error"]["reason"], reason, "{outcome}");
    failed(outcome, "denied", false, said);
}

/// Succeeded with this status.
#[track_caller]
pub fn answered(outcome: &Value, status: u16) -> &Value {
    assert_eq!(outcome["ok"]["status"], status, "{outcome}");
    &outcome["ok"]
}
