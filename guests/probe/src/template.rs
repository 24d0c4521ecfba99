//! Replaces `{{…}}` in the strings of a script: values of earlier outcomes
//! (`{{0.ok.body.id}}`), properties (`{{props.password}}`) and arguments
//! (`{{args.vm}}`), with filters (`{{0.ok|base64}}`). A string that consists of one
//! such expression becomes the value itself; inside a text, the value becomes text.

use serde_json::{Map, Value};
use wasm_cpi_sdk::config;

use crate::encoding::{to_base64, to_base64url, to_hex, to_percent};

/// The sources of values.
pub(crate) struct Values<'a> {
    pub(crate) outcomes: &'a [Value],
    pub(crate) args: &'a Value,
}

impl Values<'_> {
    /// Returns the operation with all expressions replaced.
    pub(crate) fn fill_object(&self, object: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        object.iter().map(|(key, value)| Ok((self.fill_text(key)?, self.fill(value)?))).collect()
    }

    fn fill(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill_string(text),
            Value::Array(values) => values.iter().map(|value| self.fill(value)).collect(),
            Value::Object(object) => self.fill_object(object).map(Value::Object),
            other => Ok(other.clone()),
        }
    }

    fn fill_string(&self, text: &str) -> Result<Value, String> {
        let whole = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        match whole.filter(|inner| !inner.contains("{{") && !inner.contains("}}")) {
            Some(expression) => self.value(expression),
            None => self.fill_text(text).map(Value::String),
        }
    }

    fn fill_text(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((expression, behind)) = after.split_once("}}") else { break };
            filled.push_str(before);
            filled.push_str(&as_text(&self.value(expression)?));
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&self, expression: &str) -> Result<Value, String> {
        let mut parts = expression.split('|').map(str::trim);
        let path = parts.next().unwrap_or_default();
        let mut value = self.lookup(path).ok_or_else(|| format!("`{{{{{expression}}}}}` does not exist"))?;
        for filter in parts {
            value = Value::String(apply(filter, &as_text(&value))?);
        }
        Ok(value)
    }

    fn lookup(&self, path: &str) -> Option<Value> {
        let mut keys = path.split('.');
        let root = match keys.next()? {
            "props" => config::properties::<Value>().ok()?,
            "args" => self.args.clone(),
            index => self.outcomes.get(index.parse::<usize>().ok()?)?.clone(),
        };
        keys.try_fold(root, |value, key| step(&value, key))
    }
}

/// Returns the value at a key. A text that holds JSON, such as the body of a response,
/// counts as that JSON.
fn step(value: &Value, key: &str) -> Option<Value> {
    match value {
        Value::Object(object) => object.get(key).cloned(),
        Value::Array(values) => values.get(key.parse::<usize>().ok()?).cloned(),
        Value::String(text) => step(&serde_json::from_str(text).ok().filter(|inner: &Value| !inner.is_string())?, key),
        _ => None,
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn apply(filter: &str, text: &str) -> Result<String, String> {
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(text.len(), |(at, _)| at);
    Ok(match filter {
        "base64" => to_base64(text.as_bytes()),
        "base64url" => to_base64url(text.as_bytes()),
        "hex" => to_hex(text.as_bytes()),
        "percent" => to_percent(text.as_bytes()),
        "reverse" => text.chars().rev().collect(),
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        "first" => text[..half].to_owned(),
        "second" => text[half..].to_owned(),
        "json" => Value::String(text.to_owned()).to_string(),
        other => return Err(format!("the filter `{other}` does not exist")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasm_cpi_sdk::fake::Fake;

    use super::*;

    fn fill(template: &str) -> Result<Value, String> {
        let outcomes = [json!({"op": "a", "ok": "seal"}), json!({"ok": {"body": r#"{"id":[7]}"#, "n": 5}})];
        let args = json!({"vm": "vm-1"});
        Values { outcomes: &outcomes, args: &args }.fill(&Value::String(template.to_owned()))
    }

    #[test]
    fn values_come_from_outcomes_properties_and_arguments() {
        let _host = Fake::new().properties(json!({"a": {"b": "p"}})).install();
        for (template, value) in [
            ("{{0.ok}}", json!("seal")),
            ("x{{0.ok}}y{{0.ok}}", json!("xsealyseal")),
            ("{{1.ok.body.id.0}}", json!(7)),
            ("{{1.ok.n}}", json!(5)),
            ("n={{1.ok.n}}", json!("n=5")),
            ("{{1.ok}}", json!({"body": r#"{"id":[7]}"#, "n": 5})),
            ("{{props.a.b}}", json!("p")),
            ("{{args.vm}}", json!("vm-1")),
            ("plain {{", json!("plain {{")),
            ("", json!("")),
        ] {
            assert_eq!(fill(template), Ok(value), "{template}");
        }
    }

    #[test]
    fn filters_transform_texts() {
        for (filter, text) in [
            ("base64", "c2VhbA=="),
            ("base64url", "c2VhbA"),
            ("hex", "7365616c"),
            ("percent", "%73%65%61%6C"),
            ("reverse", "laes"),
            ("upper", "SEAL"),
            ("first", "se"),
            ("second", "al"),
            ("json", "\"seal\""),
            ("upper|lower|first", "se"),
        ] {
            assert_eq!(fill(&format!("{{{{0.ok|{filter}}}}}")), Ok(json!(text)), "{filter}");
        }
    }

    #[test]
    fn keys_are_filled_too() {
        let values = Values { outcomes: &[], args: &json!({"k": "key"}) };
        let object = json!({"{{args.k}}": [{"a": "{{args.k}}"}]});
        let filled = values.fill_object(object.as_object().unwrap()).unwrap();
        assert_eq!(Value::Object(filled), json!({"key": [{"a": "key"}]}));
    }

    #[test]
    fn a_missing_value_is_an_error() {
        for template in ["{{9.ok}}", "{{0.error}}", "{{0.ok.x}}", "{{nope}}", "{{0.ok|rot13}}", "a{{args.x}}"] {
            assert!(fill(template).is_err(), "{template}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_filled_or_rejected(text in r"[{}|.0-9a-zé ]{0,40}") {
            let _ = fill(&text);
        }

        #[test]
        fn text_without_braces_stays_as_it_is(text in r"[^{}]{0,40}") {
            assert_eq!(fill(&text), Ok(Value::String(text)));
        }
    }
}
