//! Malformed requests and configs with a secret in every field. The error says what is
//! wrong, and quotes nothing. The host learns the secrets only later, so that it
//! could not redact them here.

use super::endings::expect_no_leak;
use super::scenario::Scenario;
use super::secret_set::{Fit, seed};
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
        case("secrets in every field of a request that is not JSON", requests),
        case("secrets in arguments of other types", arguments),
        case("secrets in every field of a config with values of other types", types),
        case("secrets in every field of a malformed config", configs),
        case("secrets in properties that are used as an origin", origins),
        case("secrets in every field, and the output of the tool", tools).may_contact(&[
            "dns",
            "5.6.7.11:443",
            "5.6.7.14:443",
        ]),
    ]
}

/// Fails unless the call is refused and nothing leaks.
fn expect_refused(scenario: &Scenario, stdin: impl Into<Vec<u8>>) -> Result<(), String> {
    let response = scenario.job.raw(stdin).run();
    expect_no_leak(scenario, &response)?;
    if response.json["error"].is_null() {
        return Err(format!("the request was accepted: {}", response.json));
    }
    Ok(())
}

fn requests(world: &World) -> Result<(), String> {
    let scenario = Scenario::new(world, 1);
    let text = scenario.create_vm(&[]).request();
    for part in 1..16 {
        let cut = text.floor_char_boundary(text.len() * part / 16);
        expect_refused(&scenario, &text[..cut])?;
        expect_refused(&scenario, format!("{}\u{1}{}", &text[..cut], &text[cut..]))?;
        expect_refused(&scenario, [&text.as_bytes()[..cut], b"\xff", &text.as_bytes()[cut..]].concat())?;
    }
    for (known, other) in [
        ("\"bosh\":", "\"bosh\":1,\"bosh\":"),
        ("\"cpi\":", "\"cpi\":1,\"cpi\":"),
        ("\"context\":", "\"context\":1,\"context\":"),
    ] {
        expect_refused(&scenario, text.replacen(known, other, 1))?;
    }
    expect_refused(&scenario, text.clone() + &text)
}

fn arguments(world: &World) -> Result<(), String> {
    let scenario = Scenario::new(world, 2);
    scenario.set_up(world)?;
    let (_, secret) = scenario.secrets.all()[4].clone();
    let good = json!(["agent-1", "stemcell-1", {}, networks(), ["disk-1"], scenario.env]);
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
            expect_no_leak(&scenario, &scenario.call("create_vm", arguments).run())?;
        }
    }
    for arguments in [json!([secret]), json!([[secret], {"a": secret}]), json!([1, 2, 3, 4, 5, 6, secret])] {
        for method in
            ["create_vm", "has_vm", "attach_disk", "create_disk", "create_stemcell", "snapshot_disk", "set_vm_metadata"]
        {
            expect_no_leak(&scenario, &scenario.call(method, arguments.clone()).run())?;
        }
    }
    for (key, value) in [
        ("api_version", json!(secret)),
        ("arguments", json!(secret)),
        ("context", json!(secret)),
        ("method", json!([secret])),
    ] {
        let mut request: Value =
            serde_json::from_str(&scenario.create_vm(&[]).request()).map_err(|error| error.to_string())?;
        request[key] = value;
        expect_refused(&scenario, request.to_string())?;
    }
    for (key, value) in [
        ("request_id", json!([secret])),
        ("director_uuid", json!({"a": secret})),
        ("vm", json!({"stemcell": {"api_version": secret}})),
    ] {
        expect_no_leak(&scenario, &scenario.call("has_vm", json!(["vm-1"])).context(key, value).run())?;
    }
    Ok(())
}

/// Replaces every value of the config by one of another type that holds it.
fn types(world: &World) -> Result<(), String> {
    let scenario = Scenario::new(world, 3);
    let text = read(&scenario)?;
    let config: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let stdin = scenario.call("has_vm", json!(["vm-1"])).request();
    for pointer in pointers(&config, "") {
        // Properties may have any type.
        if pointer.starts_with("/properties/") {
            continue;
        }
        for wrap in
            [|value: Value| json!([value]), |value: Value| json!({"x": value}), |value: Value| json!(value.to_string())]
        {
            let mut changed = config.clone();
            let Some(value) = changed.pointer_mut(&pointer) else { continue };
            *value = wrap(value.take());
            tests::job::write(&scenario.job.config_file(), changed.to_string().as_bytes());
            expect_no_leak(&scenario, &scenario.job.raw(stdin.as_str()).run())?;
        }
    }
    Ok(())
}

