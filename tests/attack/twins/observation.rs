//! What a guest observed in one run, and how two runs differ.
//!
//! The outcomes of a script reach the test through the guest's log, as hex digits in
//! reverse: the log is redacted, and a redacted text would differ even if the guest's
//! does not.

use super::Run;
use crate::needles::forms;
use crate::row;
use crate::world::{Served, World, contact_name};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use tests::cloud::networks;
use tests::process::{GUARD, contains, run};
use tests::{Call, Job, probe};

/// The log holds outcomes of up to a mebibyte.
const LIMITS: [(&str, u64); 2] = [("line_bytes", 1 << 20), ("log_kib", 4096)];

/// Operations after which a script may not continue.
const LAST: [&str; 7] = ["result", "error", "garbage", "exit", "panic", "trap", "recurse"];

const SEAL_LENGTH: usize = 40;

/// A part of signed requests. A signature depends on the key, and its time on the clock, so the server that it is for
/// counts as one that received a secret.
const SIGNED: &[u8] = b"AWS4-HMAC-SHA256 Credential=";

/// Everything that the guest of a run observed, and what others saw of the guest.
#[derive(Debug)]
pub(crate) struct Observation {
    calls: Vec<CallObservation>,
    contacts: BTreeSet<String>,
    /// Host and bytes of each request that reached a server.
    requests: Vec<(String, Vec<u8>)>,
    /// The hosts that received a secret or a signature.
    trusted: BTreeSet<String>,
    /// True if the tripwire found a secret.
    pub(crate) leaked: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct CallObservation {
    /// The outcome of each operation as JSON, with seals renamed.
    outcomes: Vec<String>,
    /// How the call ended: its result, or the type of its error and who failed.
    ending: String,
}

impl Run {
    /// Performs the run.
    pub(crate) fn observe(&self, world: &World) -> Result<Observation, String> {
        world.reset(row::names(&self.row["names"]), Served::new(&self.row["serve"]))?;
        let calls = self.scripts.iter().map(|script| call(&self.job, &self.row, &observed(&self.row, script)));
        observe_calls(world, &self.job, calls, &self.secrets)
    }
}

/// Runs calls whose scripts log their outcomes, after `World::reset`.
pub(crate) fn observe_calls<'a>(
    world: &World,
    job: &Job,
    calls: impl Iterator<Item = Call<'a>>,
    secrets: &[String],
) -> Result<Observation, String> {
    let calls = calls.map(|call| CallObservation::new(&call)).collect();
    let contacts = world.take_contacts()?.iter().map(contact_name).collect();
    let forms: Vec<Vec<u8>> = secrets.iter().flat_map(|secret| forms(secret)).map(|(_, bytes)| bytes).collect();
    let arrived = world.requests();
    let holding = |raw: &[u8]| contains(raw, SIGNED) || forms.iter().any(|form| contains(raw, form));
    let trusted = arrived.iter().filter(|one| holding(&one.request.raw)).map(|one| one.host.clone()).collect();
    let requests = arrived.iter().map(|one| (one.host.clone(), one.request.raw.clone())).collect();
    let audit = std::fs::read_to_string(tests::audit::path(job)).unwrap_or_default();
    Ok(Observation { calls, contacts, requests, trusted, leaked: audit.contains(r#""kind":"leak""#) })
}

/// Returns the job with limits that let outcomes pass through its log.
pub(crate) fn with_long_lines(job: Job) -> Job {
    job.configure(|config| {
        for (name, value) in LIMITS {
            if config["limits"][name].is_null() {
                config["limits"][name] = json!(value);
            }
        }
    })
}

/// Returns the call of a row with this script.
fn call<'a>(job: &'a Job, row: &Value, script: &Value) -> Call<'a> {
    let call = match row["method"].as_str() {
        Some("create_vm") => {
            let properties = json!({"probe": script});
            job.call("create_vm", json!(["agent-1", "stemcell-1", properties, networks(), ["disk-1"], row["vm_env"]]))
        }
        // API version 1 uses the registry.
        Some("attach_disk") => job.call("attach_disk", json!(["vm-1", probe::cid(script)])).api_version(1),
        _ => job.call("create_disk", json!([1024, {"probe": script}, null])),
    };
    row::with_context(call, row)
}

/// Returns the script, with operations that log the outcomes of all others, and a
/// result that does not depend on them.
pub(crate) fn observed(row: &Value, script: &Value) -> Value {
    let mut operations = script.as_array().cloned().unwrap_or_default();
    let last = operations.iter().position(|one| LAST.iter().any(|name| one["op"] == *name));
    let rest = operations.split_off(last.unwrap_or(operations.len()));
    let log =
        |number: usize| json!({"op": "log", "message": format!("outcome {number}: {{{{{number}|hex|reverse}}}}")});
    operations.extend((0..operations.len()).map(log).collect::<Vec<_>>());
    if rest.is_empty() {
        operations.push(json!({"op": "result", "json": if row["method"] == "create_vm" { "vm-1" } else { "disk-1" }}));
    }
    operations.extend(rest);
    Value::Array(operations)
}

impl CallObservation {
    fn new(call: &Call<'_>) -> CallObservation {
        let finished = run(&mut call.command(), call.request().as_bytes(), GUARD);
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        let logged = |number: usize| {
            let start = format!("outcome {number}: ");
            stderr.lines().find_map(|line| Some(decoded(line.split_once(&start)?.1)))
        };
        let mut seals = HashMap::new();
        let outcomes = (0..).map_while(logged).map(|outcome| with_renamed_seals(&without_time(&outcome), &mut seals));
        let outcomes = outcomes.collect();
        let response: Value = serde_json::from_slice(&finished.stdout).unwrap_or_default();
        CallObservation { outcomes, ending: ending(&response) }
    }
}

/// Decodes hex digits in reverse order. Returns a text that is cut or redacted as it is.
fn decoded(reversed: &str) -> String {
    let digits: Vec<u8> = reversed.trim_end().bytes().rev().collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes.map_or_else(|| format!("not decodable: {reversed}"), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes the time from the error about a certificate that has expired.
fn without_time(text: &str) -> String {
    let is_time = |word: &str| word.len() > 6 && word.bytes().all(|byte| byte.is_ascii_digit());
    if !text.contains("verification time") {
        return text.to_owned();
    }
    let words = text.split(' ').map(|word| if is_time(word.trim_start_matches('(')) { "<time>" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the result, or the error without its message, which is for people and
/// therefore redacted.
fn ending(response: &Value) -> String {
    let error = &response["error"];
    if error.is_null() {
        return format!("ok {}", response["result"]);
    }
    let who = error["message"].as_str().and_then(|message| message.split_once(": ")).map_or("", |(who, _)| who);
    let who = if WHO.contains(&who) { who } else { "guest" };
    format!("{} by {who}, retry {}", error["type"].as_str().unwrap_or("no response"), error["ok_to_retry"])
}

const WHO: [&str; 6] = ["request", "config", "policy", "limit", "iaas", "runtime"];

/// Replaces each seal by its number. Seals are random, so only their order and
/// equality mean anything.
fn with_renamed_seals(text: &str, known: &mut HashMap<String, usize>) -> String {
    let mut renamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let word = &rest[start..];
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        renamed.push_str(&rest[..start]);
        if end == SEAL_LENGTH {
            let count = known.len();
            let number = known.entry(word[..end].to_ascii_lowercase()).or_insert(count);
            renamed.push_str(&format!("<seal {number}>"));
        } else {
            renamed.push_str(&word[..end]);
        }
        rest = &word[end..];
    }
    renamed + rest
}

impl Observation {
    /// Returns true if every call was refused before its guest started.
    pub(super) fn is_refused_config(&self) -> bool {
        let refused = |call: &CallObservation| {
            call.outcomes.is_empty() && call.ending.starts_with("Bosh::Clouds::CpiError by config")
        };
        self.calls.iter().all(refused)
    }

    /// Returns true if the guest of a call did not get to report any outcome.
    pub(super) fn is_silent(&self) -> bool {
        self.calls.iter().any(|call| call.outcomes.is_empty())
    }

    /// Returns the outcomes of all operations.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.calls.iter().flat_map(|call| call.outcomes.iter().cloned()).collect()
    }

    /// Describes the first difference, or returns None if the guest cannot tell both apart.
    pub(crate) fn difference(&self, other: &Observation) -> Option<String> {
        for (number, (one, two)) in self.calls.iter().zip(&other.calls).enumerate() {
            let count = one.outcomes.len().max(two.outcomes.len());
            let outcome = |call: &'_ CallObservation, at: usize| call.outcomes.get(at).cloned().unwrap_or_default();
            let differs = (0..count).find(|at| outcome(one, *at) != outcome(two, *at));
            if let Some(at) = differs {
                let (one, two) = around_difference(&outcome(one, at), &outcome(two, at));
                return Some(format!("call {number}, operation {at}: `{one}` and `{two}`"));
            }
            if one.ending != two.ending {
                return Some(format!("call {number} ended with {} and {}", one.ending, two.ending));
            }
        }
        if self.contacts != other.contacts {
            return Some(format!("contacted {:?} and {:?}", self.contacts, other.contacts));
        }
        let (one, two) = (self.untrusted_requests(other), other.untrusted_requests(self));
        (one != two).then(|| format!("servers without secrets received {one:?} and {two:?}"))
    }

    /// Returns the requests to servers that received no secret in this or the other run.
    fn untrusted_requests(&self, other: &Observation) -> Vec<(String, String)> {
        let mut seals = HashMap::new();
        let untrusted =
            self.requests.iter().filter(|(host, _)| !self.trusted.contains(host) && !other.trusted.contains(host));
        let shown = |(host, raw): &(String, Vec<u8>)| {
            (host.clone(), with_renamed_seals(&String::from_utf8_lossy(raw), &mut seals))
        };
        untrusted.map(shown).collect()
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = format!("{:?}", self.calls).chars().take(2000).collect();
        f.write_str(&shown)
    }
}

/// Returns the parts of two texts around their first difference.
fn around_difference(one: &str, two: &str) -> (String, String) {
    let same = one.chars().zip(two.chars()).take_while(|(one, two)| one == two).count();
    let part = |text: &str| text.chars().skip(same.saturating_sub(60)).take(240).collect();
    (part(one), part(two))
}
