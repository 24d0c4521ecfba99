//! Floods of secrets: the host keeps only a bounded amount of them.

use crate::case::{API, Case};
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::cloud::{create_vm, vm_outcomes};
use tests::response::CANARY;
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
        Case::offline(CLASS, "user-data that grows with every encoding", &["agent-total"], || {
            let quotes = "\"".repeat(200_000);
            let encodings = ["json-string"; 4];
            let bootstrap = json!({"op": "agent.bootstrap", "vm_name": quotes, "encodings": encodings});
            let response = create_vm(&Job::default(), &json!([bootstrap])).run();
            let said = vm_outcomes(&response)[0]["error"]["message"].clone();
            assert!(said.as_str().is_some_and(|said| said.contains("take more than a mebibyte in all")), "{said}");
        }),
    ]
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
