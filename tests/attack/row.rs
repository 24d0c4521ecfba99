//! A case as data: what a guest tries, what comes of it, and who was spoken to.
//!
//! | key | meaning |
//! |---|---|
//! | `case` | its name |
//! | `holes` | named checks that it would miss |
//! | `get` | one GET of this URL; or `script`: operations of the probe; or `call`: `[method, arguments…]`; or `stdin`: the request's text |
//! | `each` | values for `{}` in any of these: one call for each |
//! | `grant` | laid over the default grant; or `grants`: all of them; or `policy`: laid over the whole |
//! | `config`, `context` | laid over the job's config; the request's context |
//! | `names` | `{"name": ["5.6.7.10"]}`; `[[…], […]]` for one lookup after the other; or `nxdomain`, `servfail`, `silence`, `garbage`, `other-name`, `alias:NAME` |
//! | `serve` | what servers answer: see `world::spec` |
//! | `expect` | the outcome word of the last operation, or of each: `200`, `denied scheme`, `limit url_bytes`, `ok`; of a call `ok`, or the error's type and who failed, `CpiError config` |
//! | `says` | parts of the message |
//! | `check` | true: `wasm-cpi check` says that, too, and is not content |
//! | `contacts` | everybody spoken to, `dns`, `api:443`, `10.0.0.5:443`; default: `dns` and `api:443` if the last outcome is a status, else nobody |
//! | `arrived` | every request that reached a server, `GET api.iaas.test/v1/x`; default: as many as contacts other than `dns` |
//!
//! A grant of https trusts the corpus' authority unless it says otherwise.

use crate::case::Case;
use crate::dns::Reply;
use crate::trace::Contact;
use crate::world::{Served, World, known};
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::process::contains;
use tests::response::CANARY;
use tests::{Job, Response, probe};

const KEYS: [&str; 18] = [
    "case", "holes", "get", "script", "call", "stdin", "each", "grant", "grants", "policy", "config", "context",
    "names", "serve", "expect", "says", "check", "contacts",
];

pub(crate) fn cases(class: &'static str, rows: &str) -> Result<Vec<Case>, String> {
    let rows: Vec<Value> = serde_json::from_str(rows).map_err(|error| format!("rows of {class}: {error}"))?;
    rows.into_iter().map(|row| case(class, row)).collect()
}

fn case(class: &'static str, row: Value) -> Result<Case, String> {
    let name = row["case"].as_str().ok_or_else(|| format!("a row of {class} has no name: {row}"))?.to_owned();
    let keys = row.as_object().into_iter().flat_map(|row| row.keys());
    if let Some(key) = keys.map(String::as_str).find(|key| !KEYS.contains(key) && *key != "arrived") {
        return Err(format!("{class}: {name}: `{key}` is no key of a row"));
    }
    let holes = texts(&row["holes"]);
    let attempt = move |world: &World| match row["each"].as_array() {
        None => attempt(world, &row),
        Some(values) => values.iter().try_for_each(|value| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            attempt(world, &filled(&row, &value)).map_err(|why| format!("with {value}: {why}"))
        }),
    };
    Ok(Case { class, name, holes, attempt: Box::new(attempt) })
}

