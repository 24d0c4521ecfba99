//! Floods of secrets: the host keeps only a bounded amount of them.

use crate::case::{API, Case};
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::cloud::{create_vm, networks, vm_outcomes};
use tests::response::CANARY;
use tests::rows::merge_patch;
use tests::{Job, probe};

const CLASS: &str = "secrets";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(CLASS, "too many captured values", &["capture-total"], |world| {
            captures(world, |number| format!("{CANARY}-{number}"))
        })
        .may_contact(API),
        Case::new(CLASS, "captured values that equal a property cost as much as others", &["capture-cost"], |world| {
            captures(world, |_| format!("{CANARY}-property"))
        })
        .may_contact(API),
        Case::offline(
            CLASS,
            "agent settings that a guest makes larger until they are refused",
            &["agent-reserve"],
            || {
                for addition in
                    [json!({"vm_name": "x".repeat(5000)}), json!({"vm_name": "v", "system_disk": "\"".repeat(1100)})]
                {
                    let said = refusal(&addition);
                    assert!(said.contains("but at most 4096 are allowed"), "{said}");
                }
            },
        ),
        Case::offline(CLASS, "more user-data than a call needs", &["agent-bootstraps"], || {
            let bootstrap = |number: usize| json!({"op": "agent.bootstrap", "vm_name": format!("vm-{number}")});
            let response = create_vm(&Job::default(), &(0..9).map(bootstrap).collect()).run();
            let outcomes = vm_outcomes(&response);
            assert!(outcomes.iter().take(8).all(|outcome| outcome["error"].is_null()), "{outcomes:?}");
            let said = outcomes[8]["error"]["message"].as_str().unwrap_or_default();
            assert!(said.contains("was called 8 times in this call"), "{outcomes:?}");
        }),
        Case::offline(CLASS, "the marker of agent settings in what a guest adds to them", &["agent-marker"], || {
            let marker = "__wasm-cpi-agent-settings-5e0c7a41d29b";
            for addition in
                [json!({"vm_name": marker}), json!({"vm_name": "v", "system_disk": format!("/dev/{marker}")})]
            {
                let said = refusal(&addition);
                assert!(said.contains("contains their marker"), "{said}");
            }
        }),
        Case::offline(
            CLASS,
            "agent settings with encodings that make them larger and larger",
            &["agent-encodings"],
            || {
                for encodings in
                    [json!(["base64", "base64"]), json!(["base64", "base64url"]), json!(["json-string", "json-string"])]
                {
                    let said = refusal(&json!({"encodings": encodings}));
                    assert!(said.contains("one encoding twice, or with two kinds of base64"), "{said}");
                }
            },
        ),
        Case::offline(
            CLASS,
            "agent settings too large for the platform fail before the guest runs",
            &["agent-size"],
            || {
                let script = json!([{"op": "error", "kind": "cloud", "message": "the guest ran"}]);
                let env = json!({"bosh": {"password": format!("{CANARY}-{}", "x".repeat(100_000))}});
                let arguments = json!(["agent-1", "stemcell-1", {"probe": script}, networks(), [], env]);
                let response = Job::default().call("create_vm", arguments).run();
                let said = response.message();
                assert!(
                    said.contains("take up to") && said.contains("`env` (") && !said.contains("the guest ran"),
                    "{said}"
                );
            },
        ),
    ]
}

/// Returns the message with which a bootstrap is refused.
fn refusal(bootstrap: &Value) -> String {
    let mut operation = json!({"op": "agent.bootstrap"});
    merge_patch(&mut operation, bootstrap);
    let response = create_vm(&Job::default(), &json!([operation])).run();
    vm_outcomes(&response)[0]["error"]["message"].as_str().unwrap_or_default().to_owned()
}

fn captures(world: &World, value: fn(usize) -> String) -> Result<(), String> {
    let capture = json!({"method": "POST", "path": "/v1/login", "place": "json:/token", "as": "token"});
    let job = row::job(world, &json!({"grant": {"captures": [capture]}}));
    let answer =
        |number: usize| json!({"headers": {"Content-Type": "application/json"}, "body": {"token": value(number)}});
    let answers: Vec<Value> = (0..300).map(answer).collect();
    world.reset(row::names(&Value::Null), Served::new(&json!({"api.iaas.test": answers})))?;
    let login = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/login", "repeat": 300});
    let response = job.call("has_vm", json!([probe::cid(&json!([login]))])).run();
    let outcome = probe::outcomes_in(response.message()).remove(0);
    let said = outcome["error"]["message"].as_str().unwrap_or_default();
    if said.contains("the call has captured as many values as it may") { Ok(()) } else { Err(outcome.to_string()) }
}