fn configs(world: &World) -> Result<(), String> {
    let mut scenario = Scenario::new(world, 4);
    let stray = scenario.secrets.generate("stray", Fit::Any);
    let text = read(&scenario)?;
    let config: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let stdin = scenario.call("has_vm", json!(["vm-1"])).request();
    let mut broken: Vec<String> =
        (1..16).map(|part| text[..text.floor_char_boundary(text.len() * part / 16)].to_owned()).collect();
    broken.extend((1..16).map(|part| text.replacen(',', &"\u{1}".repeat(part), part)));
    for (key, value) in [
        ("/log", json!({"level": stray})),
        ("/log", json!({"format": stray})),
        ("/limits", json!({"memory_mib": stray})),
        // Without a scheme, letters are the name of a host.
        ("/registry/endpoint", json!(format!("ftp://{stray}"))),
        ("/registry/endpoint", json!(format!("https://u:{stray}@registry.iaas.test"))),
        ("/registry/agent_endpoint", json!(format!("ftp://{stray}"))),
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
        tests::job::write(&scenario.job.config_file(), text.as_bytes());
        expect_refused(&scenario, stdin.as_str())?;
    }
    Ok(())
}

/// A mistake of the operator: `"to": "${password}"`.
fn origins(world: &World) -> Result<(), String> {
    let mut scenario = Scenario::new(world, 5);
    let scheme = format!("{}:x", scenario.secrets.letters(20));
    scenario.secrets.add("scheme", scheme.trim_end_matches(":x"));
    // A scheme is shown in lower case.
    scenario.secrets.add("scheme in lower case", &scheme.trim_end_matches(":x").to_lowercase());
    scenario.context["scheme"] = json!(scheme);
    for property in
        ["scheme", "auth.password", "api_key", "bearer", "url", "number", "cpi_password", "slots.json", "client.key"]
    {
        for to in [format!("${{{property}}}"), format!("https://${{{property}}}.iaas.test")] {
            let grant =
                json!({"id": "api", "to": to, "methods": ["GET"], "paths": ["/**"], "auth": {"bearer": "${bearer}"}});
            scenario.job = std::mem::take(&mut scenario.job).policy(json!({"version": 1, "http": [grant]}));
            let response = scenario.call("has_vm", json!(["vm-1"])).run();
            expect_no_leak(&scenario, &response)?;
            // A number is a valid label.
            if response.json["error"]["type"] != tests::CPI_ERROR && property != "number" && !to.contains(".iaas") {
                return Err(format!("`{property}` is accepted as an origin: {}", response.json));
            }
        }
    }
    Ok(())
}

fn tools(world: &World) -> Result<(), String> {
    let mut scenario = Scenario::new(world, 6);
    scenario.job = std::mem::take(&mut scenario.job).configure(|config| config["http_trace"] = json!("bodies"));
    scenario.set_up(world)?;
    let config = scenario.job.config_file().display().to_string();
    let guest = dist::probe().display().to_string();
    let script = json!({"probe": [{"op": "config"}, {"op": "http", "url": "https://basic.iaas.test/"}, {"op": "session", "name": "main"}, {"op": "http", "url": "https://open.iaas.test/?{{props.bearer}}"}]}).to_string();
    for arguments in [
        vec!["check", "--config", &config],
        vec!["inspect", &guest, "--config", &config],
        vec!["inspect", &guest, "--config", &config, "--json"],
        vec!["call", "create_disk", "1024", &script, "null", "--config", &config],
        vec!["call", "has_vm", "gone", "--config", &config],
        vec!["call", "no_such_method", "--config", &config],
        vec!["prepare", "--config", &config],
    ] {
        let mut command = Command::new(dist::tool());
        command.args(&arguments).env(&scenario.process.0, &scenario.process.1);
        let finished = process::run(&mut command, b"", process::GUARD);
        scenario.secrets.expect_none_in(&format!("stdout of {arguments:?}"), &finished.stdout)?;
        scenario.secrets.expect_none_in(&format!("stderr of {arguments:?}"), &finished.stderr)?;
    }
    let reached = scenario.received_secrets(world)?;
    if reached.contains_key("basic.iaas.test") { Ok(()) } else { Err(format!("the API was not called: {reached:?}")) }
}

fn read(scenario: &Scenario) -> Result<String, String> {
    std::fs::read_to_string(scenario.job.config_file()).map_err(|error| error.to_string())
}

/// Returns the JSON pointers of everything within a value.
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
