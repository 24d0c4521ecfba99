//! Requests and configs that cannot be right, with a secret in every field:
//! what is wrong is said, and nothing of it quoted. The host learns of secrets
//! only later, so that nothing could be redacted here.

use super::endings::clean;
use super::garden::{Fit, seed};
use super::scene::Scene;
use crate::case::Case;
use crate::world::World;
use serde_json::{Value, json};
use std::process::Command;
use tests::cloud::networks;
use tests::{dist, process};

const CLASS: &str = "secrets";

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, &[], move |world| attempt(world).map_err(|why| format!("ATTACK_SEED={}: {why}", seed())))
    };
    vec![
        case("planted everywhere, in a request that is no JSON", requests),
        case("planted everywhere, in arguments of other types", arguments),
        case("planted everywhere, in a config of other types", types),
        case("planted everywhere, in a config that is no JSON", configs),
        case("planted everywhere, each taken for an origin", origins),
        case("planted everywhere, and what the tool says of it", tools).speaking_to(&[
            "dns",
            "5.6.7.11:443",
            "5.6.7.14:443",
        ]),
    ]
}

/// A response that fails and quotes nothing.
fn refused(scene: &Scene, stdin: impl Into<Vec<u8>>) -> Result<(), String> {
    let response = scene.job.raw(stdin).run();
    clean(scene, &response)?;
    if response.json["error"].is_null() {
        return Err(format!("it was accepted: {}", response.json));
    }
    Ok(())
}

fn requests(world: &World) -> Result<(), String> {
    let scene = Scene::new(world, 1);
    let text = scene.create_vm(&[]).request();
    for part in 1..16 {
        let cut = text.floor_char_boundary(text.len() * part / 16);
        refused(&scene, &text[..cut])?;
        refused(&scene, format!("{}\u{1}{}", &text[..cut], &text[cut..]))?;
        refused(&scene, [&text.as_bytes()[..cut], b"\xff", &text.as_bytes()[cut..]].concat())?;
    }
    for (known, other) in [
        ("\"bosh\":", "\"bosh\":1,\"bosh\":"),
        ("\"cpi\":", "\"cpi\":1,\"cpi\":"),
        ("\"context\":", "\"context\":1,\"context\":"),
    ] {
        refused(&scene, text.replacen(known, other, 1))?;
    }
    refused(&scene, text.clone() + &text)
}

fn arguments(world: &World) -> Result<(), String> {
    let scene = Scene::new(world, 2);
    scene.set(world)?;
    let (_, secret) = scene.garden.planted()[4].clone();
    let good = json!(["agent-1", "stemcell-1", {}, networks(), ["disk-1"], scene.env]);
    for at in 0..6 {
        for wrong in [
            json!(secret),
            json!([secret]),
            json!({"x": secret}),
            json!([[{"x": secret}]]),
            json!({"net": secret}),
            json!({"net": [secret]}),
        ] {
            let mut arguments = good.clone();
            arguments[at] = wrong;
            clean(&scene, &scene.call("create_vm", arguments).run())?;
        }
    }
    for arguments in [json!([secret]), json!([[secret], {"a": secret}]), json!([1, 2, 3, 4, 5, 6, secret])] {
        for method in
            ["create_vm", "has_vm", "attach_disk", "create_disk", "create_stemcell", "snapshot_disk", "set_vm_metadata"]
        {
            clean(&scene, &scene.call(method, arguments.clone()).run())?;
        }
    }
    for (key, value) in [
        ("api_version", json!(secret)),
        ("arguments", json!(secret)),
        ("context", json!(secret)),
        ("method", json!([secret])),
    ] {
        let mut request: Value =
            serde_json::from_str(&scene.create_vm(&[]).request()).map_err(|error| error.to_string())?;
        request[key] = value;
        refused(&scene, request.to_string())?;
    }
    for (key, value) in [
        ("request_id", json!([secret])),
        ("director_uuid", json!({"a": secret})),
        ("vm", json!({"stemcell": {"api_version": secret}})),
    ] {
        clean(&scene, &scene.call("has_vm", json!(["vm-1"])).context(key, value).run())?;
    }
    Ok(())
}

/// Every value of the config, wrapped and exchanged for another type.
fn types(world: &World) -> Result<(), String> {
    let scene = Scene::new(world, 3);
    let text = read(&scene)?;
    let config: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let stdin = scene.call("has_vm", json!(["vm-1"])).request();
    for pointer in pointers(&config, "") {
        // Properties are the operator's own, and of any type.
        if pointer.starts_with("/properties/") {
            continue;
        }
        for wrap in
            [|value: Value| json!([value]), |value: Value| json!({"x": value}), |value: Value| json!(value.to_string())]
        {
            let mut changed = config.clone();
            let Some(value) = changed.pointer_mut(&pointer) else { continue };
            *value = wrap(value.take());
            tests::job::write(&scene.job.config_file(), changed.to_string().as_bytes());
            clean(&scene, &scene.job.raw(stdin.as_str()).run())?;
        }
    }
    Ok(())
}

