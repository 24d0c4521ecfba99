//! Rows as twin runs.
//!
//! A row of `rows/twins.json` has the keys of `crate::row` that describe a call, and
//! these:
//!
//! | key | meaning |
//! |---|---|
//! | `runs` | the values of the secrets in each run: a text, or an array of texts |
//! | `script`, or `calls` | the operations of the only call, or a list of scripts: calls that share all files |
//! | `method` | `create_disk` (the default), `create_vm` with `vm_env` as the VM's `env`, or `attach_disk` with a registry |
//! | `tripwire` | true: answers hold a secret, so the tripwire ends calls |
//! | `unstarted` | true: in some runs the config is refused before a guest starts |
//!
//! In all keys except the scripts, `§0`, `§1` … stand for the values of the run. In
//! all keys, `§A` stands for the first value of the first run. An operation that
//! holds `§plant` is performed for every form of that value. So the first run
//! is the one in which a comparison with the secret would succeed.
//!
//! All other rows that involve a secret become twins by themselves: their canaries
//! get other values in the config, and then in the answers of servers, too.

use super::observation::with_long_lines;
use super::plants::replace_in_texts;
use super::renaming::{Values, secrets_in};
use super::{Rules, Run, compare, expand_plants};
use crate::case::Case;
use crate::row;
use crate::world::World;
use serde_json::{Value, json};
use tests::Job;
use tests::rows::{expand_repeats, texts};

pub(crate) const CLASS: &str = "twin runs";

const KEYS: [&str; 17] = [
    "case",
    "mutants",
    "runs",
    "script",
    "calls",
    "method",
    "vm_env",
    "tripwire",
    "unstarted",
    "grant",
    "grants",
    "policy",
    "config",
    "context",
    "env",
    "names",
    "serve",
];

/// Returns the cases of a file of twin rows.
pub(crate) fn cases(rows: &str) -> Result<Vec<Case>, String> {
    let rows: Vec<Value> = serde_json::from_str(rows).map_err(|error| format!("twin rows: {error}"))?;
    rows.into_iter().map(case).collect()
}

fn case(row: Value) -> Result<Case, String> {
    let name = row["case"].as_str().ok_or_else(|| format!("a twin row has no name: {row}"))?.to_owned();
    let keys = row.as_object().into_iter().flat_map(|row| row.keys());
    if let Some(key) = keys.map(String::as_str).find(|key| !KEYS.contains(key)) {
        return Err(format!("{CLASS}: {name}: `{key}` is not a key of a twin row"));
    }
    let (mutants, row) = (texts(&row["mutants"]), expand_repeats(&row));
    let attempt = move |world: &World| {
        let values: Vec<Vec<String>> = row["runs"].as_array().into_iter().flatten().map(texts).collect();
        let runs: Vec<Run> = values.iter().map(|run| with_values(world, &row, run, &values[0][0])).collect();
        compare(world, &runs, Rules { tripwire: row["tripwire"] == true, unstarted: row["unstarted"] == true })
    };
    Ok(Case { class: CLASS, name, mutants, refused: false, contacts: None, attempt: Box::new(attempt) })
}

/// Returns the run of a twin row with these values.
fn with_values(world: &World, row: &Value, values: &[String], first: &str) -> Run {
    let planted = |value: &Value| replace_in_texts(value, &|text| text.replace("§A", first));
    let filled = |value: &Value| {
        replace_in_texts(&planted(value), &|text| {
            let each = values.iter().enumerate();
            each.fold(text.to_owned(), |text, (at, value)| text.replace(&format!("§{at}"), value))
        })
    };
    let is_script = |key: &str| ["script", "calls"].contains(&key);
    let fields = row.as_object().into_iter().flatten();
    let filled: Value =
        fields.map(|(key, value)| (key.clone(), if is_script(key) { planted(value) } else { filled(value) })).collect();
    let scripts = match &filled["calls"] {
        Value::Array(scripts) => scripts.clone(),
        _ => vec![filled["script"].clone()],
    };
    let shown: Vec<String> = values.iter().map(|value| value.chars().take(30).collect()).collect();
    Run {
        name: shown.join(", "),
        job: with_long_lines(row::job(world, &filled)),
        scripts: scripts.iter().map(|script| expand_plants(script, first)).collect(),
        secrets: values.to_vec(),
        row: filled,
    }
}

