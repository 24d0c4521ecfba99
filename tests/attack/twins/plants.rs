//! A secret in every form in which a comparison with it could show: complete, in
//! parts, in other case and encoded. Scripts plant them wherever a guest chooses a
//! text.

use crate::needles::forms;
use serde_json::Value;
use std::collections::BTreeSet;

/// Stands for every plant in an operation, which is then performed once for each.
const PLANT: &str = "§plant";

/// The shortest part of a secret that is planted.
const SHORTEST: usize = 4;

/// Returns the forms of an ASCII secret, each once.
pub(crate) fn plants(secret: &str) -> Vec<String> {
    let length = secret.len();
    let mut all = vec![secret.to_owned(), format!("{secret}{secret}"), format!("x{secret}y")];
    // All prefixes of a short secret, and some of a long one.
    let step = (length / 8).max(1);
    all.extend((SHORTEST..length).step_by(step).map(|end| secret[..end].to_owned()));
    all.extend((1..length.saturating_sub(SHORTEST)).step_by(2 * step).map(|start| secret[start..].to_owned()));
    if length > SHORTEST + 1 {
        all.push(secret[1..length - 1].to_owned());
    }
    all.push(secret.to_uppercase());
    all.push(secret.to_lowercase());
    let swapped = |c: char| if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
    all.push(secret.chars().map(swapped).collect());
    all.push(secret.chars().rev().collect());
    all.extend(forms(secret).into_iter().map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()));
    let mut known = BTreeSet::new();
    all.retain(|plant| known.insert(plant.clone()));
    all
}

/// Repeats each operation that holds `§plant` for every plant of the secret.
pub(crate) fn expand_plants(script: &Value, secret: &str) -> Value {
    let plants = plants(secret);
    let expand = |operation: &Value| -> Vec<Value> {
        if !operation.to_string().contains(PLANT) {
            return vec![operation.clone()];
        }
        plants.iter().map(|plant| replace_in_texts(operation, &|text| text.replace(PLANT, plant))).collect()
    };
    script.as_array().into_iter().flatten().flat_map(expand).collect()
}

/// Applies a change to every text of a document, but not to its keys.
pub(super) fn replace_in_texts(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| replace_in_texts(item, change)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| (key.clone(), replace_in_texts(field, change))).collect()
        }
        other => other.clone(),
    }
}
