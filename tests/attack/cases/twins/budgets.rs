//! Budgets that are used up value by value: what remains must not depend on secrets.

use crate::case::{API, Case};
use crate::twins::{CLASS, Rules, compare, run};
use crate::world::World;
use serde_json::{Value, json};

/// More captures than a call may have.
const CAPTURES: usize = 300;

const SECRETS: [&str; 2] = ["k3x9Qz7mT5vW2yB8nC4dF6gH", "Zfremd-anders-laenger-Q81x"];

pub(super) fn cases() -> Vec<Case> {
    let name = "a captured value that equals a secret costs as much as any other";
    vec![
        // The first answers hold the secret of the first run. If the runtime did not count a value
        // that it knows already, that run could capture more values.
        Case::new(CLASS, name, &["capture-cost"], |world| {
            let token = |number: usize| if number < 2 { SECRETS[0].to_owned() } else { format!("token-{number}") };
            let runs = SECRETS.map(|secret| (secret, tokens(&token)));
            capture(world, &runs)
        })
        .may_contact(API),
        Case::new(CLASS, "a long captured value costs as much as a short one", &[], |world| {
            let padded = |length: usize| tokens(&|number| format!("{number}{}", "t".repeat(length)));
            capture(world, &[(SECRETS[0], padded(1)), (SECRETS[0], padded(5_000)), (SECRETS[0], padded(16_000))])
        })
        .may_contact(API),
    ]
}

fn tokens(token: &dyn Fn(usize) -> String) -> Vec<String> {
    (0..CAPTURES).map(token).collect()
}

/// Captures as many values as it can. Each run has the value of a property, and the values that the
/// server hands out.
fn capture(world: &World, runs: &[(&str, Vec<String>)]) -> Result<(), String> {
    let answer = |token: &String| json!({"headers": {"Content-Type": "application/json"}, "body": {"token": token}});
    let row = |(secret, tokens): &(&str, Vec<String>)| {
        json!({
            "config": {"properties": {"password": secret}},
            "grant": {"captures": [{"method": "POST", "path": "/v1/login", "place": "json:/token", "as": "token"}]},
            "serve": {"api.iaas.test": tokens.iter().map(answer).collect::<Vec<Value>>()},
            "script": [{"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/login", "repeat": CAPTURES}],
        })
    };
    let runs: Vec<_> = runs.iter().map(|one| run(world, one.0, row(one), &[one.0])).collect();
    compare(world, &runs, Rules::default())
}
