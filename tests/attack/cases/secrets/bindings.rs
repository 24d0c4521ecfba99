//! Secrets that grants bind to slots, certificates and logins. These cases need more
//! than one call, another guest, or the arguments of `create_vm`.

use super::secret_set::seed;
use crate::case::{API, Case};
use crate::dns::Reply;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::cloud::{env, networks, post, probe_with_needs};
use tests::response::CANARY;
use tests::{Job, probe};

const CLASS: &str = "secrets";

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, mutants: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, mutants, move |world| {
            attempt(world).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        })
    };
    vec![
        case("a seal of an earlier call", &[], reuse_seal).may_contact(API),
        case("a slot that the guest does not declare", &["needs-slots"], use_undeclared_slot),
        case(
            "agent settings in another secret's slot, and in pieces",
            &["slot-takes", "seal-transformed", "seal-outside-slot"],
            agent_settings,
        )
        .may_contact(API),
        case("a property with the name of agent settings", &["property-name"], property_named_agent),
        case("the message bus and the blobstore of a VM's env", &["endpoint-of-env"], env_endpoints)
            .may_contact(&["dns"]),
        case("a client certificate is sent only where the grant says", &[], client_certificate).may_contact(API),
        case("logins without end", &["login-count"], endless_logins).may_contact(&["dns", "5.6.7.20:443"]),
    ]
}

/// Sets up the names of these cases, and what servers answer.
fn set_up(world: &World, served: Value) -> Result<(), String> {
    let address = |name: &str, last: u8| (name.to_owned(), vec![Reply::Addresses(vec![[5, 6, 7, last].into()])]);
    let names = HashMap::from([address("api.iaas.test", 10), address("id.iaas.test", 20), address("alias.test", 40)]);
    world.reset(names, Served::new(&served))
}

/// Returns a job with a slot for the password, or with other keys of a row.
fn job_with_slot(world: &World, keys: Value) -> Job {
    let slots = json!([{"method": "POST", "path": "/v1/vms", "place": "json:/data", "takes": ["password"]}]);
    let mut row = json!({"grant": {"slots": slots}});
    for (key, value) in keys.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
    row::job(world, &row)
}

/// Returns the requests that hold a canary.
fn requests_with_canary(world: &World) -> Vec<String> {
    let arrived = world.requests();
    let held = arrived.iter().filter(|one| tests::process::contains(&one.request.raw, CANARY.as_bytes()));
    held.map(|one| one.summary()).collect()
}

fn reuse_seal(world: &World) -> Result<(), String> {
    let job = job_with_slot(world, json!({}));
    set_up(world, json!({}))?;
    // Reversed, as the log would redact the seal itself.
    let logged = job
        .call("has_vm", json!([probe::cid(&json!([{"op": "log", "message": "seal {{props.password|reverse}};"}]))]))
        .run();
    let seal = logged
        .stderr
        .split_once("seal ")
        .and_then(|(_, rest)| rest.split_once(';'))
        .map(|(seal, _)| seal.chars().rev().collect::<String>());
    let seal = seal.filter(|seal| seal.len() == 40).ok_or_else(|| format!("no seal was logged: {}", logged.stderr))?;
    let send = json!([post("https://api.iaas.test/v1/vms", &json!({"data": seal}))]);
    let response = job.call("has_vm", json!([probe::cid(&send)])).run();
    let outcome = probe::outcomes_in(response.message()).remove(0);
    let arrived = world.requests();
    let is_unchanged = arrived.first().is_some_and(|one| one.request.json() == json!({"data": seal}));
    if outcome["ok"]["status"] != 200 || arrived.len() != 1 || !is_unchanged || !requests_with_canary(world).is_empty()
    {
        return Err(format!("{outcome}, and {:?} arrived", arrived.first().map(|one| one.request.text().to_owned())));
    }
    Ok(())
}

