//! The section `modules`: further guests in one config. Each module is read as a config of its own
//! that inherits most keys of the file.

use serde_json::{Map, Value, json};
use wasm_cpi_policy::json_kind;

/// A module, as messages show it.
const EXAMPLE: &str = "{\"guest\": …, \"properties\": …, \"policy\": …}";

/// The keys that a module does not inherit from the file.
const NOT_INHERITED: [&str; 3] = ["guest", "properties", "policy"];

/// The keys that a module must not have.
const FILE_ONLY: [&str; 3] = ["version", "modules", "$schema"];

/// Returns the keys of the file, overridden by those of this module. Without a module, returns
/// the keys for the file's own guest.
pub(super) fn select_module(
    mut fields: Map<String, Value>,
    module: Option<&str>,
) -> Result<Map<String, Value>, String> {
    let modules = match fields.remove("modules") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(modules)) => {
            if let Some((name, module)) = modules.iter().find(|(_, module)| !module.is_object()) {
                let found = json_kind(module);
                return Err(format!("`modules.{name}` is {found}; it must be an object such as {EXAMPLE}"));
            }
            modules
        }
        Some(other) => {
            let found = json_kind(&other);
            return Err(format!("`modules` is {found}; it must be an object such as {{\"acme\": {EXAMPLE}}}"));
        }
    };
    let known = modules.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let Some(name) = module else {
        if fields.get("guest").is_none_or(Value::is_null) && !modules.is_empty() {
            return Err(format!(
                "the config has no `guest`; choose one of its `modules`: {known} (with `--module`, or with `exec_path` \
                 data/JOB/bin/NAME in the cpi-config)"
            ));
        }
        return Ok(fields);
    };
    let Some(Value::Object(own)) = modules.get(name) else {
        let known = if known.is_empty() { "none" } else { &known };
        return Err(format!("there is no module `{name}`; `modules` has: {known}"));
    };
    if let Some(key) = FILE_ONLY.into_iter().find(|key| own.contains_key(*key)) {
        return Err(format!(
            "`modules.{name}.{key}` is set in a module, but is for the whole file; move it to the top of the file"
        ));
    }
    NOT_INHERITED.iter().for_each(|key| drop(fields.remove(*key)));
    // A module does not get the grants of another module.
    fields.insert("policy".to_owned(), json!({"version": 1}));
    fields.extend(own.clone());
    Ok(fields)
}
