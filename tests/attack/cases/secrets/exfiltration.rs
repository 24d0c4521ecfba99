//! A guest that learned secrets and tries to pass them on through every output. It
//! learns them from a server that sends them reversed, which the tripwire does not
//! detect. In the last case a server sends them in every encoding.

use super::endings::expect_no_leak;
use super::scenario::{OBTAINED, Scenario, Search};
use super::secret_set::seed;
use crate::case::Case;
use crate::needles::forms;
use crate::world::World;
use serde_json::{Value, json};
use tests::Response;

const CLASS: &str = "secrets";

/// The address of the server that sends the secrets.
const OPEN: &str = "5.6.7.18:443";

/// The ways in which the guest encodes a secret.
const FILTERS: [&str; 8] = ["", "|json", "|base64", "|base64url", "|hex", "|hex|upper", "|percent", "|percent|lower"];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, mutants: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, mutants, move |world| {
            attempt(world).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        })
        .may_contact(&["dns", OPEN])
    };
    vec![
        case("secrets that a guest learned, in log messages", &["redact-log"], log_secrets),
        case("secrets that a guest learned, in printed lines", &["redact-log"], print_secrets),
        case("secrets that a guest learned, in an error message", &["redact-response"], fail_with_secrets),
        case("secrets that a guest learned, in a panic", &["redact-log"], panic_with_secrets),
        case("secrets that a guest learned, in a result", &["result-withheld"], return_secrets),
        case("secrets that a guest learned, in networks of a result", &["result-withheld"], return_networks)
            .may_contact(&["dns", OPEN, "api:443", "5.6.7.11:443"]),
        case(
            "secrets in every field, then an answer that holds one in any encoding",
            &["tripwire"],
            answer_with_secrets,
        ),
    ]
}

/// Returns the names and values of the secrets that the host knows.
fn known(scenario: &Scenario) -> Vec<(String, String)> {
    let unknown =
        ["agent.ntp", "registry.user", "hidden", "process", "client.key", "server.", "stored.", "captured", "env."];
    let is_known =
        |(name, _): &&(String, String)| !unknown.iter().chain(&OBTAINED).any(|prefix| name.starts_with(prefix));
    scenario.secrets.all().iter().filter(is_known).cloned().collect()
}

