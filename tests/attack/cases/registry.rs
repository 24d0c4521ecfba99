//! The registry: which settings a guest may read and change, what is undone, and
//! registries that misbehave. The registry runs in the far namespace, where every
//! request to it is seen.

mod answers;
mod rights;
mod vms;

use crate::case::Case;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::response::CANARY;
use tests::rows::merge_patch;
use tests::{Job, probe};

const CLASS: &str = "registry";

pub(super) fn cases() -> Vec<Case> {
    let cases = [rights::cases(), vms::cases(), answers::cases()].into_iter().flatten();
    cases.map(|case| case.may_contact(&["dns", "5.6.7.77:25777"])).collect()
}

/// Returns settings of `vm-1` that hold secrets.
fn settings() -> Value {
    json!({
        "agent_id": "agent-1", "vm": {"name": "the-name"}, "mbus": format!("nats://n:{CANARY}-mbus@10.0.0.6:4222"),
        "env": {"bosh": {"password": format!("{CANARY}-env")}}, "networks": {"net": {"type": "manual", "ip": "10.0.0.5"}},
        "disks": {"system": "/dev/sda", "persistent": {"disk-0": {"path": "/dev/sdc"}}},
    })
}

/// Returns an answer of the registry with these settings.
fn stored(settings: &Value) -> Value {
    json!({"status": 200, "body": {"status": "ok", "settings": settings.to_string()}})
}

/// Returns a job with a registry. `over` is merged into its config, and replaces its
/// policy.
fn job(world: &World, over: &Value) -> Job {
    let registry =
        json!({"endpoint": "http://registry.test:25777", "user": "user", "password": format!("{CANARY}-registry")});
    let job = row::job(world, &json!({"config": {"registry": registry}}));
    job.configure(|config| merge_patch(config, &over["config"])).policy(match &over["policy"] {
        Value::Null => json!({"version": 1, "http": []}),
        policy => policy.clone(),
    })
}

/// Sets the registry's answers to successive requests for `vm-1`, and for all other VMs.
fn serve(world: &World, vm: &Value, others: &Value) -> Result<(), String> {
    let names = row::names(&json!({"registry.test": ["5.6.7.77"]}));
    let missing = json!({"status": 404, "body": {"status": "not_found"}});
    let others = if others.is_null() { &missing } else { others };
    world.reset(names, Served::new(&json!({"registry.test/instances/vm-1/settings": vm, "registry.test": others})))
}

/// Runs a script in `attach_disk` of `vm-1`, in API version 1, which uses the registry.
/// Returns its outcomes.
fn attach_outcomes(job: &Job, script: &Value) -> Vec<Value> {
    let response = job.call("attach_disk", json!(["vm-1", probe::cid(script)])).api_version(1).run();
    probe::outcomes_in(response.message())
}

/// Fails unless exactly these requests arrived at the registry, such as `GET vm-1`.
fn expect_requests(world: &World, expected: &[&str]) -> Result<(), String> {
    let shortened = |summary: String| {
        let path = summary.replace("registry.test:25777/instances/", "");
        path.strip_suffix("/settings").map_or(path.clone(), str::to_owned)
    };
    let requests: Vec<String> = world.requests().iter().map(|arrived| shortened(arrived.summary())).collect();
    if requests == expected {
        Ok(())
    } else {
        Err(format!("these requests arrived: {requests:?}, expected {expected:?}"))
    }
}

/// Fails unless every outcome is an error of this kind.
fn expect_errors(outcomes: &[Value], kind: &str) -> Result<(), String> {
    match outcomes.iter().find(|outcome| outcome["error"]["kind"] != kind) {
        Some(outcome) => Err(format!("not {kind}: {outcome}")),
        None => Ok(()),
    }
}
