//! A case as data: what a guest tries, what comes of it, and who was spoken to.
//!
//! | key | meaning |
//! |---|---|
//! | `case` | its name |
//! | `holes` | named checks that it would miss |
//! | `get` | one GET of this URL; or `script`: operations of the probe; or `call`: `[method, arguments…]`; or `stdin`: the request's text |
//! | `each` | values for `{}` in any of these, or in their JSON as text: one call for each |
//! | `grant` | laid over the default grant; or `grants`: all of them; or `policy`: laid over the whole |
//! | `config`, `context`, `env` | laid over the job's config; the request's context; variables that the process finds |
//! | `names` | `{"name": ["5.6.7.10"]}`; `[[…], […]]` for one lookup after the other; or a word, of which `reply` has the list |
//! | `serve` | what servers answer: see `world::spec` |
//! | `expect` | the outcome word of the last operation, or of each: `200`, `denied scheme`, `limit url_bytes`, `ok`; `a/b` where either will do; of a call `ok`, or the error's type and who failed, `CpiError config` |
//! | `says` | parts of the message |
//! | `check` | true: `wasm-cpi check` says that, too, and is not content |
//! | `contacts` | everybody spoken to, `dns`, `api:443`, `10.0.0.5:443`, with a `?` behind it if that may be; default: `dns` and `api:443` if the last outcome is a status, else nobody |
//! | `arrived` | every request that reached a server, `GET api.iaas.test/v1/x`; default: as many as contacts other than `dns` |
//! | `carries`, `lacks` | parts of what arrived, in any request; parts of no message and of nothing that arrived |
//! | `lookups` | how often a name was looked up: `{"api.iaas.test": 1}` |
//! | `secret_at` | hosts that a secret of the job reached; default: none |
//!
//! Every denial has its line in the audit log, and every script ends with a look
//! into the guest's memory, where no secret may be. `[[N*text]]` in any text is the text N times, `{"times": N, "of": value}` an
//! array. A grant of https trusts the corpus' authority unless it says otherwise.

mod names;

pub(crate) use names::names;

use crate::case::Case;
use crate::needles::Needles;
use crate::world::{Served, World, named};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tests::process::contains;
use tests::response::CANARY;
use tests::rows::{expanded, filled, lay_over, structured, texts};
use tests::{Job, Response, probe};

const KEYS: [&str; 24] = [
    "case",
    "holes",
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
    "check",
    "contacts",
    "arrived",
    "carries",
    "lacks",
    "lookups",
    "secret_at",
];

pub(crate) fn cases(class: &'static str, rows: &str) -> Result<Vec<Case>, String> {
    let rows: Vec<Value> = serde_json::from_str(rows).map_err(|error| format!("rows of {class}: {error}"))?;
    rows.into_iter().map(|row| case(class, row)).collect()
}

fn case(class: &'static str, row: Value) -> Result<Case, String> {
    let name = row["case"].as_str().ok_or_else(|| format!("a row of {class} has no name: {row}"))?.to_owned();
    let keys = row.as_object().into_iter().flat_map(|row| row.keys());
    if let Some(key) = keys.map(String::as_str).find(|key| !KEYS.contains(key)) {
        return Err(format!("{class}: {name}: `{key}` is no key of a row"));
    }
    let holes = texts(&row["holes"]);
    let row = expanded(&row);
    let attempt = move |world: &World| match row["each"].as_array() {
        None => attempt(world, &row),
        Some(values) => values.iter().try_for_each(|value| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let shown: String = value.chars().take(100).collect();
            let row = structured(filled(&row, &value));
            attempt(world, &row).map_err(|why| format!("with {shown}: {why}"))
        }),
    };
    Ok(Case { class, name, holes, contacts: None, attempt: Box::new(attempt) })
}