/// Returns a run of a row whose secrets have their values already.
pub(crate) fn run(world: &World, name: &str, row: Value, secrets: &[&str]) -> Run {
    Run {
        name: name.to_owned(),
        job: with_long_lines(row::job(world, &row)),
        scripts: row["calls"].as_array().cloned().unwrap_or_else(|| vec![row["script"].clone()]),
        secrets: secrets.iter().map(|secret| (*secret).to_owned()).collect(),
        row,
    }
}

/// Returns a twin case for each row of a file that lets a guest use a secret.
pub(crate) fn derived_cases(rows: &str) -> Result<Vec<Case>, String> {
    let rows: Vec<Value> = serde_json::from_str(rows).map_err(|error| format!("rows: {error}"))?;
    Ok(rows.into_iter().filter(involves_secret).map(derived_case).collect())
}

fn involves_secret(row: &Value) -> bool {
    let text = row.to_string();
    let has_script = row["script"].is_array() || row["script"].is_string() || row["get"].is_string();
    let refused = texts(&row["expect"]).iter().any(|outcome| outcome.starts_with("CpiError"));
    let excluded = row["twins"].is_string();
    has_script
        && !refused
        && !excluded
        && ["cAnArY7", "{{props.", "${", "\"slots\"", "\"captures\"", "\"drop\""].iter().any(|part| text.contains(part))
}

fn derived_case(row: Value) -> Case {
    let name = format!("twins of: {}", row["case"].as_str().unwrap_or_default());
    let row = expand_repeats(&row);
    let attempt = move |world: &World| row::for_each_value(&row, |row| compare_derived(world, row));
    Case { class: CLASS, name, mutants: Vec::new(), refused: false, contacts: None, attempt: Box::new(attempt) }
}

/// Compares the row with twins whose secrets have other values in the config alone, and
/// then in the answers of servers, too.
fn compare_derived(world: &World, row: &Value) -> Result<(), String> {
    let runs = [
        derived(world, row, "the row's secrets", Values::Same, Values::Same),
        derived(world, row, "other secrets", Values::Distinct, Values::Same),
        derived(world, row, "other secrets everywhere", Values::Distinct, Values::Distinct),
        derived(world, row, "one secret everywhere", Values::Equal, Values::Equal),
    ];
    compare(world, &runs, Rules { tripwire: true, unstarted: false })
}

fn derived(world: &World, row: &Value, name: &str, config: Values, served: Values) -> Run {
    let mut secrets = secrets_in(row);
    let mut twin = row.clone();
    twin["context"] = config.in_document(&row["context"]);
    twin["serve"] = with_served(&row["serve"], served);
    let job = row::job(world, row);
    let job = Job::configure(job, |known| {
        secrets.extend(secrets_in(known));
        *known = config.in_document(known);
    });
    let renamed: Vec<String> = [config, served]
        .iter()
        .flat_map(|values| secrets.iter().map(|secret| texts(&values.in_document(&json!(secret))).concat()))
        .collect();
    let get = json!([{"op": "http", "url": row["get"]}]);
    let script = if row["get"].is_null() { row["script"].clone() } else { get };
    let scripts = vec![with_config(&script)];
    Run { name: name.to_owned(), job: with_long_lines(job), row: twin, scripts, secrets: renamed }
}

/// Returns the answers of servers with other values. Answers that are written byte by
/// byte stay as they are, because their length is part of them.
fn with_served(serve: &Value, values: Values) -> Value {
    let is_raw =
        |answer: &Value| ["raw", "raw_base64", "cut", "stall", "drip"].iter().any(|key| !answer[*key].is_null());
    let answer = |answer: &Value| if is_raw(answer) { answer.clone() } else { values.in_document(answer) };
    let answers = |answers: &Value| match answers {
        Value::Array(each) => each.iter().map(answer).collect(),
        one => answer(one),
    };
    let all = serve.as_object().into_iter().flatten();
    all.map(|(key, value)| (key.clone(), answers(value))).collect()
}

/// Returns the script and a look at the properties, whose seals must stay different.
fn with_config(script: &Value) -> Value {
    let mut operations = script.as_array().cloned().unwrap_or_default();
    operations.push(json!({"op": "config"}));
    Value::Array(operations)
}
