//! A case as data: what a guest tries, the expected outcome, and the contacts.
//!
//! | key | meaning |
//! |---|---|
//! | `case` | the name of the case |
//! | `mutants` | the mutants that the case notices: names of checks, or `limit-NAME` |
//! | `get` | one GET of this URL; a row has one of `get`, `script`, `call` and `stdin` |
//! | `script` | operations of the probe |
//! | `call` | `[method, arguments…]` |
//! | `stdin` | the text of the request |
//! | `each` | values for `{}` in any of the other keys, or in their JSON as text; each value is one call |
//! | `grant` | is merged into the default grant |
//! | `grants` | replaces all grants |
//! | `policy` | is merged into the whole policy |
//! | `config` | is merged into the job's config |
//! | `context` | the context of the request |
//! | `env` | environment variables of the process |
//! | `names` | what DNS answers: `{"name": ["5.6.7.10"]}`, or `[[…], […]]` for successive lookups, or a keyword of `row::names` |
//! | `serve` | what servers answer: see `world::spec` |
//! | `expect` | the outcome of the last operation, or a list with the last ones: `200`, `denied scheme`, `limit url_bytes`, `ok`; `a/b` where both are right; for a call `ok`, or the error's type and who failed, `CpiError config` |
//! | `says` | texts that the message contains; for an operation also what the Director is told would allow it |
//! | `logs` | texts that stderr contains, which is for people |
//! | `check` | true: `wasm-cpi check` fails with the same texts |
//! | `contacts` | all addresses that were contacted, `dns`, `api:443`, `10.0.0.5:443`, with a `?` at the end if it is optional; default: `dns` and `api:443` if the last outcome is a status, else none |
//! | `arrived` | all requests that reached a server, `GET api.iaas.test/v1/x`; default: at most one for each contact other than `dns` |
//! | `carries` | texts that some request contains |
//! | `lacks` | texts that neither the message nor any request contains |
//! | `audited` | texts that the audit log contains |
//! | `connections` | how many connections servers accepted |
//! | `lookups` | how often a name was looked up: `{"api.iaas.test": 1}` |
//! | `secret_at` | the hosts that received a secret of the job; default: none |
//! | `twins` | why the row is not run as twins (`crate::twins`), as all others with a secret are |
//!
//! Every denial must have its line in the audit log, and every script ends with a
//! search of the guest's memory, which must hold no secret. In any text, `[[N*text]]`
//! stands for the text N times; `{"times": N, "of": value}` stands for an array. A
//! grant of https trusts the corpus' authority unless it names another.

mod names;

pub(crate) use names::names;

use crate::case::Case;
use crate::needles::Needles;
use crate::world::{Served, World, contact_name};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tests::process::contains;
use tests::response::CANARY;
use tests::rows::{expand_repeats, fill_placeholders, merge_patch, parse_json_values, texts};
use tests::{Job, Response, probe};

const KEYS: [&str; 28] = [
    "case",
    "mutants",
    "get",
    "script",
    "call",
    "stdin",
    "each",
    "grant",
    "grants",
    "policy",
    "config",
    "context",
    "env",
    "names",
    "serve",
    "expect",
    "says",
    "logs",
    "check",
    "contacts",
    "arrived",
    "carries",
    "lacks",
    "audited",
    "connections",
    "lookups",
    "secret_at",
    "twins",
];

/// Returns the cases of a file of rows.
pub(crate) fn cases(class: &'static str, rows: &str) -> Result<Vec<Case>, String> {
    let rows: Vec<Value> = serde_json::from_str(rows).map_err(|error| format!("rows of {class}: {error}"))?;
    rows.into_iter().map(|row| case(class, row)).collect()
}

fn case(class: &'static str, row: Value) -> Result<Case, String> {
    let name = row["case"].as_str().ok_or_else(|| format!("a row of {class} has no name: {row}"))?.to_owned();
    let keys = row.as_object().into_iter().flat_map(|row| row.keys());
    if let Some(key) = keys.map(String::as_str).find(|key| !KEYS.contains(key)) {
        return Err(format!("{class}: {name}: `{key}` is not a key of a row"));
    }
    let mutants = texts(&row["mutants"]);
    let refused = texts(&row["expect"]).iter().any(|outcome| outcome.split('/').all(is_refusal));
    let row = expand_repeats(&row);
    let attempt = move |world: &World| for_each_value(&row, |row| attempt(world, row));
    Ok(Case { class, name, mutants, refused, contacts: None, attempt: Box::new(attempt) })
}