fn attempt(world: &World, row: &Value) -> Result<(), String> {
    let job = job(world, row);
    prepare(world, row)?;
    let (words, message) = outcomes(&job, row);
    let expected = texts(&row["expect"]);
    let got = &words[words.len().saturating_sub(expected.len())..];
    let fits = |(got, expected): (&String, &String)| expected.split('/').any(|word| word == got);
    if expected.is_empty() || got.len() != expected.len() || !got.iter().zip(&expected).all(fits) {
        return Err(format!("expected {expected:?}, got {words:?}: {message}"));
    }
    if let Some(part) = texts(&row["says"]).iter().find(|part| !message.contains(part.as_str())) {
        return Err(format!("no `{part}` in: {message}"));
    }
    if row["check"] == true {
        let (content, said) = job.check();
        let missing = texts(&row["says"]).into_iter().find(|part| !said.contains(part.as_str()));
        if content || missing.is_some() || said.contains(CANARY) {
            return Err(format!("check is content: {content}, does not say {missing:?}, or says a secret: {said}"));
        }
    }
    audited(&job, &words)?;
    let went_through = got.last().is_some_and(|word| word.parse::<u16>().is_ok());
    let contacts: Vec<String> = world.contacts()?.iter().map(named).collect();
    let allowed = match &row["contacts"] {
        Value::Null if went_through => vec!["api:443".to_owned(), "dns".to_owned()],
        contacts => texts(contacts),
    };
    let possible =
        |contact: &&String| contact.strip_suffix('?').is_some_and(|one| !contacts.iter().any(|it| it == one));
    let needed =
        allowed.iter().filter(|contact| !possible(contact)).map(|contact| contact.trim_end_matches('?').to_owned());
    same("spoke to", &contacts, &needed.collect::<Vec<_>>())?;
    let arrived = world.arrived();
    let summaries: Vec<String> = arrived.iter().map(|arrived| arrived.summary()).collect();
    match &row["arrived"] {
        Value::Null => {
            let most = allowed.iter().filter(|contact| *contact != "dns").count();
            if summaries.len() > most || (went_through && summaries.is_empty()) {
                return Err(format!("these arrived: {summaries:?}"));
            }
        }
        expected => same("arrived", &summaries, &texts(expected))?,
    }
    let holds = |part: &str| arrived.iter().find(|arrived| contains(&arrived.request.raw, part.as_bytes()));
    if let Some(part) = texts(&row["carries"]).iter().find(|part| holds(part).is_none()) {
        return Err(format!("nothing that arrived holds `{part}`"));
    }
    if let Some(part) = texts(&row["lacks"]).iter().find(|part| message.contains(*part) || holds(part).is_some()) {
        return Err(format!("`{part}` is in what arrived, or in: {message}"));
    }
    for (name, count) in row["lookups"].as_object().into_iter().flatten() {
        if *count != world.lookups(name) {
            return Err(format!("{name} was looked up {} times, not {count}", world.lookups(name)));
        }
    }
    let holding = arrived.iter().filter(|arrived| !canary().found_in(&arrived.request.raw).is_empty());
    let hosts: BTreeSet<String> = holding.map(|arrived| arrived.host.clone()).collect();
    same("a secret arrived at", &hosts.into_iter().collect::<Vec<_>>(), &texts(&row["secret_at"]))
}

/// Every denial that the guest was told of has its line in the audit log, for the
/// same reason, and what is there keeps to the schema.
fn audited(job: &Job, words: &[String]) -> Result<(), String> {
    let path = tests::audit::path(job);
    let lines = if path.exists() { tests::audit::lines(job) } else { Vec::new() };
    let denied = lines.iter().filter(|line| ["denied", "leak"].contains(&line["kind"].as_str().unwrap_or_default()));
    let logged: Vec<String> = denied.map(|line| line["reason"].as_str().unwrap_or_default().to_owned()).collect();
    let told: Vec<String> = words.iter().filter_map(|word| word.strip_prefix("denied ").map(str::to_owned)).collect();
    match told.iter().find(|reason| !logged.contains(reason)) {
        Some(reason) => Err(format!("a denial of `{reason}` is not in the audit log: {lines:?}")),
        None => Ok(()),
    }
}

fn canary() -> &'static Needles {
    static CANARIES: LazyLock<Needles> = LazyLock::new(|| Needles::of("the canary", CANARY));
    &CANARIES
}

