//! The section `modules`: more guests in one file, each as if it had a file of
//! its own that says what it shares with the others.

use serde_json::{Map, Value, json};

/// What a module has of its own, or does without: what it is, may and gets.
const OF_A_MODULE: [&str; 3] = ["guest", "properties", "policy"];

/// The file with what this module says laid over it. Without a module, the file's own guest is meant.
pub(super) fn of_module(
    mut fields: Map<String, Value>,
    module: Option<&str>,
) -> Result<Map<String, Value>, Vec<String>> {
    let modules = match fields.remove("modules") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(modules)) if modules.values().all(Value::is_object) => modules,
        Some(_) => return Err(vec!["`modules` must be an object that has an object for each module's name".into()]),
    };
    let known = modules.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let Some(name) = module else {
        if fields.get("guest").is_none_or(Value::is_null) && !modules.is_empty() {
            return Err(vec![format!(
                "there is no `guest`; name one of `modules`: {known} (`exec_path` data/JOB/bin/NAME, or `--module`)"
            )]);
        }
        return Ok(fields);
    };
    let Some(Value::Object(own)) = modules.get(name) else {
        let known = if known.is_empty() { "none" } else { &known };
        return Err(vec![format!("there is no module `{name}`; `modules` has: {known}")]);
    };
    if let Some(key) = ["version", "modules"].into_iter().find(|key| own.contains_key(*key)) {
        return Err(vec![format!("`modules.{name}.{key}` stands in a module, but is for the whole file")]);
    }
    OF_A_MODULE.iter().for_each(|key| drop(fields.remove(*key)));
    // Grants of another module are none of its own.
    fields.insert("policy".to_owned(), json!({"version": 1}));
    fields.extend(own.clone());
    Ok(fields)
}
