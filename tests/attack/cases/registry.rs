//! The registry: whose settings a guest may touch and how, what is undone, and
//! registries that answer as they like. It stands in the far namespace, where
//! every request to it is seen.

mod answers;
mod rights;
mod vms;

use crate::case::Case;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::response::CANARY;
use tests::rows::lay_over;
use tests::{Job, probe};

const CLASS: &str = "registry";

pub(super) fn cases() -> Vec<Case> {
    let cases = [rights::cases(), vms::cases(), answers::cases()].into_iter().flatten();
    cases.map(|case| case.speaking_to(&["dns", "5.6.7.77:25777"])).collect()
}

/// Settings of `vm-1` with secrets in them.
fn settings() -> Value {
    json!({
        "agent_id": "agent-1", "vm": {"name": "the-name"}, "mbus": format!("nats://n:{CANARY}-mbus@10.0.0.6:4222"),
        "env": {"bosh": {"password": format!("{CANARY}-env")}}, "networks": {"net": {"type": "manual", "ip": "10.0.0.5"}},
        "disks": {"system": "/dev/sda", "persistent": {"disk-0": {"path": "/dev/sdc"}}},
    })
}

/// An answer of the registry that holds settings.
fn stored(settings: &Value) -> Value {
    json!({"status": 200, "body": {"status": "ok", "settings": settings.to_string()}})
}

/// A job with a registry, this laid over its config and policy.
fn job(world: &World, over: &Value) -> Job {
    let registry =
        json!({"endpoint": "http://registry.test:25777", "user": "user", "password": format!("{CANARY}-registry")});
    let job = row::job(world, &json!({"config": {"registry": registry}}));
    job.configure(|config| lay_over(config, &over["config"])).policy(match &over["policy"] {
        Value::Null => json!({"version": 1, "http": []}),
        policy => policy.clone(),
    })
}

/// What the registry answers to requests for `vm-1`, one after the other, and for
/// everybody else.
fn serve(world: &World, vm: &Value, others: &Value) -> Result<(), String> {
    let names = row::names(&json!({"registry.test": ["5.6.7.77"]}));
    let missing = json!({"status": 404, "body": {"status": "not_found"}});
    let others = if others.is_null() { &missing } else { others };
    world.set(names, Served::new(&json!({"registry.test/instances/vm-1/settings": vm, "registry.test": others})))
}

/// The outcomes of a script in `attach_disk`, whose VM is `vm-1`, in the days of the registry.
fn attached(job: &Job, script: &Value) -> Vec<Value> {
    let response = job.call("attach_disk", json!(["vm-1", probe::cid(script)])).api_version(1).run();
    probe::outcomes_in(response.message())
}

/// Exactly these requests arrived at the registry, `GET vm-1`.
fn arrived(world: &World, expected: &[&str]) -> Result<(), String> {
    let shortened = |summary: String| {
        let path = summary.replace("registry.test:25777/instances/", "");
        path.strip_suffix("/settings").map_or(path.clone(), str::to_owned)
    };
    let requests: Vec<String> = world.arrived().iter().map(|arrived| shortened(arrived.summary())).collect();
    if requests == expected { Ok(()) } else { Err(format!("these arrived: {requests:?}, expected {expected:?}")) }
}

/// Each outcome failed in this way.
fn failed(outcomes: &[Value], kind: &str) -> Result<(), String> {
    match outcomes.iter().find(|outcome| outcome["error"]["kind"] != kind) {
        Some(outcome) => Err(format!("not {kind}: {outcome}")),
        None => Ok(()),
    }
}
