//! Finds a script: a JSON array of objects with `op`, as JSON or as text. Another
//! value at a place for scripts is an error, but a cloud ID without a script is not.

use serde_json::{Map, Value};
use wasm_cpi_sdk::{Error, Json, Metadata, config};

use crate::cids::SCRIPTED;
use crate::encoding::from_base64;

/// The operations. Each one is parsed just before it runs, as it may use the outcomes
/// of earlier ones.
pub(crate) type Script = Vec<Map<String, Value>>;

/// Returns the script at `probe` in an object such as `cloud_properties`.
pub(crate) fn in_object(properties: &Json) -> Result<Option<Script>, Error> {
    match properties.value()?.get("probe") {
        Some(value) => parse("cloud_properties.probe", value).map(Some),
        None => Ok(None),
    }
}

/// Returns the script at `bosh.tags.probe` in `env`.
pub(crate) fn in_env(env: &Json) -> Result<Option<Script>, Error> {
    match env.value()?.pointer("/bosh/tags/probe") {
        Some(value) => parse("env.bosh.tags.probe", value).map(Some),
        None => Ok(None),
    }
}

/// Returns the script at the key `probe` of metadata or tags.
pub(crate) fn in_metadata(metadata: &Metadata) -> Result<Option<Script>, Error> {
    match metadata.iter().find(|(key, _)| key == "probe") {
        Some((_, text)) => parse("metadata.probe", &Value::String(text.clone())).map(Some),
        None => Ok(None),
    }
}

/// Returns the script in the exposed property `probe`, for the method that has only
/// numbers as arguments.
pub(crate) fn in_properties() -> Result<Option<Script>, Error> {
    match config::properties::<Value>()?.get("probe") {
        Some(value) => parse("properties.probe", value).map(Some),
        None => Ok(None),
    }
}

/// Returns the script in `probe:<base64>`, unless it holds outcomes, as the cloud IDs
/// that the probe returns do.
pub(crate) fn in_cid(cid: &str) -> Option<Script> {
    let bytes = from_base64(cid.strip_prefix(SCRIPTED)?)?;
    let script = operations(&serde_json::from_slice(&bytes).ok()?)?;
    let outcome = |op: &Map<String, Value>| op.contains_key("ok") || op.contains_key("error");
    (!script.is_empty() && !script.iter().any(outcome)).then_some(script)
}

/// Returns a document for `{{args…}}`, as text if it is not JSON.
pub(crate) fn value_of(json: &Json) -> Value {
    json.value().unwrap_or_else(|_| Value::String(json.text().to_owned()))
}

fn parse(place: &str, value: &Value) -> Result<Script, Error> {
    let from_text = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    operations(from_text.as_ref().unwrap_or(value)).ok_or_else(|| {
        Error::cpi(format!("{place}: expected a script, an array of objects with `op`, as JSON or as text"))
    })
}

fn operations(value: &Value) -> Option<Script> {
    let operation = |value: &Value| match value {
        Value::Object(object) if object.get("op").is_some_and(Value::is_string) => Some(object.clone()),
        _ => None,
    };
    value.as_array()?.iter().map(operation).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasm_cpi_sdk::fake::Fake;

    use super::*;
    use crate::encoding::to_base64;

    fn cid(value: &Value) -> String {
        format!("probe:{}", to_base64(value.to_string().as_bytes()))
    }

    #[test]
    fn scripts_are_found_in_all_places_as_json_or_text() {
        let script = json!([{"op": "env"}, {"op": "sleep", "ms": 1}]);
        let text = script.to_string();
        let metadata = vec![("a".to_owned(), "b".to_owned()), ("probe".to_owned(), text.clone())];
        let _host = Fake::new().properties(json!({"probe": script})).install();
        for found in [
            in_object(&Json::from(json!({"probe": script}))).unwrap(),
            in_object(&Json::from(json!({"probe": text}))).unwrap(),
            in_env(&Json::from(json!({"bosh": {"tags": {"probe": text}}}))).unwrap(),
            in_metadata(&metadata).unwrap(),
            in_properties().unwrap(),
            in_cid(&cid(&script)),
        ] {
            let found: Vec<Value> = found.unwrap().into_iter().map(Value::Object).collect();
            assert_eq!(Value::Array(found), script);
        }
    }

    #[test]
    fn places_without_a_script_have_none() {
        let _host = Fake::new().install();
        assert_eq!(in_object(&Json::raw("null")).unwrap(), None);
        assert_eq!(in_object(&Json::raw("[]")).unwrap(), None);
        assert_eq!(in_env(&Json::raw(r#"{"bosh":{"group":"g"}}"#)).unwrap(), None);
        assert_eq!(in_metadata(&vec![]).unwrap(), None);
        assert_eq!(in_properties().unwrap(), None);
        for other in ["vm-1", "probe:", "probe:!", "probe:e30="] {
            assert_eq!(in_cid(other), None, "{other}");
        }
        for value in [json!([]), json!([1]), json!([{"op": "env", "ok": {}}]), json!([{"op": "a"}, {"error": 1}])] {
            assert_eq!(in_cid(&cid(&value)), None, "{value}");
        }
    }

    #[test]
    fn a_broken_script_is_an_error_that_names_its_place() {
        for value in [json!({}), json!("x"), json!([{"no": 1}]), json!([{"op": 1}]), json!(null)] {
            let error = in_object(&Json::from(json!({"probe": value}))).unwrap_err();
            assert!(error.message.starts_with("cloud_properties.probe: "), "{value}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_cloud_id_holds_a_script_or_none(text in r"(probe:)?\PC{0,60}", bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            assert!(in_cid(&text).is_none_or(|script| !script.is_empty()));
            assert!(in_cid(&format!("probe:{}", to_base64(&bytes))).is_none_or(|script| !script.is_empty()));
        }
    }
}