fn attempt(world: &World, row: &Value) -> Result<(), String> {
    let job = job(world, row);
    world.set(names(&row["names"]), Served::new(&row["serve"]))?;
    let (words, message) = outcomes(&job, row);
    let expected = texts(&row["expect"]);
    let got = &words[words.len().saturating_sub(expected.len())..];
    if expected.is_empty() || got != expected {
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
    let went_through = got.last().is_some_and(|word| word.parse::<u16>().is_ok());
    let contacts: Vec<String> = world.contacts()?.iter().map(named).collect();
    let allowed = match &row["contacts"] {
        Value::Null if went_through => vec!["api:443".to_owned(), "dns".to_owned()],
        contacts => texts(contacts),
    };
    same("spoke to", &contacts, &allowed)?;
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
    match arrived.iter().find(|arrived| contains(&arrived.request.raw, CANARY.as_bytes())) {
        Some(arrived) => Err(format!("a secret arrived: {}", arrived.summary())),
        None => Ok(()),
    }
}

/// What the call or its operations came to, each as a word, and what was said.
fn outcomes(job: &Job, row: &Value) -> (Vec<String>, String) {
    let get = json!([{"op": "http", "url": row["get"]}]);
    let script = if row["get"].is_null() { &row["script"] } else { &get };
    let response = if !script.is_null() {
        let response = with_context(job.call("has_vm", json!([probe::cid(script)])), row).run();
        if response.json["error"]["message"].as_str().is_some_and(|text| text.contains("probe outcomes: ")) {
            let outcomes = probe::outcomes_in(response.message());
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
    (vec![ended(&response)], response.json.to_string())
}

fn with_context<'a>(call: tests::Call<'a>, row: &Value) -> tests::Call<'a> {
    let context = row["context"].as_object().into_iter().flatten();
    context.fold(call, |call, (key, value)| call.context(key, value.clone()))
}

/// `200`, `denied scheme`, `limit url_bytes`, `ok`.
fn word(outcome: &Value) -> String {
    let error = &outcome["error"];
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
    format!("{kind} {who}")
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
    Job::default().policy(policy).configure(|config| lay_over(config, &row["config"]))
}

pub(crate) fn names(names: &Value) -> HashMap<String, Vec<Reply>> {
    let mut all = HashMap::from([
        ("api.iaas.test".to_owned(), vec![addresses(&json!(["5.6.7.10"]))]),
        ("evil.test".to_owned(), vec![addresses(&json!(["5.6.7.66"]))]),
    ]);
    for (name, value) in names.as_object().into_iter().flatten() {
        let replies = match value {
            Value::Array(lookups) if lookups.first().is_some_and(Value::is_array) => {
                lookups.iter().map(addresses).collect()
            }
            Value::String(word) => vec![reply(word)],
            one => vec![addresses(one)],
        };
        all.insert(name.clone(), replies);
    }
    all
}

fn reply(word: &str) -> Reply {
    match word {
        "nxdomain" => Reply::NoSuchName,
        "servfail" => Reply::ServerFailure,
        "silence" => Reply::Silence,
        "garbage" => Reply::Garbage,
        "other-name" => Reply::OtherName(vec![[5, 6, 7, 66].into()]),
        "many" => {
            Reply::Addresses((0..1000_u16).map(|n| [5, 6, n.to_be_bytes()[0] + 8, n.to_be_bytes()[1]].into()).collect())
        }
        other => match other.strip_prefix("alias:") {
            Some(name) => Reply::Alias(name.to_owned()),
            None => panic!("`{other}` is no reply of a name server"),
        },
    }
}

fn addresses(list: &Value) -> Reply {
    let address = |text: String| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    Reply::Addresses(texts(list).into_iter().map(address).collect())
}

fn named(contact: &Contact) -> String {
    match (known(contact.to.ip()), contact.udp) {
        (Some("dns"), _) if contact.to.port() == 53 => "dns".to_owned(),
        (Some(name), false) => format!("{name}:{}", contact.to.port()),
        (_, udp) => format!("{}{}", contact.to, if udp { "/udp" } else { "" }),
    }
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

/// A string, or an array of strings, as strings.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

/// `{}` in every string below `get`, `script`, `call`, `stdin`, `grant`, `grants`,
/// `policy`, `config`, `names` and `serve` replaced.
fn filled(value: &Value, by: &str) -> Value {
    match value {
        Value::String(text) => json!(text.replace("{}", by)),
        Value::Array(values) => values.iter().map(|value| filled(value, by)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.replace("{}", by), filled(value, by))).collect(),
        other => other.clone(),
    }
}

/// JSON merge patch: null removes.
pub(crate) fn lay_over(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return };
    for (key, value) in fields {
        match (value, target.get_mut(key)) {
            (Value::Null, _) => drop(target.as_object_mut().map(|target| target.remove(key))),
            (Value::Object(_), Some(known)) if known.is_object() => lay_over(known, value),
            _ => target[key] = value.clone(),
        }
    }
}