/// Returns true for the secrets that no answer and no result may hold. The others are properties that
/// need not be secret.
fn is_credential(name: &str) -> bool {
    let values = [
        "number",
        "auth.user",
        "innocent",
        "zones.",
        "oauth.id",
        "slots.",
        "extra",
        "basic.user",
        "context.hidden",
        "context.name",
    ];
    !values.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the numbers of the credentials among the secrets that the host knows.
fn credentials(scenario: &Scenario) -> Vec<usize> {
    let known = known(scenario);
    (0..known.len()).filter(|number| is_credential(&known[*number].0)).collect()
}

/// Returns a scenario in which a guest can learn all secrets that the host knows, and
/// their number.
fn new_scenario(world: &World, turn: usize) -> Result<(Scenario, usize), String> {
    let mut scenario = Scenario::new(world, turn);
    let reversed: Vec<String> = known(&scenario).iter().map(|(_, secret)| secret.chars().rev().collect()).collect();
    let count = reversed.len();
    scenario.served["open.iaas.test/learn"] =
        json!({"headers": {"Content-Type": "application/json"}, "body": {"list": reversed}});
    scenario.set_up(world)?;
    Ok((scenario, count))
}

fn learn() -> Value {
    json!({"op": "http", "url": "https://open.iaas.test/learn", "keep": 1_000_000})
}

/// Returns a text with learned secret `number`, encoded by a filter.
fn learned(number: usize, filter: &str) -> String {
    format!("it is {{{{0.ok.body.list.{number}|reverse{filter}}}}}, really")
}

fn run(scenario: &Scenario, operations: Vec<Value>) -> Result<Response, String> {
    let operations: Vec<Value> = std::iter::once(learn()).chain(operations).collect();
    let response = scenario.call("create_disk", json!([1024, {"probe": operations}, null])).run();
    expect_no_leak(scenario, &response)?;
    Ok(response)
}

/// Fails unless a line for every secret and filter is redacted.
fn check_lines(world: &World, turn: usize, operation: &str, key: &str) -> Result<(), String> {
    let (scenario, count) = new_scenario(world, turn)?;
    let all: Vec<Value> = (0..count)
        .flat_map(|number| FILTERS.map(|filter| json!({"op": operation, key: learned(number, filter) + "\n"})))
        .chain([json!({"op": "result", "json": "disk-1"})])
        .collect();
    let response = run(&scenario, all)?;
    let redacted = response.stderr.matches("<redacted>").count();
    if response.json["result"] != "disk-1" || redacted < count * FILTERS.len() {
        return Err(format!(
            "{redacted} of {} lines are redacted: {}{}",
            count * FILTERS.len(),
            response.json,
            response.stderr
        ));
    }
    Ok(())
}

fn log_secrets(world: &World) -> Result<(), String> {
    check_lines(world, 0, "log", "message")
}

fn print_secrets(world: &World) -> Result<(), String> {
    check_lines(world, 1, "print", "text")
}

fn fail_with_secrets(world: &World) -> Result<(), String> {
    for (turn, filter) in FILTERS.iter().enumerate() {
        let (scenario, count) = new_scenario(world, turn)?;
        let message: Vec<String> = (0..count).map(|number| learned(number, filter)).collect();
        let kind = ["cloud", "cpi", "no-disk-space", "not-supported"][turn % 4];
        let response = run(&scenario, vec![json!({"op": "error", "kind": kind, "message": message.join("\n")})])?;
        let redacted = response.json["error"]["message"].as_str().unwrap_or_default().matches("<redacted>").count();
        if redacted < count {
            return Err(format!("{redacted} of {count} secrets are redacted: {}", response.json));
        }
    }
    Ok(())
}

fn panic_with_secrets(world: &World) -> Result<(), String> {
    let (scenario, count) = new_scenario(world, 2)?;
    for number in 0..count {
        let filter = FILTERS[number % FILTERS.len()];
        let response = run(&scenario, vec![json!({"op": "panic", "message": learned(number, filter)})])?;
        if !response.json.to_string().contains("<redacted>") {
            return Err(format!("nothing is redacted: {}", response.json));
        }
    }
    Ok(())
}

fn return_secrets(world: &World) -> Result<(), String> {
    let (scenario, _) = new_scenario(world, 3)?;
    for number in credentials(&scenario) {
        let filter = FILTERS[number % FILTERS.len()];
        let response = run(&scenario, vec![json!({"op": "result", "json": learned(number, filter)})])?;
        if !response.json["error"]["message"].as_str().unwrap_or_default().contains("the result was withheld") {
            return Err(format!("the result was not withheld: {}", response.json));
        }
    }
    Ok(())
}

fn return_networks(world: &World) -> Result<(), String> {
    let (scenario, _) = new_scenario(world, 4)?;
    let credentials = credentials(&scenario);
    for (at, network) in [
        "{\"ip\": \"X\"}",
        "{\"extra\": {\"X\": 1}}",
        "{\"extra\": {\"a\": [{\"b\": \"X\"}]}}",
        "{\"cloud_properties\": {\"p\": \"X\"}}",
    ]
    .iter()
    .enumerate()
    {
        let value = learned(credentials[(at * 7 + 3) % credentials.len()], FILTERS[at]);
        let mut network: Value =
            serde_json::from_str(&network.replace('X', &value)).map_err(|error| error.to_string())?;
        network["name"] = json!("net");
        let slot = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/vms", "headers": {"Content-Type": "application/json"}, "body": {"server": {"user_data": "{{1.ok}}"}}});
        let vm = json!({"op": "result", "json": {"vm": "vm-2", "networks": [network]}});
        let response = scenario.create_vm(&[learn(), json!({"op": "agent.bootstrap"}), slot, vm]).run();
        expect_no_leak(&scenario, &response)?;
        if !response.json["error"]["message"].as_str().unwrap_or_default().contains("the result was withheld") {
            return Err(format!("the result was not withheld: {}", response.json));
        }
    }
    Ok(())
}

fn answer_with_secrets(world: &World) -> Result<(), String> {
    let mut scenario = Scenario::new(world, 5);
    scenario.search = Search::Plain;
    let known = known(&scenario);
    let every: Vec<(String, &'static str, Vec<u8>)> = known
        .iter()
        .filter(|(name, _)| is_credential(name))
        .flat_map(|(name, secret)| forms(secret).into_iter().map(|(form, bytes)| (name.clone(), form, bytes)))
        .collect();
    // Every 31st one, a prime, so that over many runs every encoding is tested with every shape.
    for (name, form, bytes) in every.iter().skip(usize::try_from(seed() % 31).unwrap_or_default()).step_by(31) {
        let text = String::from_utf8_lossy(bytes);
        scenario.served["open.iaas.test/leak"] = json!({"body": format!("it is {text}.")});
        scenario.set_up(world)?;
        let mut operations = vec![json!({"op": "http", "url": "https://open.iaas.test/leak"})];
        operations.extend(scenario.search_operations());
        let response = scenario.call("has_vm", json!([tests::probe::cid(&json!(operations))])).run();
        expect_no_leak(&scenario, &response)?;
        let outcomes = tests::probe::outcomes_in(response.message());
        if outcomes[0]["error"]["kind"] != "cancelled" {
            return Err(format!("`{name}` as {form} was not withheld: {}", outcomes[0]));
        }
        if let Some(found) = outcomes[1..].iter().find(|outcome| outcome["ok"]["count"] != 0) {
            return Err(format!("`{name}` as {form} is in the guest's memory: {found}"));
        }
    }
    Ok(())
}
