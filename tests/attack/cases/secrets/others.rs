//! What takes more than one call, another guest, or the arguments of
//! `create_vm`.

use super::endings::clean;
use super::garden::seed;
use super::scene::{CLOUDS, Scene, Search};
use crate::case::{API, Case};
use crate::dns::Reply;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use tests::cloud::{env, needing, networks, post};
use tests::response::CANARY;
use tests::{Job, probe};

const CLASS: &str = "secrets";

const REGISTRY: &[&str] = &["dns", "5.6.7.19:25777"];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, holes: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, holes, move |world| {
            attempt(world).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        })
    };
    vec![
        case("planted everywhere, then a success with a registry", &[], with_registry).speaking_to(CLOUDS),
        case("planted everywhere, then a registry that fails", &[], failing_registry).speaking_to(REGISTRY),
        case("settings of the registry are seals to a guest", &["sealed-registry"], stored).speaking_to(REGISTRY),
        case("a seal of an earlier call", &[], earlier).speaking_to(API),
        case("a slot that the module does not declare", &["needs-slots"], undeclared),
        case(
            "agent settings in another's slot, and in pieces",
            &["slot-takes", "seal-transformed", "seal-outside-slot"],
            settings,
        )
        .speaking_to(API),
        case("a property by the name of agent settings", &["property-name"], namesake),
        case("the message bus and the blobstore of a VM's env", &["endpoint-of-env"], of_env).speaking_to(&["dns"]),
        case("a certificate of a client's is shown where the grant says", &[], certificate).speaking_to(API),
        case("a server that takes no token does not make it go on forever", &["login-count"], endless)
            .speaking_to(&["dns", "5.6.7.20:443"]),
    ]
}

fn prepared(world: &World, served: Value) -> Result<(), String> {
    let address = |name: &str, last: u8| (name.to_owned(), vec![Reply::Addresses(vec![[5, 6, 7, last].into()])]);
    let names = HashMap::from([address("api.iaas.test", 10), address("id.iaas.test", 20), address("alias.test", 40)]);
    world.set(names, Served::new(&served))
}

fn with_registry(world: &World) -> Result<(), String> {
    let mut scene = Scene::new(world, 7);
    scene.search = Search::All;
    scene.set(world)?;
    let mut operations = scene.visits();
    operations.extend([
        json!({"op": "agent.created", "vm": "vm-2", "key": "vm-2"}),
        json!({"op": "registry.get", "id": "vm-2"}),
        json!({"op": "result", "json": "vm-2"}),
    ]);
    let response = scene.create_vm(&operations).stemcell(1).run();
    clean(&scene, &response)?;
    scene.held(&response.stderr)?;
    if response.json["result"][0] != "vm-2" {
        return Err(format!("no VM was made: {}", response.json));
    }
    let arrived = scene.arrived(world)?;
    let expect = |host: &str, unwanted: &[&str]| {
        let wanted = |name: &String| !unwanted.iter().any(|prefix| name.starts_with(prefix));
        let expected: BTreeSet<String> = scene.belonging(host).into_iter().filter(wanted).collect();
        let got = arrived.get(host).cloned().unwrap_or_default();
        if got == expected { Ok(()) } else { Err(format!("{host} got {got:?} instead of {expected:?}")) }
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
        let mut scene = Scene::new(world, turn);
        let handshake = !answer["tls"].is_null();
        let key = if handshake { "registry.iaas.test" } else { "registry.iaas.test/instances/vm-2/settings" };
        scene.served[key] = answer.clone();
        scene.set(world)?;
        let mut operations = vec![
            json!({"op": "agent.bootstrap", "vm_name": "vm-2"}),
            json!({"op": "agent.created", "vm": "vm-2", "key": "vm-2"}),
        ];
        operations.extend(scene.searches());
        operations.push(json!({"op": "error", "kind": "cloud", "message": "{{1|json}}"}));
        let response = scene.create_vm(&operations).stemcell(1).run();
        clean(&scene, &response)?;
        scene.arrived(world)?;
        if !response.json["error"]["message"].as_str().unwrap_or_default().contains("registry") {
            return Err(format!("{answer}: {}", response.json));
        }
        let reached = world.arrived().iter().any(|arrived| arrived.host == "registry.iaas.test");
        if reached == handshake {
            return Err(format!("{answer}: the registry got a request: {reached}"));
        }
    }
    Ok(())
}

