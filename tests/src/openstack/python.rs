//! Messages of the services' validation, which show values in Python's notation.

use super::message::{Response, fault};
use serde_json::Value;

/// Formats a value as Python's `repr` does.
pub(super) fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(values) => format!("[{}]", values.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Object(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("'{key}': {}", repr(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the error for a value that does not match the schema.
pub(super) fn invalid_input(field: &str, value: &Value, why: &str) -> Response {
    let shown = value.as_str().map_or_else(|| repr(value), str::to_owned);
    fault(400, &format!("Invalid input for field/attribute {field}. Value: {shown}. {why}"))
}

/// Returns the error for a value, with a reason that starts with the value:
/// `'x' is not a 'uuid'`.
pub(super) fn invalid_value(field: &str, value: &Value, why: &str) -> Response {
    invalid_input(field, value, &format!("{} {why}", repr(value)))
}

pub(super) fn unexpected_property(field: &str, value: &Value, key: &str) -> Response {
    invalid_input(field, value, &format!("Additional properties are not allowed ('{key}' was unexpected)"))
}

pub(super) fn missing_property(field: &str, value: &Value, key: &str) -> Response {
    invalid_input(field, value, &format!("'{key}' is a required property"))
}

pub(super) fn is_uuid(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    digits == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::repr;
    use serde_json::json;

    #[test]
    fn values_are_formatted_as_in_python() {
        let value = json!({"a": [1, true, null, "x"], "b": {}});
        assert_eq!(repr(&value), "{'a': [1, True, None, 'x'], 'b': {}}");
    }
}