/// The script, and behind it a look for the canary in the guest's memory, where
/// all that it is told of the job still stands.
fn searching(script: &Value) -> Value {
    let mut operations = script.as_array().cloned().unwrap_or_default();
    operations.push(json!({"op": "config"}));
    operations.extend(canary().operations(false));
    Value::Array(operations)
}

/// Names and servers as the row has them.
pub(crate) fn prepare(world: &World, row: &Value) -> Result<(), String> {
    world.set(names(&row["names"]), Served::new(&row["serve"]))
}

/// What the call or its operations came to, each as a word, and what was said.
fn outcomes(job: &Job, row: &Value) -> (Vec<String>, String) {
    let get = json!([{"op": "http", "url": row["get"]}]);
    let script = if row["get"].is_null() { &row["script"] } else { &get };
    let response = if !script.is_null() {
        let response = silent(with_context(job.call("has_vm", json!([probe::cid(&searching(script))])), row).run());
        if response.json["error"]["message"].as_str().is_some_and(|text| text.contains("probe outcomes: ")) {
            let mut outcomes = probe::outcomes_in(response.message());
            let looked = |outcome: &mut Value| outcome["op"] == "find" && outcome["ok"]["count"] == 0;
            outcomes.pop_if(looked);
            outcomes.pop_if(|outcome| outcome["op"] == "config");
            return (outcomes.iter().map(word).collect(), format!("{}", Value::from(outcomes)));
        }
        response
    } else if let Some(stdin) = row["stdin"].as_str() {
        job.raw(stdin).run()
    } else {
        let mut words = row["call"].as_array().cloned().unwrap_or_default();
        let method = if words.is_empty() { Value::Null } else { words.remove(0) };
        with_context(job.call(method.as_str().unwrap_or_default(), Value::Array(words)), row).run()
    };
    (vec![ended(&response)], silent(response).json.to_string())
}

/// Says nothing of the canary, in whatever form.
fn silent(response: Response) -> Response {
    let text = format!("{}\n{}", response.json, response.stderr);
    let told = canary().found_in(text.as_bytes());
    assert!(told.is_empty(), "{told:?} in {text}");
    response
}

fn with_context<'a>(call: tests::Call<'a>, row: &Value) -> tests::Call<'a> {
    let context = row["context"].as_object().into_iter().flatten();
    let call = context.fold(call, |call, (key, value)| call.context(key, value.clone()));
    let env = row["env"].as_object().into_iter().flatten();
    env.fold(call, |call, (name, value)| call.env(name, value.as_str().unwrap_or_default()))
}

/// `200`, `denied scheme`, `limit url_bytes`, `ok`.
fn word(outcome: &Value) -> String {
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

/// `ok`, or the error's type and who failed: `CpiError config`.
fn ended(response: &Response) -> String {
    let error = &response.json["error"];
    if error.is_null() {
        return "ok".to_owned();
    }
    let kind = error["type"].as_str().unwrap_or_default().trim_start_matches("Bosh::Clouds::");
    let who = error["message"].as_str().and_then(|message| message.split_once(": ")).map_or("", |(who, _)| who);
    format!("{kind} {who}").trim_end().to_owned()
}

pub(crate) fn job(world: &World, row: &Value) -> Job {
    let mut grant =
        json!({"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"]});
    lay_over(&mut grant, &row["grant"]);
    let mut policy =
        json!({"version": 1, "http": if row["grants"].is_null() { json!([grant]) } else { row["grants"].clone() }});
    lay_over(&mut policy, &row["policy"]);
    for kind in ["http", "logins"] {
        let grants = match &mut policy[kind] {
            Value::Array(grants) => grants.iter_mut().collect(),
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
    if policy["logins"].is_null() {
        policy.as_object_mut().map(|policy| policy.remove("logins"));
    }
    tests::audit::audited(Job::default().policy(policy)).configure(|config| lay_over(config, &row["config"]))
}

fn same(what: &str, got: &[String], expected: &[String]) -> Result<(), String> {
    let sorted = |texts: &[String]| {
        let mut texts = texts.to_vec();
        texts.sort();
        if what == "spoke to" {
            texts.dedup();
        }
        texts
    };
    if sorted(got) == sorted(expected) { Ok(()) } else { Err(format!("{what} {got:?}, expected {expected:?}")) }
}
