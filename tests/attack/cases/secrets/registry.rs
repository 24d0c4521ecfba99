//! Secrets and the registry: settings with secrets in them, and a registry that fails.

use super::endings::expect_no_leak;
use super::scenario::{SERVERS, Scenario, Search};
use super::secret_set::seed;
use crate::case::Case;
use crate::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::probe;

const CLASS: &str = "secrets";

const REGISTRY: &[&str] = &["dns", "5.6.7.19:25777"];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, mutants: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, mutants, move |world| {
            attempt(world).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        })
    };
    vec![
        case("secrets in every field, then a success with a registry", &[], with_registry).may_contact(SERVERS),
        case("secrets in every field, then a registry that fails", &[], failing_registry).may_contact(REGISTRY),
        case("a guest sees settings of the registry as seals", &["sealed-registry"], read_settings)
            .may_contact(REGISTRY),
    ]
}

fn with_registry(world: &World) -> Result<(), String> {
    let mut scenario = Scenario::new(world, 7);
    scenario.search = Search::All;
    scenario.set_up(world)?;
    let mut operations = scenario.use_everything();
    operations.extend([
        json!({"op": "agent.created", "vm": "vm-2", "key": "vm-2"}),
        json!({"op": "registry.get", "id": "vm-2"}),
        json!({"op": "result", "json": "vm-2"}),
    ]);
    let response = scenario.create_vm(&operations).stemcell_api_version(1).run();
    expect_no_leak(&scenario, &response)?;
    scenario.check_logged_results(&response.stderr)?;
    if response.json["result"][0] != "vm-2" {
        return Err(format!("no VM was created: {}", response.json));
    }
    let arrived = scenario.received_secrets(world)?;
    let expect = |host: &str, unwanted: &[&str]| {
        let wanted = |name: &String| !unwanted.iter().any(|prefix| name.starts_with(prefix));
        let expected: BTreeSet<String> = scenario.allowed_at(host).into_iter().filter(wanted).collect();
        let got = arrived.get(host).cloned().unwrap_or_default();
        if got == expected { Ok(()) } else { Err(format!("{host} received {got:?}, expected {expected:?}")) }
    };
    expect("registry.iaas.test", &["stored."])?;
    expect("api.iaas.test", &["agent.", "env."])
}

fn failing_registry(world: &World) -> Result<(), String> {
    for (turn, answer) in [
        json!({"status": 500, "echo": true}),
        json!({"status": 401, "echo": true}),
        json!({"status": 302, "headers": {"Location": "https://evil.test/"}}),
        json!({"raw": "nonsense"}),
        json!({"raw": "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nhalf"}),
        json!({"status": 200, "echo": true}),
        json!({"status": 200, "body": {"settings": "{"}}),
        json!({"tls": "other-name"}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut scenario = Scenario::new(world, turn);
        let handshake = !answer["tls"].is_null();
        let key = if handshake { "registry.iaas.test" } else { "registry.iaas.test/instances/vm-2/settings" };
        scenario.served[key] = answer.clone();
        scenario.set_up(world)?;
        let mut operations = vec![
            json!({"op": "agent.bootstrap", "vm_name": "vm-2"}),
            json!({"op": "agent.created", "vm": "vm-2", "key": "vm-2"}),
        ];
        operations.extend(scenario.search_operations());
        operations.push(json!({"op": "error", "kind": "cloud", "message": "{{1|json}}"}));
        let response = scenario.create_vm(&operations).stemcell_api_version(1).run();
        expect_no_leak(&scenario, &response)?;
        scenario.received_secrets(world)?;
        if !response.json["error"]["message"].as_str().unwrap_or_default().contains("registry") {
            return Err(format!("{answer}: {}", response.json));
        }
        let reached = world.requests().iter().any(|arrived| arrived.host == "registry.iaas.test");
        if reached == handshake {
            return Err(format!("{answer}: the registry got a request: {reached}"));
        }
    }
    Ok(())
}

fn read_settings(world: &World) -> Result<(), String> {
    let mut scenario = Scenario::new(world, 8);
    scenario.search = Search::All;
    scenario.set_up(world)?;
    let mut operations = vec![
        json!({"op": "registry.get", "id": "vm-1"}),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"mbus": "{{0.ok.mbus}}", "disks": {"system": "/dev/sda", "persistent": {"disk-1": "/dev/sdc"}}}}),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"mbus": "mine"}}),
        json!({"op": "registry.get", "id": "vm-other"}),
        json!({"op": "http", "url": "https://open.iaas.test/?{{0.ok.mbus}}"}),
        json!({"op": "log", "message": "{{0.ok|json}}"}),
    ];
    let first = operations.len();
    operations.extend(scenario.search_operations());
    let arguments = json!(["vm-1", probe::cid(&json!(operations))]);
    let response = scenario.call("attach_disk", arguments).api_version(1).stemcell_api_version(1).run();
    expect_no_leak(&scenario, &response)?;
    let outcomes = probe::outcomes_in(response.message());
    let kinds: Vec<Value> = outcomes[..5].iter().map(|outcome| outcome["error"]["kind"].clone()).collect();
    if json!(kinds) != json!([null, null, "invalid", "denied", "denied"]) {
        return Err(format!("unexpected outcomes: {}", json!(outcomes[..5])));
    }
    if let Some(found) = outcomes[first..].iter().find(|outcome| outcome["ok"]["count"] != 0) {
        return Err(format!("a secret in the guest's memory: {found}"));
    }
    let arrived = scenario.received_secrets(world)?.remove("registry.iaas.test").unwrap_or_default();
    let returned = arrived.iter().filter(|name| name.starts_with("stored.")).count();
    if returned == 4 { Ok(()) } else { Err(format!("the registry received {arrived:?}")) }
}
