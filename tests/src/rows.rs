//! The macro language of the corpus' rows (`tests/attack/row.rs`): expands a written
//! row to the values that are tested. It does not interpret the keys.

use serde_json::{Value, json};

/// Returns a string, or an array of strings, as a list of strings.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

/// Replaces `{}` in every string of the row, including keys.
pub fn fill_placeholders(value: &Value, by: &str) -> Value {
    match value {
        Value::String(text) => json!(text.replace("{}", by)),
        Value::Array(values) => values.iter().map(|value| fill_placeholders(value, by)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.replace("{}", by), fill_placeholders(value, by))).collect()
        }
        other => other.clone(),
    }
}

/// Expands `[[N*text]]` in every string, and `{"times": N, "of": value}`.
pub fn expand_repeats(value: &Value) -> Value {
    if let Some(times) = value["times"].as_u64() {
        return (0..times).map(|_| value["of"].clone()).collect();
    }
    match value {
        Value::String(text) => json!(expand_text(text)),
        Value::Array(values) => values.iter().map(expand_repeats).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), expand_repeats(value))).collect(),
        other => other.clone(),
    }
}

fn expand_text(text: &str) -> String {
    let part = |rest: &str| {
        let (inside, after) = rest.split_once("]]")?;
        let (count, unit) = inside.split_once('*')?;
        Some(unit.repeat(count.parse().ok()?) + &expand_text(after))
    };
    match text.split_once("[[").and_then(|(before, rest)| Some(before.to_owned() + &part(rest)?)) {
        Some(expanded) => expanded,
        None => text.to_owned(),
    }
}

/// Parses the keys whose value is JSON text after `each` was filled in.
pub fn parse_json_values(mut row: Value) -> Value {
    for key in ["script", "grant", "grants", "policy", "config", "context", "serve"] {
        if let Some(text) = row[key].as_str() {
            row[key] = serde_json::from_str(text).unwrap_or_else(|error| panic!("`{key}`: {error}: {text}"));
        }
    }
    row
}

/// Applies a JSON merge patch: null removes a key.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return };
    for (key, value) in fields {
        match (value, target.get_mut(key)) {
            (Value::Null, _) => drop(target.as_object_mut().map(|target| target.remove(key))),
            (Value::Object(_), Some(known)) if known.is_object() => merge_patch(known, value),
            _ => target[key] = value.clone(),
        }
    }
}
