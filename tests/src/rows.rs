//! The language of the corpus' rows (`tests/attack/row.rs`): one row as it is
//! written becomes the values that are tried. It knows no key's meaning.

use serde_json::{Value, json};

/// A string, or an array of strings, as strings.
pub fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

/// `{}` in every string of the row replaced, keys included.
pub fn filled(value: &Value, by: &str) -> Value {
    match value {
        Value::String(text) => json!(text.replace("{}", by)),
        Value::Array(values) => values.iter().map(|value| filled(value, by)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.replace("{}", by), filled(value, by))).collect(),
        other => other.clone(),
    }
}

/// `[[N*text]]` in every string written out, and `{"times": N, "of": value}`.
pub fn expanded(value: &Value) -> Value {
    if let Some(times) = value["times"].as_u64() {
        return (0..times).map(|_| value["of"].clone()).collect();
    }
    match value {
        Value::String(text) => json!(repeated(text)),
        Value::Array(values) => values.iter().map(expanded).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), expanded(value))).collect(),
        other => other.clone(),
    }
}

fn repeated(text: &str) -> String {
    let part = |rest: &str| {
        let (inside, after) = rest.split_once("]]")?;
        let (count, unit) = inside.split_once('*')?;
        Some(unit.repeat(count.parse().ok()?) + &repeated(after))
    };
    match text.split_once("[[").and_then(|(before, rest)| Some(before.to_owned() + &part(rest)?)) {
        Some(written) => written,
        None => text.to_owned(),
    }
}

/// What `each` put together as the text of JSON, as that JSON.
pub fn structured(mut row: Value) -> Value {
    for key in ["script", "grant", "grants", "policy", "config", "context", "serve"] {
        if let Some(text) = row[key].as_str() {
            row[key] = serde_json::from_str(text).unwrap_or_else(|error| panic!("`{key}`: {error}: {text}"));
        }
    }
    row
}

/// JSON merge patch: null removes.
pub fn lay_over(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return };
    for (key, value) in fields {
        match (value, target.get_mut(key)) {
            (Value::Null, _) => drop(target.as_object_mut().map(|target| target.remove(key))),
            (Value::Object(_), Some(known)) if known.is_object() => lay_over(known, value),
            _ => target[key] = value.clone(),
        }
    }
}
