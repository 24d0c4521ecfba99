//! The file of `--context`: the properties of a cpi-config, which a Director sends with every request.
//! They are not an argument themselves, because other users of the machine can read arguments.

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::io;
use std::path::Path;

/// Returns the properties in the file, in stdin for `-`, or none if there is no file. Errors do not
/// quote them, because they hold secrets.
pub(super) fn read(path: Option<&Path>) -> Result<Map<String, Value>, Failure> {
    let Some(path) = path else { return Ok(Map::new()) };
    let failed = |what: String| Failure::request(format!("--context {}: {what}", path.display()));
    let text = if path.as_os_str() == "-" { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(path) };
    let text = text.map_err(|error| failed(format!("cannot be read: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        failed(format!(
            "expected a JSON object such as {{\"region\": \"a\"}}; found something else at line {line}, column {column}"
        ))
    })
}