fn use_undeclared_slot(world: &World) -> Result<(), String> {
    let send = json!([post("https://api.iaas.test/v1/vms", &json!({"data": "{{props.password}}"}))]);
    for slots in [
        json!([]),
        json!([{"method": "POST", "path": "/v1/vms", "place": "json:/other", "takes": ["password"]}]),
        json!([{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]),
    ] {
        let needs =
            json!({"version": 1, "http": [{"id": "a", "to": "*", "methods": ["*"], "paths": ["/**"], "slots": slots}]});
        let job = job_with_slot(world, json!({}))
            .guest_bytes(&probe_with_needs(&needs))
            .configure(|config| config["cache"] = json!("../cache"));
        set_up(world, json!({}))?;
        let response = job.call("has_vm", json!([probe::cid(&send)])).run();
        let outcome = probe::outcomes_in(response.message()).remove(0);
        if outcome["error"]["reason"] != "slot" || !world.take_contacts()?.is_empty() || !world.requests().is_empty() {
            return Err(format!("with {slots}: {outcome}"));
        }
    }
    Ok(())
}

/// Calls `create_vm` with the canaries of the default job and env.
fn create_vm(job: &Job, operations: Value) -> tests::Response {
    job.call("create_vm", json!(["agent-1", "stemcell-1", {"probe": operations}, networks(), [], env()])).run()
}

fn agent_settings(world: &World) -> Result<(), String> {
    let agent = json!({"grant": {"slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]}});
    for (keys, body, said) in [
        (json!({}), json!({"data": "{{0.ok}}"}), "whose slot takes `password` only"),
        (agent.clone(), json!({"name": "{{0.ok}}"}), "where the grant has no slot"),
        (agent.clone(), json!({"data": "{{0.ok|base64}}"}), "was changed by base64"),
        (agent.clone(), json!({"data": "{{0.ok|first}}", "x": "{{0.ok|second}}"}), "was changed by splitting"),
        (agent.clone(), json!({"data": "#cloud-config\n{{0.ok}}"}), "within a longer text"),
    ] {
        let job = job_with_slot(world, keys);
        set_up(world, json!({}))?;
        let send = post("https://api.iaas.test/v1/vms", &body);
        let fail = json!({"op": "error", "kind": "cloud", "message": "{{1|json}}"});
        let response = create_vm(&job, json!([{"op": "agent.bootstrap"}, send, fail]));
        if !response.message().contains(said) || !world.take_contacts()?.is_empty() {
            return Err(format!("no `{said}` in {}", response.message()));
        }
    }
    let job = job_with_slot(world, agent);
    set_up(world, json!({}))?;
    let send = post("https://api.iaas.test/v1/vms", &json!({"data": "{{0.ok}}"}));
    let response = create_vm(&job, json!([{"op": "agent.bootstrap"}, send, {"op": "result", "json": "vm-1"}]));
    if response.json["result"][0] == "vm-1" && requests_with_canary(world) == ["POST api.iaas.test/v1/vms"] {
        return Ok(());
    }
    Err(format!("the settings did not arrive: {} {:?}", response.json, requests_with_canary(world)))
}

fn property_named_agent(world: &World) -> Result<(), String> {
    let grant = json!({"slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/data"}]});
    let job =
        job_with_slot(world, json!({"grant": grant, "config": {"properties": {"agent": format!("{CANARY}-agent")}}}));
    set_up(world, json!({}))?;
    let send = post("https://api.iaas.test/v1/vms", &json!({"data": "{{props.agent}}"}));
    let fail = json!({"op": "error", "kind": "cloud", "message": "{{1|json}}"});
    let response = create_vm(&job, json!([{"op": "agent.bootstrap"}, send, fail]));
    if response.message().contains("whose slot takes `agent` only") && world.take_contacts()?.is_empty() {
        return Ok(());
    }
    Err(format!("the property is accepted as agent settings: {}", response.json))
}

fn env_endpoints(world: &World) -> Result<(), String> {
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
        set_up(world, json!({}))?;
        let get = json!({"op": "http", "url": format!("{origin}/")});
        let fail = json!({"op": "error", "kind": "cloud", "message": "{{0|json}}"});
        let arguments = json!(["agent-1", "stemcell-1", {"probe": [get, fail]}, networks(), [], env]);
        let response = job.call("create_vm", arguments).run();
        // The operator is told which server it is, and the guest is not.
        let guests = response.message().split("no grant can open this server").next().unwrap_or_default().to_owned();
        let told = response.stderr.contains(said) && !guests.contains(said);
        if !told || !response.message().contains("denied") || !world.requests().is_empty() {
            return Err(format!("{origin}: {}", response.json));
        }
    }
    Ok(())
}

fn client_certificate(world: &World) -> Result<(), String> {
    let client = world.client();
    let tls = json!({"client": {"cert": "${client.cert}", "key": "${client.key}"}});
    let grant = |path: &str, tls: Value| json!({"id": path, "to": "https://api.iaas.test", "methods": ["GET"], "paths": [format!("/{path}/**")], "tls": tls});
    let row = json!({"grants": [grant("with", tls), grant("without", json!({}))], "config": {"properties": {"client": {"cert": client.certificate, "key": client.key}}}});
    let job = row::job(world, &row);
    set_up(world, json!({"api.iaas.test": {"tls": "client"}}))?;
    let script = json!([{"op": "http", "url": "https://api.iaas.test/with/x"}, {"op": "http", "url": "https://api.iaas.test/without/x"}]);
    let response = job.call("has_vm", json!([probe::cid(&script)])).run();
    let outcomes = probe::outcomes_in(response.message());
    let arrived: Vec<String> = world.requests().iter().map(|one| one.summary()).collect();
    if outcomes[0]["ok"]["status"] == 200 && outcomes[1]["ok"].is_null() && arrived == ["GET api.iaas.test/with/x"] {
        return Ok(());
    }
    Err(format!("{} and {arrived:?}", json!(outcomes)))
}

fn endless_logins(world: &World) -> Result<(), String> {
    let login = json!({"to": "https://id.iaas.test", "path": "/tokens", "body": {"password": "${password}"}, "token": "header:X-Subject-Token", "send": {"header": "X-Auth-Token"}, "expires": {"in_seconds": "header:X-Expires"}});
    let job = row::job(world, &json!({"policy": {"logins": {"main": login}}, "grant": {"auth": {"login": "main"}}}));
    set_up(world, json!({"id.iaas.test": {"headers": {"X-Subject-Token": "a-token-of-the-cloud", "X-Expires": "0"}}}))?;
    let script = json!([{"op": "session", "name": "main", "repeat": 100}, {"op": "session", "name": "main"}]);
    let response = job.call("has_vm", json!([probe::cid(&script)])).run();
    let outcomes = probe::outcomes_in(response.message());
    let count = world.requests().len();
    if count == 100 && outcomes[1].to_string().contains("was done 100 times in this call") {
        return Ok(());
    }
    Err(format!("{count} logins: {}", json!(outcomes)))
}
