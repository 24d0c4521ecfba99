//! Reads parameters that have the types of the model.

use super::error::{Error, missing};
use serde_json::Value;

pub(super) fn text<'a>(parameters: &'a Value, name: &str) -> Option<&'a str> {
    parameters[name].as_str()
}

pub(super) fn required<'a>(parameters: &'a Value, name: &str) -> Result<&'a str, Error> {
    text(parameters, name).ok_or_else(|| missing(name))
}

pub(super) fn number(parameters: &Value, name: &str) -> Option<i64> {
    parameters[name].as_i64()
}

pub(super) fn flag(parameters: &Value, name: &str) -> bool {
    parameters[name].as_bool().unwrap_or_default()
}

pub(super) fn list<'a>(parameters: &'a Value, name: &str) -> &'a [Value] {
    parameters[name].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn texts<'a>(parameters: &'a Value, name: &str) -> Vec<&'a str> {
    list(parameters, name).iter().filter_map(Value::as_str).collect()
}

/// Rejects parameters that the API has and the simulator does not, so that none is
/// ignored.
pub(super) fn only(parameters: &Value, known: &[&str]) -> Result<(), Error> {
    let names = parameters.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    match names.into_iter().find(|name| !known.contains(name)) {
        Some(name) => {
            Err(Error::new("UnsupportedOperation", format!("The simulator does not have the parameter {name}.")))
        }
        None => Ok(()),
    }
}