/// Tries a row, or the row with each value of its `each`.
pub(crate) fn for_each_value(row: &Value, attempt: impl Fn(&Value) -> Result<(), String>) -> Result<(), String> {
    let Some(values) = row["each"].as_array() else { return attempt(row) };
    values.iter().try_for_each(|value| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown: String = value.chars().take(100).collect();
        let row = parse_json_values(fill_placeholders(row, &value));
        attempt(&row).map_err(|why| format!("with {shown}: {why}"))
    })
}

/// Returns true for an outcome that has the code of a check: a refused request, response or file.
fn is_refusal(outcome: &str) -> bool {
    let refusals = ["denied ", "invalid-request", "tls", "protocol", "truncated", "CpiError", "CloudError policy"];
    refusals.iter().any(|refusal| outcome.starts_with(refusal))
}

fn attempt(world: &World, row: &Value) -> Result<(), String> {
    let job = job(world, row);
    prepare(world, row)?;
    let (outcomes, message, stderr) = outcomes(&job, row);
    let expected = texts(&row["expect"]);
    let got = &outcomes[outcomes.len().saturating_sub(expected.len())..];
    let fits = |(got, expected): (&String, &String)| expected.split('/').any(|outcome| outcome == got);
    if expected.is_empty() || got.len() != expected.len() || !got.iter().zip(&expected).all(fits) {
        return Err(format!("expected {expected:?}, got {outcomes:?}: {message}"));
    }
    if let Some(part) = texts(&row["says"]).iter().find(|part| !message.contains(part.as_str())) {
        return Err(format!("no `{part}` in: {message}"));
    }
    if let Some(part) = texts(&row["logs"]).iter().find(|part| !stderr.contains(part.as_str())) {
        return Err(format!("no `{part}` in stderr: {stderr}"));
    }
    if row["check"] == true {
        let (passed, output) = job.check();
        let missing = texts(&row["says"]).into_iter().find(|part| !output.contains(part.as_str()));
        if passed || missing.is_some() || output.contains(CANARY) {
            return Err(format!("check passed: {passed}, lacks {missing:?}, or prints a secret: {output}"));
        }
    }
    check_audit_log(&job, &outcomes)?;
    let audit = std::fs::read_to_string(tests::audit::path(&job)).unwrap_or_default();
    if let Some(part) = texts(&row["audited"]).iter().find(|part| !audit.contains(part.as_str())) {
        return Err(format!("no `{part}` in the audit log: {audit}"));
    }
    let answered = got.last().is_some_and(|outcome| outcome.parse::<u16>().is_ok());
    let contacts: Vec<String> = world.take_contacts()?.iter().map(contact_name).collect();
    let allowed = match &row["contacts"] {
        Value::Null if answered => vec!["api:443".to_owned(), "dns".to_owned()],
        contacts => texts(contacts),
    };
    let unused = |contact: &&String| contact.strip_suffix('?').is_some_and(|one| !contacts.iter().any(|it| it == one));
    let needed =
        allowed.iter().filter(|contact| !unused(contact)).map(|contact| contact.trim_end_matches('?').to_owned());
    expect_same(CONTACTED, &contacts, &needed.collect::<Vec<_>>())?;
    let arrived = world.requests();
    let summaries: Vec<String> = arrived.iter().map(|arrived| arrived.summary()).collect();
    match &row["arrived"] {
        Value::Null => {
            let most = allowed.iter().filter(|contact| *contact != "dns").count();
            if summaries.len() > most || (answered && summaries.is_empty()) {
                return Err(format!("these requests arrived: {summaries:?}"));
            }
        }
        expected => expect_same("arrived:", &summaries, &texts(expected))?,
    }
    let holds = |part: &str| arrived.iter().find(|arrived| contains(&arrived.request.raw, part.as_bytes()));
    if let Some(part) = texts(&row["carries"]).iter().find(|part| holds(part).is_none()) {
        return Err(format!("no request that arrived contains `{part}`"));
    }
    if let Some(part) = texts(&row["lacks"]).iter().find(|part| message.contains(*part) || holds(part).is_some()) {
        return Err(format!("`{part}` is in a request that arrived, or in: {message}"));
    }
    for (name, count) in row["lookups"].as_object().into_iter().flatten() {
        if *count != world.lookups(name) {
            return Err(format!("{name} was looked up {} times, not {count}", world.lookups(name)));
        }
    }
    if row["connections"].as_u64().is_some_and(|count| count != world.connections()) {
        return Err(format!("{} connections were made, not {}", world.connections(), row["connections"]));
    }
    let holding = arrived.iter().filter(|arrived| !canary().found_in(&arrived.request.raw).is_empty());
    let hosts: BTreeSet<String> = holding.map(|arrived| arrived.host.clone()).collect();
    expect_same("a secret arrived at", &hosts.into_iter().collect::<Vec<_>>(), &texts(&row["secret_at"]))
}