fn configs(world: &World) -> Result<(), String> {
    let mut scene = Scene::new(world, 4);
    let stray = scene.garden.plant("stray", Fit::Any);
    let text = read(&scene)?;
    let config: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let stdin = scene.call("has_vm", json!(["vm-1"])).request();
    let mut broken: Vec<String> =
        (1..16).map(|part| text[..text.floor_char_boundary(text.len() * part / 16)].to_owned()).collect();
    broken.extend((1..16).map(|part| text.replacen(',', &"\u{1}".repeat(part), part)));
    for (key, value) in [
        ("/log", json!({"level": stray})),
        ("/log", json!({"format": stray})),
        ("/limits", json!({"memory_mib": stray})),
        ("/registry/endpoint", json!(stray)),
        ("/registry/endpoint", json!(format!("https://u:{stray}@registry.iaas.test"))),
        ("/registry/agent_endpoint", json!(stray)),
        ("/registry/password", json!(format!("{stray}\u{7}"))),
        ("/guest/sha256", json!(stray)),
        ("/agent/blobstore", json!(stray)),
        ("/version", json!(stray)),
    ] {
        let mut changed = config.clone();
        if let Some(known) = changed.pointer_mut(key) {
            *known = value;
        } else {
            changed[&key[1..]] = value;
        }
        broken.push(changed.to_string());
    }
    for text in broken {
        tests::job::write(&scene.job.config_file(), text.as_bytes());
        refused(&scene, stdin.as_str())?;
    }
    Ok(())
}

/// By a slip of the operator's: `"to": "${password}"`.
fn origins(world: &World) -> Result<(), String> {
    let mut scene = Scene::new(world, 5);
    let scheme = format!("{}:x", scene.garden.letters(20));
    scene.garden.note("scheme", scheme.trim_end_matches(":x"));
    // A scheme has no case.
    scene.garden.note("scheme in lower case", &scheme.trim_end_matches(":x").to_lowercase());
    scene.context["scheme"] = json!(scheme);
    for property in
        ["scheme", "auth.password", "api_key", "bearer", "url", "number", "cpi_password", "slots.json", "client.key"]
    {
        for to in [format!("${{{property}}}"), format!("https://${{{property}}}.iaas.test")] {
            let grant =
                json!({"id": "api", "to": to, "methods": ["GET"], "paths": ["/**"], "auth": {"bearer": "${bearer}"}});
            scene.job = std::mem::take(&mut scene.job).policy(json!({"version": 1, "http": [grant]}));
            let response = scene.call("has_vm", json!(["vm-1"])).run();
            clean(&scene, &response)?;
            // A number is a label.
            if response.json["error"]["type"] != tests::CPI_ERROR && property != "number" && !to.contains(".iaas") {
                return Err(format!("`{property}` is taken for an origin: {}", response.json));
            }
        }
    }
    Ok(())
}

fn tools(world: &World) -> Result<(), String> {
    let mut scene = Scene::new(world, 6);
    scene.job = std::mem::take(&mut scene.job).configure(|config| config["http_trace"] = json!("bodies"));
    scene.set(world)?;
    let config = scene.job.config_file().display().to_string();
    let guest = dist::probe().display().to_string();
    let script = json!({"probe": [{"op": "config"}, {"op": "http", "url": "https://basic.iaas.test/"}, {"op": "session", "name": "main"}, {"op": "http", "url": "https://open.iaas.test/?{{props.bearer}}"}]}).to_string();
    for words in [
        vec!["check", "--config", &config],
        vec!["inspect", &guest, "--config", &config],
        vec!["inspect", &guest, "--config", &config, "--json"],
        vec!["call", "create_disk", "1024", &script, "null", "--config", &config],
        vec!["call", "has_vm", "gone", "--config", &config],
        vec!["call", "no_such_method", "--config", &config],
        vec!["prepare", "--config", &config],
    ] {
        let mut command = Command::new(dist::tool());
        command.args(&words).env(&scene.process.0, &scene.process.1);
        let finished = process::run(&mut command, b"", process::GUARD);
        scene.garden.is_not_in(&format!("stdout of {words:?}"), &finished.stdout)?;
        scene.garden.is_not_in(&format!("stderr of {words:?}"), &finished.stderr)?;
    }
    let reached = scene.arrived(world)?;
    if reached.contains_key("basic.iaas.test") { Ok(()) } else { Err(format!("nothing was called: {reached:?}")) }
}

fn read(scene: &Scene) -> Result<String, String> {
    std::fs::read_to_string(scene.job.config_file()).map_err(|error| error.to_string())
}

/// Of everything within a value.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (format!("{at}/{key}"), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (format!("{at}/{index}"), value)).collect()
        }
        _ => Vec::new(),
    };
    below.into_iter().flat_map(|(at, value)| std::iter::once(at.clone()).chain(pointers(value, &at))).collect()
}
