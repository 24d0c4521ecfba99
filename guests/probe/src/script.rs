//! Finding a script: a JSON array of objects with `op`, given as such or as
//! text. Where a script is expected and something else stands, that is an
//! error; a cloud ID that holds none is just a cloud ID.

use serde_json::{Map, Value};
use wasm_cpi_sdk::{Error, Json, Metadata, config};

use crate::cids::SCRIPTED;
use crate::encoding::from_base64;

/// The operations, not yet parsed: each one is when its turn comes, as it may
/// use what an earlier one gave.
pub(crate) type Script = Vec<Map<String, Value>>;

/// `probe` in an object such as `cloud_properties`.
pub(crate) fn in_object(properties: &Json) -> Result<Option<Script>, Error> {
    match properties.value()?.get("probe") {
        Some(value) => parse("cloud_properties.probe", value).map(Some),
        None => Ok(None),
    }
}

/// `bosh.tags.probe` in `env`.
pub(crate) fn in_env(env: &Json) -> Result<Option<Script>, Error> {
    match env.value()?.pointer("/bosh/tags/probe") {
        Some(value) => parse("env.bosh.tags.probe", value).map(Some),
        None => Ok(None),
    }
}

/// The key `probe` of metadata or tags.
pub(crate) fn in_metadata(metadata: &Metadata) -> Result<Option<Script>, Error> {
    match metadata.iter().find(|(key, _)| key == "probe") {
        Some((_, text)) => parse("metadata.probe", &Value::String(text.clone())).map(Some),
        None => Ok(None),
    }
}

/// The exposed property `probe`, for the method that has only numbers.
pub(crate) fn in_properties() -> Result<Option<Script>, Error> {
    match config::properties::<Value>()?.get("probe") {
        Some(value) => parse("properties.probe", value).map(Some),
        None => Ok(None),
    }
}

/// `probe:<base64>`, unless it holds outcomes, as the cloud IDs do that the
/// probe itself answers.
pub(crate) fn in_cid(cid: &str) -> Option<Script> {
    let bytes = from_base64(cid.strip_prefix(SCRIPTED)?)?;
    let script = operations(&serde_json::from_slice(&bytes).ok()?)?;
    let outcome = |op: &Map<String, Value>| op.contains_key("ok") || op.contains_key("error");
    (!script.is_empty() && !script.iter().any(outcome)).then_some(script)
}

/// Arguments for `{{args…}}`: what is no JSON is shown as text.
pub(crate) fn value_of(json: &Json) -> Value {
    json.value().unwrap_or_else(|_| Value::String(json.text().to_owned()))
}

fn parse(place: &str, value: &Value) -> Result<Script, Error> {
    let from_text = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    operations(from_text.as_ref().unwrap_or(value))
        .ok_or_else(|| Error::cpi(format!("{place}: a script is an array of objects with `op`, or that as text")))
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
    fn where_there_is_none_there_is_none() {
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
        fn any_cloud_id_can_be_looked_at(text in r"(probe:)?\PC{0,60}", bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            assert!(in_cid(&text).is_none_or(|script| !script.is_empty()));
            assert!(in_cid(&format!("probe:{}", to_base64(&bytes))).is_none_or(|script| !script.is_empty()));
        }
    }
}