/// Fails unless every denial that the guest received has a line in the audit log
/// with the same reason. The lines are checked against the schema.
fn check_audit_log(job: &Job, outcomes: &[String]) -> Result<(), String> {
    let path = tests::audit::path(job);
    let lines = if path.exists() { tests::audit::lines(job) } else { Vec::new() };
    let denied = lines.iter().filter(|line| ["denied", "leak"].contains(&line["kind"].as_str().unwrap_or_default()));
    let logged: Vec<String> = denied.map(|line| line["reason"].as_str().unwrap_or_default().to_owned()).collect();
    let mut received = outcomes.iter().filter_map(|outcome| outcome.strip_prefix("denied ").map(str::to_owned));
    match received.find(|reason| !logged.contains(reason)) {
        Some(reason) => Err(format!("a denial for `{reason}` is not in the audit log: {lines:?}")),
        None => Ok(()),
    }
}

fn canary() -> &'static Needles {
    static CANARIES: LazyLock<Needles> = LazyLock::new(|| Needles::of("the canary", CANARY));
    &CANARIES
}

/// Returns the script, followed by a search for the canary in the guest's memory,
/// which then holds all that the guest can learn of the config.
fn with_memory_search(script: &Value) -> Value {
    let mut operations = script.as_array().cloned().unwrap_or_default();
    operations.push(json!({"op": "config"}));
    operations.extend(canary().search_operations(false));
    Value::Array(operations)
}

/// Sets up names and servers as the row describes them.
pub(crate) fn prepare(world: &World, row: &Value) -> Result<(), String> {
    world.reset(names(&row["names"]), Served::new(&row["serve"]))
}

/// Runs the row's call. Returns the outcome of each operation, or that of the call,
/// the message, and stderr.
fn outcomes(job: &Job, row: &Value) -> (Vec<String>, String, String) {
    let get = json!([{"op": "http", "url": row["get"]}]);
    let script = if row["get"].is_null() { &row["script"] } else { &get };
    let response = if !script.is_null() {
        let response = without_canary(
            with_context(job.call("has_vm", json!([probe::cid(&with_memory_search(script))])), row).run(),
        );
        if response.json["error"]["message"].as_str().is_some_and(|text| text.contains("probe outcomes: ")) {
            let mut outcomes = probe::outcomes_in(response.message());
            let found_nothing = |outcome: &mut Value| outcome["op"] == "find" && outcome["ok"]["count"] == 0;
            outcomes.pop_if(found_nothing);
            outcomes.pop_if(|outcome| outcome["op"] == "config");
            let hint = response.message().split_once("about the last denied request: ");
            let message = format!("{}{}", Value::from(outcomes.clone()), hint.map_or("", |(_, hint)| hint));
            return (outcomes.iter().map(operation_outcome).collect(), message, response.stderr);
        }
        response
    } else if let Some(stdin) = row["stdin"].as_str() {
        job.raw(stdin).run()
    } else {
        let mut arguments = row["call"].as_array().cloned().unwrap_or_default();
        let method = if arguments.is_empty() { Value::Null } else { arguments.remove(0) };
        with_context(job.call(method.as_str().unwrap_or_default(), Value::Array(arguments)), row).run()
    };
    let outcome = call_outcome(&response);
    let response = without_canary(response);
    (vec![outcome], response.json.to_string(), response.stderr)
}

