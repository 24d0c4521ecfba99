//! A guest that learned secrets (a server tells them backwards, which no
//! tripwire sees) and tries to pass them on in every way that it has; and
//! servers that tell them forwards, in every encoding.

use super::endings::clean;
use super::garden::seed;
use super::scene::{Scene, Search};
use crate::case::Case;
use crate::needles::forms;
use crate::world::World;
use serde_json::{Value, json};
use tests::Response;

const CLASS: &str = "secrets";

/// Who tells them.
const OPEN: &str = "5.6.7.18:443";

/// What a guest can do to a text.
const FILTERS: [&str; 8] = ["", "|json", "|base64", "|base64url", "|hex", "|hex|upper", "|percent", "|percent|lower"];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, holes: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, holes, move |world| {
            attempt(world).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        })
        .speaking_to(&["dns", OPEN])
    };
    vec![
        case("learned secrets in lines of the log", &["redact-log"], logged),
        case("learned secrets in what is printed", &["redact-log"], printed),
        case("learned secrets in the message of an error", &["redact-answer"], failed),
        case("learned secrets in a panic", &["redact-log"], panicked),
        case("learned secrets in a result", &["result-withheld"], returned),
        case("learned secrets in networks of a result", &["result-withheld"], networks).speaking_to(&[
            "dns",
            OPEN,
            "api:443",
            "5.6.7.11:443",
        ]),
        case("planted everywhere, then told by a server in every encoding", &["tripwire"], told),
    ]
}

/// Names of what the host knows to be a secret, and its place in what was learned.
fn known(scene: &Scene) -> Vec<(String, String)> {
    let unknown = [
        "agent.ntp",
        "registry.user",
        "hidden",
        "process",
        "client.key",
        "server.",
        "stored.",
        "token.",
        "captured",
        "env.",
    ];
    let is_known = |(name, _): &&(String, String)| !unknown.iter().any(|prefix| name.starts_with(prefix));
    scene.garden.planted().iter().filter(is_known).cloned().collect()
}

/// A scene in which a guest learns all that the host knows.
fn scene(world: &World, turn: usize) -> Result<(Scene, usize), String> {
    let mut scene = Scene::new(world, turn);
    let backwards: Vec<String> = known(&scene).iter().map(|(_, secret)| secret.chars().rev().collect()).collect();
    let count = backwards.len();
    scene.served["open.iaas.test/learn"] =
        json!({"headers": {"Content-Type": "application/json"}, "body": {"list": backwards}});
    scene.set(world)?;
    Ok((scene, count))
}

fn learn() -> Value {
    json!({"op": "http", "url": "https://open.iaas.test/learn", "keep": 1_000_000})
}

fn learned(number: usize, filter: &str) -> String {
    format!("it is {{{{0.ok.body.list.{number}|reverse{filter}}}}}, really")
}

fn run(scene: &Scene, operations: Vec<Value>) -> Result<Response, String> {
    let operations: Vec<Value> = std::iter::once(learn()).chain(operations).collect();
    let response = scene.call("create_disk", json!([1024, {"probe": operations}, null])).run();
    clean(scene, &response)?;
    Ok(response)
}

