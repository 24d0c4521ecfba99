//! The config file: read and parsed once, before its content is checked.

use super::{ConfigSource, operator_file};
use crate::failure::{Failure, Problem};
use serde_json::{Map, Value};
use wasm_cpi_policy::{json_kind, strict_json};

const MAX_DEPTH: usize = 64;

/// The JSON object of a config file. Its content may be invalid.
#[derive(Clone)]
pub struct ConfigFile {
    pub(super) source: ConfigSource,
    /// All keys of the file, with its `modules`.
    pub(super) fields: Map<String, Value>,
    /// Warnings about the file itself.
    pub(super) warnings: Vec<String>,
}

impl ConfigFile {
    pub fn read(source: &ConfigSource) -> Result<ConfigFile, Failure> {
        let (text, warnings) = operator_file::read(&source.path)?;
        let file = ConfigFile::parse(source, &text)
            .map_err(|problem| Failure::of_problems(&source.path.display(), &[problem]))?;
        Ok(ConfigFile { warnings, ..file })
    }

    pub fn parse(source: &ConfigSource, text: &str) -> Result<ConfigFile, Problem> {
        match strict_json::parse(text, MAX_DEPTH) {
            Ok(Value::Object(fields)) => Ok(ConfigFile { source: source.clone(), fields, warnings: Vec::new() }),
            Ok(other) => {
                let found = json_kind(&other);
                Err(Problem::new(format!("the file holds {found}; it must hold a JSON object, {{\"version\": 1, …}}")))
            }
            Err(error) => {
                let problem = Problem::new(format!("the file is not JSON: {error}; correct the file"));
                Err(Problem { check: error.check(), ..problem })
            }
        }
    }
}