/// Returns the response. Panics if it, or stderr, holds the canary in any form.
fn without_canary(response: Response) -> Response {
    let text = format!("{}\n{}", response.json, response.stderr);
    let found = canary().found_in(text.as_bytes());
    assert!(found.is_empty(), "{found:?} in {text}");
    response
}

/// Adds the row's context and environment to a call.
pub(crate) fn with_context<'a>(call: tests::Call<'a>, row: &Value) -> tests::Call<'a> {
    let context = row["context"].as_object().into_iter().flatten();
    let call = context.fold(call, |call, (key, value)| call.context(key, value.clone()));
    let env = row["env"].as_object().into_iter().flatten();
    env.fold(call, |call, (name, value)| call.env(name, value.as_str().unwrap_or_default()))
}

/// Returns `200`, `denied scheme`, `limit url_bytes` or `ok`.
fn operation_outcome(outcome: &Value) -> String {
    let error = &outcome["error"];
    if error.is_null() && outcome["ok"]["count"].as_u64().is_some_and(|count| count > 0) {
        return "a secret in memory".to_owned();
    }
    if error.is_null() {
        return outcome["ok"]["status"].as_u64().map_or_else(|| "ok".to_owned(), |status| status.to_string());
    }
    let more = error["reason"].as_str().or(error["limit"].as_str()).unwrap_or_default();
    format!("{} {more}", error["kind"].as_str().unwrap_or_default()).trim_end().to_owned()
}

/// Returns `ok`, or the error's type and who failed: `CpiError config`.
fn call_outcome(response: &Response) -> String {
    let error = &response.json["error"];
    if error.is_null() {
        return "ok".to_owned();
    }
    let kind = error["type"].as_str().unwrap_or_default().trim_start_matches("Bosh::Clouds::");
    let who = error["message"].as_str().and_then(|message| message.split_once(": ")).map_or("", |(who, _)| who);
    // A guest's own message does not begin with who failed.
    let who = if who.contains(' ') { "" } else { who };
    format!("{kind} {who}").trim_end().to_owned()
}

/// Returns a job with the config, grants and policy of the row, and an audit log.
pub(crate) fn job(world: &World, row: &Value) -> Job {
    let mut grant =
        json!({"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"]});
    merge_patch(&mut grant, &row["grant"]);
    let mut policy =
        json!({"version": 1, "http": if row["grants"].is_null() { json!([grant]) } else { row["grants"].clone() }});
    merge_patch(&mut policy, &row["policy"]);
    for kind in ["http", "logins", "credentials"] {
        let grants = match &mut policy[kind] {
            Value::Array(grants) => grants.iter_mut().collect(),
            Value::Object(all) if kind == "credentials" => {
                all.values_mut().filter_map(|one| one.get_mut("assume_role")).collect()
            }
            Value::Object(logins) => logins.values_mut().collect(),
            _ => Vec::new(),
        };
        for grant in grants.into_iter().filter(|grant| grant.is_object()) {
            let secure = grant["to"].as_str().is_some_and(|to| !to.starts_with("http://"));
            if secure && grant["tls"]["ca"].is_null() {
                grant["tls"]["ca"] = json!(world.authority());
            }
        }
    }
    for kind in ["logins", "credentials"] {
        if policy[kind].is_null() {
            policy.as_object_mut().map(|policy| policy.remove(kind));
        }
    }
    tests::audit::audited(Job::default().policy(policy)).configure(|config| merge_patch(config, &row["config"]))
}

/// What `expect_same` compares without duplicates.
const CONTACTED: &str = "contacted";

fn expect_same(what: &str, got: &[String], expected: &[String]) -> Result<(), String> {
    let sorted = |texts: &[String]| {
        let mut texts = texts.to_vec();
        texts.sort();
        if what == CONTACTED {
            texts.dedup();
        }
        texts
    };
    if sorted(got) == sorted(expected) { Ok(()) } else { Err(format!("{what} {got:?}, expected {expected:?}")) }
}