/// One line for every secret and filter, none of which says it.
fn lines(world: &World, turn: usize, operation: &str, key: &str) -> Result<(), String> {
    let (scene, count) = scene(world, turn)?;
    let all: Vec<Value> = (0..count)
        .flat_map(|number| FILTERS.map(|filter| json!({"op": operation, key: learned(number, filter) + "\n"})))
        .chain([json!({"op": "result", "json": "disk-1"})])
        .collect();
    let response = run(&scene, all)?;
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

fn logged(world: &World) -> Result<(), String> {
    lines(world, 0, "log", "message")
}

fn printed(world: &World) -> Result<(), String> {
    lines(world, 1, "print", "text")
}

fn failed(world: &World) -> Result<(), String> {
    for (turn, filter) in FILTERS.iter().enumerate() {
        let (scene, count) = scene(world, turn)?;
        let message: Vec<String> = (0..count).map(|number| learned(number, filter)).collect();
        let kind = ["cloud", "cpi", "no-disk-space", "not-supported"][turn % 4];
        let response = run(&scene, vec![json!({"op": "error", "kind": kind, "message": message.join("\n")})])?;
        let redacted = response.json["error"]["message"].as_str().unwrap_or_default().matches("<redacted>").count();
        if redacted < count {
            return Err(format!("{redacted} of {count} secrets are redacted: {}", response.json));
        }
    }
    Ok(())
}

fn panicked(world: &World) -> Result<(), String> {
    let (scene, count) = scene(world, 2)?;
    for number in 0..count {
        let filter = FILTERS[number % FILTERS.len()];
        let response = run(&scene, vec![json!({"op": "panic", "message": learned(number, filter)})])?;
        if !response.json.to_string().contains("<redacted>") {
            return Err(format!("nothing is redacted: {}", response.json));
        }
    }
    Ok(())
}

fn returned(world: &World) -> Result<(), String> {
    let (scene, count) = scene(world, 3)?;
    for number in 0..count {
        let filter = FILTERS[number % FILTERS.len()];
        let response = run(&scene, vec![json!({"op": "result", "json": learned(number, filter)})])?;
        if !response.json["error"]["message"].as_str().unwrap_or_default().contains("the result was withheld") {
            return Err(format!("the result was not withheld: {}", response.json));
        }
    }
    Ok(())
}

fn networks(world: &World) -> Result<(), String> {
    let (scene, count) = scene(world, 4)?;
    for (at, network) in [
        "{\"ip\": \"X\"}",
        "{\"extra\": {\"X\": 1}}",
        "{\"extra\": {\"a\": [{\"b\": \"X\"}]}}",
        "{\"cloud_properties\": {\"p\": \"X\"}}",
    ]
    .iter()
    .enumerate()
    {
        let value = learned((at * 7 + 3) % count, FILTERS[at]);
        let mut network: Value =
            serde_json::from_str(&network.replace('X', &value)).map_err(|error| error.to_string())?;
        network["name"] = json!("net");
        let slot = json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/vms", "headers": {"Content-Type": "application/json"}, "body": {"server": {"user_data": "{{1.ok}}"}}});
        let vm = json!({"op": "result", "json": {"vm": "vm-2", "networks": [network]}});
        let response = scene.create_vm(&[learn(), json!({"op": "agent.bootstrap"}), slot, vm]).run();
        clean(&scene, &response)?;
        if !response.json["error"]["message"].as_str().unwrap_or_default().contains("the result was withheld") {
            return Err(format!("the result was not withheld: {}", response.json));
        }
    }
    Ok(())
}

fn told(world: &World) -> Result<(), String> {
    let mut scene = Scene::new(world, 5);
    scene.search = Search::Plain;
    let known = known(&scene);
    let every: Vec<(String, &'static str, Vec<u8>)> = known
        .iter()
        .flat_map(|(name, secret)| forms(secret).into_iter().map(|(form, bytes)| (name.clone(), form, bytes)))
        .collect();
    // A prime apart, so that every form meets every shape in the course of time.
    for (name, form, bytes) in every.iter().skip(usize::try_from(seed() % 31).unwrap_or_default()).step_by(31) {
        let text = String::from_utf8_lossy(bytes);
        scene.served["open.iaas.test/told"] = json!({"body": format!("it is {text}.")});
        scene.set(world)?;
        let mut operations = vec![json!({"op": "http", "url": "https://open.iaas.test/told"})];
        operations.extend(scene.searches());
        let response = scene.call("has_vm", json!([tests::probe::cid(&json!(operations))])).run();
        clean(&scene, &response)?;
        let outcomes = tests::probe::outcomes_in(response.message());
        if outcomes[0]["error"]["reason"] != "leak" {
            return Err(format!("`{name}` as {form} was not withheld: {}", outcomes[0]));
        }
        if let Some(found) = outcomes[1..].iter().find(|outcome| outcome["ok"]["count"] != 0) {
            return Err(format!("`{name}` as {form} is in the guest's memory: {found}"));
        }
    }
    Ok(())
}
