//! The sections of a config: takes out each key as it is read, and collects the problems.

use crate::failure::Problem;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;

/// The keys of a config, which are taken out as they are read, and the problems found so far.
pub(super) struct Sections {
    fields: Map<String, Value>,
    pub(super) problems: Vec<Problem>,
    /// The keys that the reader has asked for.
    known: Vec<&'static str>,
}

impl Sections {
    pub(super) fn new(fields: Map<String, Value>) -> Sections {
        // `select_module` has read `modules`.
        Sections { fields, problems: Vec::new(), known: vec!["modules"] }
    }

    /// Returns the value of a key, which is a known key from now on.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.fields.remove(key)
    }

    /// Accepts `$schema`, with which editors find the JSON Schema of the file. Its value has no effect.
    pub(super) fn accept_schema(&mut self) {
        if self.take("$schema").is_some_and(|schema| !schema.is_string()) {
            self.add_problem("`$schema` must be a string, the path or URL of a JSON Schema; correct it or remove it");
        }
    }

    pub(super) fn add_problem(&mut self, text: impl Into<String>) {
        self.problems.push(Problem::new(text));
    }

    pub(super) fn ensure(&mut self, check: Check, holds: bool, problem: impl FnOnce() -> Problem) {
        self.problems.extend(check.ensure(holds, problem).err());
    }

    pub(super) fn optional<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let value = self.take(key).filter(|value| !value.is_null())?;
        match serde_json::from_value(value) {
            Ok(section) => Some(section),
            Err(error) => {
                let message = error.to_string();
                // Serde quotes values in type errors, and values may be secrets.
                let problem = Problem::new(format!("`{key}` is invalid: {}", without_values(&message)));
                // Only the text of serde's error says that a key is unknown.
                let check = message.starts_with("unknown field ").then_some(Check::UnknownKey);
                self.problems.push(Problem { check, ..problem });
                None
            }
        }
    }

    /// Returns the file of the policy, and the policy itself if it is part of the config.
    pub(super) fn take_policy(&mut self, config: &Path) -> (PathBuf, Option<String>) {
        match self.take("policy") {
            None | Some(Value::Null) => ("policy.json".into(), None),
            Some(Value::String(file)) => (file.into(), None),
            Some(Value::Object(policy)) => {
                (config.file_name().unwrap_or_default().into(), Some(Value::Object(policy).to_string()))
            }
            Some(_) => {
                self.add_problem("`policy` must be the path of a file, or the policy itself as an object");
                ("policy.json".into(), None)
            }
        }
    }

    pub(super) fn required<T: DeserializeOwned>(&mut self, key: &'static str, example: &str) -> Option<T> {
        if self.fields.get(key).is_none_or(Value::is_null) {
            self.add_problem(format!("`{key}` is missing; add \"{key}\": {example}"));
            self.take(key);
            return None;
        }
        self.optional(key)
    }

    /// Reports the keys that were not read.
    pub(super) fn report_unknown_keys(&mut self) {
        let known = self.known.join(", ");
        for key in std::mem::take(&mut self.fields).keys() {
            let refused = Check::UnknownKey.refuse(|| {
                let remedy = format!("remove it or correct its spelling; known here: {known}");
                Problem::new(format!("`{key}` is not a key of the configuration; {remedy}"))
            });
            self.problems.extend(refused.err());
        }
    }
}

/// Removes the value from a message such as `invalid type: string "hunter2", expected …`.
fn without_values(message: &str) -> String {
    let kinds = ["invalid type: ", "invalid value: ", "unknown variant "];
    let shown = kinds.iter().find_map(|what| Some((*what, message.find(what)?)));
    match (shown, message.rfind(", expected ")) {
        (Some((what, start)), Some(end)) if start < end => {
            format!("{}{}{}", &message[..start], what.trim_end_matches([':', ' ']), &message[end..])
        }
        _ => message.to_owned(),
    }
}