fn stored(world: &World) -> Result<(), String> {
    let mut scene = Scene::new(world, 8);
    scene.search = Search::All;
    scene.set(world)?;
    let mut operations = vec![
        json!({"op": "registry.get", "id": "vm-1"}),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"mbus": "{{0.ok.mbus}}", "disks": {"system": "/dev/sda", "persistent": {"disk-1": "/dev/sdc"}}}}),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"mbus": "mine"}}),
        json!({"op": "registry.get", "id": "vm-other"}),
        json!({"op": "http", "url": "https://open.iaas.test/?{{0.ok.mbus}}"}),
        json!({"op": "log", "message": "{{0.ok|json}}"}),
    ];
    let first = operations.len();
    operations.extend(scene.searches());
    let arguments = json!(["vm-1", probe::cid(&json!(operations))]);
    let response = scene.call("attach_disk", arguments).api_version(1).stemcell(1).run();
    clean(&scene, &response)?;
    let outcomes = probe::outcomes_in(response.message());
    let words: Vec<Value> = outcomes[..5].iter().map(|outcome| outcome["error"]["kind"].clone()).collect();
    if json!(words) != json!([null, null, "invalid", "denied", "denied"]) {
        return Err(format!("other outcomes: {}", json!(outcomes[..5])));
    }
    if let Some(found) = outcomes[first..].iter().find(|outcome| outcome["ok"]["count"] != 0) {
        return Err(format!("a secret in the guest's memory: {found}"));
    }
    let arrived = scene.arrived(world)?.remove("registry.iaas.test").unwrap_or_default();
    let kept = arrived.iter().filter(|name| name.starts_with("stored.")).count();
    if kept == 4 { Ok(()) } else { Err(format!("the registry got back {arrived:?}")) }
}

fn slotted(world: &World, keys: Value) -> Job {
    let slots = json!([{"method": "POST", "path": "/v1/vms", "place": "json:/data", "takes": ["password"]}]);
    let mut row = json!({"grant": {"slots": slots}});
    for (key, value) in keys.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
    row::job(world, &row)
}

fn canaries(world: &World) -> Vec<String> {
    let arrived = world.arrived();
    let held = arrived.iter().filter(|one| tests::process::contains(&one.request.raw, CANARY.as_bytes()));
    held.map(|one| one.summary()).collect()
}

fn earlier(world: &World) -> Result<(), String> {
    let job = slotted(world, json!({}));
    prepared(world, json!({}))?;
    // Backwards, as a seal is not logged as it is.
    let told = job
        .call("has_vm", json!([probe::cid(&json!([{"op": "log", "message": "seal {{props.password|reverse}};"}]))]))
        .run();
    let seal = told
        .stderr
        .split_once("seal ")
        .and_then(|(_, rest)| rest.split_once(';'))
        .map(|(seal, _)| seal.chars().rev().collect::<String>());
    let seal = seal.filter(|seal| seal.len() == 40).ok_or_else(|| format!("no seal was told: {}", told.stderr))?;
    let send = json!([post("https://api.iaas.test/v1/vms", &json!({"data": seal}))]);
    let response = job.call("has_vm", json!([probe::cid(&send)])).run();
    let outcome = probe::outcomes_in(response.message()).remove(0);
    let arrived = world.arrived();
    let as_it_is = arrived.first().is_some_and(|one| one.request.json() == json!({"data": seal}));
    if outcome["ok"]["status"] != 200 || arrived.len() != 1 || !as_it_is || !canaries(world).is_empty() {
        return Err(format!("{outcome}, and {:?} arrived", arrived.first().map(|one| one.request.text().to_owned())));
    }
    Ok(())
}

