//! Files of the repository that the schemas are tested with: examples, and rows of known mistakes.
//! The runtime's tests include this file, too.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::tree::repository;

/// Returns the directories with documents and examples.
fn directories() -> Vec<PathBuf> {
    let root = repository();
    let guests = fs::read_dir(root.join("guests")).unwrap().map(|entry| entry.unwrap().path());
    let named = ["", "docs", "docs/schema", "release", "wit", "runtime/src/commands/new/template"];
    let named = named.into_iter().chain(["runtime/src/commands/new/template/examples"]).map(|name| root.join(name));
    named.chain(guests.filter(|path| path.is_dir())).collect()
}

/// Returns the files in these directories whose names fit.
fn files(fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = directories().into_iter().flat_map(|directory| fs::read_dir(directory).unwrap());
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(&fits);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| name(path)).collect();
    files.sort();
    files
}

/// Returns the JSON files of guests and of the template for new guests whose names begin like
/// this, with their paths.
pub(crate) fn examples(begin: &str) -> Vec<(PathBuf, Value)> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, value)
    };
    let fits = |name: &str| name.starts_with(begin) && name.ends_with(".json") && !name.ends_with(".schema.json");
    files(fits).into_iter().map(read).collect()
}

/// Returns the complete files that documents show in blocks of JSON, with the paths of the
/// documents. Blocks with a part of a file have no version.
pub(crate) fn documented() -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for path in files(|name| name.ends_with(".md")) {
        let text =
            fs::read_to_string(&path).unwrap().replace("\"sha256\": \"…\"", &format!("\"sha256\": \"{:064}\"", 0));
        let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
        let values = blocks.filter_map(|block| serde_json::from_str::<Value>(block).ok());
        found.extend(values.filter(|value| value.get("version").is_some()).map(|value| (path.clone(), value)));
    }
    found
}

/// Attacks that only the reader finds: the name, the values of `each` (all if there are none), and
/// the reason.
pub(crate) type ReaderOnly<'a> = &'a [(&'a str, &'a [&'a str], &'a str)];

/// Checks that all attacks of a list exist.
pub(crate) fn check_list(list: ReaderOnly<'_>) {
    let attacks = attacks();
    for (name, values, why) in list {
        let exists = |value: &&str| attacks.iter().any(|attack| attack.name == *name && attack.value == *value);
        assert!(attacks.iter().any(|attack| attack.name == *name) && values.iter().all(exists), "{name}: {values:?}");
        assert!(why.ends_with('.'), "{name}: {why}");
    }
}

/// One attack on a policy or config: its name, the value of `each` that was filled in, and the row.
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) row: Value,
}

impl Attack {
    /// Returns true if the readers find the mistake.
    pub(crate) fn is_mistake(&self) -> bool {
        self.row["expect"] == "CpiError config"
    }

    /// Returns true if the list has this attack.
    pub(crate) fn is_listed(&self, list: ReaderOnly<'_>) -> bool {
        list.iter().any(|(name, values, _)| *name == self.name && (values.is_empty() || values.contains(&&*self.value)))
    }

    /// Returns true if the row changes the config alone.
    pub(crate) fn is_about_config(&self) -> bool {
        ["grant", "grants", "policy"].iter().all(|key| self.row[*key].is_null()) && self.row["config"].is_object()
    }
}

/// Returns the rows of `tests/attack/rows/policies.json`, one for each value of their `each`.
pub(crate) fn attacks() -> Vec<Attack> {
    let text = fs::read_to_string(repository().join("tests/attack/rows/policies.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut attacks = Vec::new();
    for row in rows {
        let values = row["each"].as_array().cloned().unwrap_or_else(|| vec![json!("")]);
        for value in values.iter().map(|value| value.as_str().unwrap()) {
            let name = row["case"].as_str().unwrap().to_owned();
            attacks.push(Attack { name, value: value.to_owned(), row: filled(&row, value) });
        }
    }
    attacks
}

/// Returns the value with `{}` in its strings and keys replaced.
fn filled(value: &Value, by: &str) -> Value {
    match value {
        Value::String(text) => json!(text.replace("{}", by)),
        Value::Array(list) => list.iter().map(|value| filled(value, by)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.replace("{}", by), filled(value, by))).collect(),
        other => other.clone(),
    }
}

/// Applies a JSON merge patch: null removes a key.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else { return };
    for (key, value) in changes {
        match target.get_mut(key) {
            Some(known) if known.is_object() && value.is_object() => merge(known, value),
            _ if value.is_null() => drop(target.as_object_mut().map(|target| target.remove(key))),
            _ => target[key] = value.clone(),
        }
    }
}