fn undeclared(world: &World) -> Result<(), String> {
    let send = json!([post("https://api.iaas.test/v1/vms", &json!({"data": "{{props.password}}"}))]);
    for slots in [
        json!([]),
        json!([{"method": "POST", "path": "/v1/vms", "place": "json:/other", "takes": ["password"]}]),
        json!([{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]),
    ] {
        let needs =
            json!({"version": 1, "http": [{"id": "a", "to": "*", "methods": ["*"], "paths": ["/**"], "slots": slots}]});
        let job = slotted(world, json!({}))
            .guest_bytes(&needing(&needs))
            .configure(|config| config["cache"] = json!("../cache"));
        prepared(world, json!({}))?;
        let response = job.call("has_vm", json!([probe::cid(&send)])).run();
        let outcome = probe::outcomes_in(response.message()).remove(0);
        if outcome["error"]["reason"] != "slot" || !world.contacts()?.is_empty() || !world.arrived().is_empty() {
            return Err(format!("with {slots}: {outcome}"));
        }
    }
    Ok(())
}

/// A `create_vm` with the canaries of the default job and env.
fn create_vm(job: &Job, operations: Value) -> tests::Response {
    job.call("create_vm", json!(["agent-1", "stemcell-1", {"probe": operations}, networks(), [], env()])).run()
}

fn settings(world: &World) -> Result<(), String> {
    let agent = json!({"grant": {"slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]}});
    for (keys, body, said) in [
        (json!({}), json!({"data": "{{0.ok}}"}), "whose slot takes `password` only"),
        (agent.clone(), json!({"name": "{{0.ok}}"}), "where the grant has no slot"),
        (agent.clone(), json!({"data": "{{0.ok|base64}}"}), "was changed by base64"),
        (agent.clone(), json!({"data": "{{0.ok|first}}", "x": "{{0.ok|second}}"}), "was changed by splitting"),
        (agent.clone(), json!({"data": "#cloud-config\n{{0.ok}}"}), "within a longer text"),
    ] {
        let job = slotted(world, keys);
        prepared(world, json!({}))?;
        let send = post("https://api.iaas.test/v1/vms", &body);
        let told = json!({"op": "error", "kind": "cloud", "message": "{{1|json}}"});
        let response = create_vm(&job, json!([{"op": "agent.bootstrap"}, send, told]));
        if !response.message().contains(said) || !world.contacts()?.is_empty() {
            return Err(format!("no `{said}` in {}", response.message()));
        }
    }
    let job = slotted(world, agent);
    prepared(world, json!({}))?;
    let send = post("https://api.iaas.test/v1/vms", &json!({"data": "{{0.ok}}"}));
    let response = create_vm(&job, json!([{"op": "agent.bootstrap"}, send, {"op": "result", "json": "vm-1"}]));
    if response.json["result"][0] == "vm-1" && canaries(world) == ["POST api.iaas.test/v1/vms"] {
        return Ok(());
    }
    Err(format!("the settings did not arrive: {} {:?}", response.json, canaries(world)))
}

fn namesake(world: &World) -> Result<(), String> {
    let grant = json!({"slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]});
    let job = slotted(world, json!({"grant": grant, "config": {"properties": {"agent": format!("{CANARY}-agent")}}}));
    prepared(world, json!({}))?;
    let send = post("https://api.iaas.test/v1/vms", &json!({"data": "{{props.agent}}"}));
    let told = json!({"op": "error", "kind": "cloud", "message": "{{1|json}}"});
    let response = create_vm(&job, json!([{"op": "agent.bootstrap"}, send, told]));
    if response.message().contains("whose slot takes `agent` only") && world.contacts()?.is_empty() {
        return Ok(());
    }
    Err(format!("the property travels like agent settings: {}", response.json))
}

fn of_env(world: &World) -> Result<(), String> {
    let env = json!({"bosh": {"mbus": {"urls": ["nats://alias.test:4222", "nats://5.6.7.40:8774"]}, "blobstores": [{"options": {"endpoint": "https://alias.test:8443"}}]}});
    for (origin, said) in [
        ("http://alias.test:4222", "the message bus"),
        ("https://5.6.7.40:8774", "the message bus"),
        ("https://alias.test:8774", "the message bus"),
        ("https://alias.test:8443", "the blobstore"),
        ("https://5.6.7.40:8443", "the blobstore"),
    ] {
        let grants = json!([{"id": "a", "to": origin, "methods": ["GET"], "paths": ["/**"]}]);
        let job = row::job(world, &json!({"grants": grants}));
        prepared(world, json!({}))?;
        let get = json!({"op": "http", "url": format!("{origin}/")});
        let told = json!({"op": "error", "kind": "cloud", "message": "{{0|json}}"});
        let arguments = json!(["agent-1", "stemcell-1", {"probe": [get, told]}, networks(), [], env]);
        let response = job.call("create_vm", arguments).run();
        if !response.message().contains(said) || !response.message().contains("denied") || !world.arrived().is_empty() {
            return Err(format!("{origin}: {}", response.json));
        }
    }
    Ok(())
}

fn certificate(world: &World) -> Result<(), String> {
    let client = world.client();
    let tls = json!({"client": {"cert": "${client.cert}", "key": "${client.key}"}});
    let grant = |path: &str, tls: Value| json!({"id": path, "to": "https://api.iaas.test", "methods": ["GET"], "paths": [format!("/{path}/**")], "tls": tls});
    let row = json!({"grants": [grant("with", tls), grant("without", json!({}))], "config": {"properties": {"client": {"cert": client.certificate, "key": client.key}}}});
    let job = row::job(world, &row);
    prepared(world, json!({"api.iaas.test": {"tls": "client"}}))?;
    let script = json!([{"op": "http", "url": "https://api.iaas.test/with/x"}, {"op": "http", "url": "https://api.iaas.test/without/x"}]);
    let response = job.call("has_vm", json!([probe::cid(&script)])).run();
    let outcomes = probe::outcomes_in(response.message());
    let arrived: Vec<String> = world.arrived().iter().map(|one| one.summary()).collect();
    if outcomes[0]["ok"]["status"] == 200 && outcomes[1]["ok"].is_null() && arrived == ["GET api.iaas.test/with/x"] {
        return Ok(());
    }
    Err(format!("{} and {arrived:?}", json!(outcomes)))
}

fn endless(world: &World) -> Result<(), String> {
    let login = json!({"to": "https://id.iaas.test", "path": "/tokens", "body": {"password": "${password}"}, "token": "header:X-Subject-Token", "send": {"header": "X-Auth-Token"}, "expires": {"in_seconds": "header:X-Expires"}});
    let job = row::job(world, &json!({"policy": {"logins": {"main": login}}, "grant": {"auth": {"login": "main"}}}));
    prepared(
        world,
        json!({"id.iaas.test": {"headers": {"X-Subject-Token": "a-token-of-the-cloud", "X-Expires": "0"}}}),
    )?;
    let script = json!([{"op": "session", "name": "main", "repeat": 100}, {"op": "session", "name": "main"}]);
    let response = job.call("has_vm", json!([probe::cid(&script)])).run();
    let outcomes = probe::outcomes_in(response.message());
    let count = world.arrived().len();
    if count == 100 && outcomes[1].to_string().contains("was done 100 times in this call") {
        return Ok(());
    }
    Err(format!("{count} logins: {}", json!(outcomes)))
}
