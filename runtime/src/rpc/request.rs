//! The request: parses bytes into a typed envelope. Arguments stay JSON until the method is
//! known (`arguments`).
//!
//! Accepts what real clients send: no `api_version` (the Director's first `info`), no
//! `request_id` (the CLI), and unknown keys in the context (properties of a cpi-config).

use crate::failure::Failure;
use serde_json::{Map, Value};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::NOT_PROPERTIES;
use wasm_cpi_policy::strict_json::{self, whole_number};

/// The deepest nesting of a request. The JSON parser's own limit is 128.
const MAX_DEPTH: usize = 100;

/// The most properties of a request. Each one is a secret for which all log lines and answers are searched.
const MAX_PROPERTIES: usize = 2_000;

/// The caller's request: the envelope, with arguments that are not parsed yet.
#[derive(Clone, PartialEq)]
pub struct Request {
    pub method: String,
    pub arguments: Vec<Value>,
    /// The caller's API version, or 1 if the caller sent none.
    pub api_version: u32,
    pub director_uuid: Option<String>,
    /// The ID of the request, which only the Director sends.
    pub request_id: Option<String>,
    pub stemcell_api_version: Option<u32>,
    /// The rest of the context: the properties of a cpi-config, including secrets.
    pub properties: Map<String, Value>,
}

impl Request {
    /// Parses a request. `max_api_version` is the version that this CPI returns in `info`.
    pub fn parse(bytes: &[u8], max_api_version: u32) -> Result<Request, Failure> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(Failure::request("stdin is empty; a CPI reads one JSON request from stdin"));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Failure::request(format!("the request is not UTF-8: {error}; send one JSON document")))?;
        let value = strict_json::parse(text, MAX_DEPTH).map_err(|error| {
            let failure =
                Failure::request(format!("the request is not one JSON document: {error}; send one complete document"));
            Failure { check: error.check(), ..failure }
        })?;
        let Value::Object(mut fields) = value else {
            return Err(Failure::request("the request must be a JSON object with `method` and `arguments`"));
        };
        let method = match fields.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return Err(Failure::request("`method` must be a string")),
            None => return Err(Failure::request("`method` is missing")),
        };
        let arguments = match fields.remove("arguments") {
            Some(Value::Array(arguments)) => arguments,
            Some(_) => return Err(Failure::request("`arguments` must be an array")),
            None => return Err(Failure::request("`arguments` is missing; send [] for none")),
        };
        let api_version = match fields.remove("api_version") {
            None | Some(Value::Null) => 1,
            Some(value) => {
                version(&value).ok_or_else(|| Failure::request("`api_version` must be a whole number of at least 1"))?
            }
        };
        Check::ApiVersion.ensure(api_version <= max_api_version, || {
            Failure::request(format!(
                "`api_version` is {api_version}, but this CPI supports at most {max_api_version}; use the version that `info` returns"
            ))
        })?;
        let mut context = match fields.remove("context") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(context)) => context,
            Some(_) => return Err(Failure::request("`context` must be an object")),
        };
        let stemcell_api_version = stemcell_version(context.get("vm"))?;
        let director_uuid = text_of(&context, "director_uuid")?;
        let request_id = text_of(&context, "request_id")?;
        context.retain(|key, _| !NOT_PROPERTIES.contains(&key.as_str()));
        Check::ContextValues.ensure(strict_json::leaves(context.values()) <= MAX_PROPERTIES, || {
            Failure::request(format!(
                "`context` holds more than {MAX_PROPERTIES} properties; remove some from the cpi-config"
            ))
        })?;
        Ok(Request {
            method,
            arguments,
            api_version,
            director_uuid,
            request_id,
            stemcell_api_version,
            properties: context,
        })
    }
}

fn text_of(context: &Map<String, Value>, key: &str) -> Result<Option<String>, Failure> {
    match context.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Failure::request(format!("`context.{key}` must be a string"))),
    }
}

fn stemcell_version(vm: Option<&Value>) -> Result<Option<u32>, Failure> {
    let Some(value) = vm.and_then(|vm| vm.get("stemcell")).and_then(|stemcell| stemcell.get("api_version")) else {
        return Ok(None);
    };
    if value.is_null() {
        return Ok(None);
    }
    let number = version(value)
        .ok_or_else(|| Failure::request("`context.vm.stemcell.api_version` must be a whole number of at least 1"))?;
    Ok(Some(number))
}

/// Returns an API version. Accepts `2.0`, which a Director sends if `info` returned `2.0`.
fn version(value: &Value) -> Option<u32> {
    whole_number(value).and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Request, Failure> {
        Request::parse(text.as_bytes(), 3)
    }

    #[test]
    fn requests_of_real_clients_are_parsed() {
        let director = parse(
            r#"{"method":"create_vm","arguments":[1],"context":{"director_uuid":"d","request_id":"cpi-123456","vm":{"stemcell":{"api_version":2}},"password":"p"},"api_version":3}"#,
        )
        .unwrap();
        assert_eq!(director.api_version, 3);
        assert_eq!(director.request_id.as_deref(), Some("cpi-123456"));
        assert_eq!(director.stemcell_api_version, Some(2));
        assert_eq!(director.properties.keys().collect::<Vec<_>>(), ["password"]);

        let negotiating = parse(r#"{"method":"info","arguments":[],"context":{"director_uuid":"d"}}"#).unwrap();
        assert_eq!((negotiating.api_version, negotiating.stemcell_api_version), (1, None));
        let cli = parse("{\"method\":\"info\",\"arguments\":[],\"context\":{\"director_uuid\":\"\\u003cd\\u003e\",\"vm\":{\"stemcell\":{\"api_version\":1}}},\"api_version\":2.0}\n").unwrap();
        assert_eq!((cli.api_version, cli.director_uuid.as_deref()), (2, Some("<d>")));
    }

    #[test]
    fn an_invalid_request_is_rejected_and_the_error_names_the_key() {
        for (text, said) in [
            ("", "stdin is empty"),
            (" \n", "stdin is empty"),
            ("x", "not one JSON document"),
            ("{\"method\":\"info\"", "not one JSON document"),
            ("{} {}", "not one JSON document"),
            ("\u{feff}{}", "not one JSON document"),
            (r#"{"method":"a","method":"b","arguments":[]}"#, "method"),
            ("[]", "must be a JSON object"),
            ("null", "must be a JSON object"),
            (r#"{"arguments":[]}"#, "`method` is missing"),
            (r#"{"method":1,"arguments":[]}"#, "`method` must be a string"),
            (r#"{"method":"info"}"#, "`arguments` is missing"),
            (r#"{"method":"info","arguments":null}"#, "`arguments` must be an array"),
            (r#"{"method":"info","arguments":[],"api_version":"2"}"#, "`api_version` must be a whole number"),
            (r#"{"method":"info","arguments":[],"api_version":0}"#, "`api_version` must be a whole number"),
            (r#"{"method":"info","arguments":[],"api_version":1.5}"#, "`api_version` must be a whole number"),
            (r#"{"method":"info","arguments":[],"api_version":4}"#, "supports at most 3"),
            (r#"{"method":"info","arguments":[1e400]}"#, "not one JSON document"),
            (r#"{"method":"info","arguments":[],"context":[]}"#, "`context` must be an object"),
            (r#"{"method":"info","arguments":[],"context":{"director_uuid":1}}"#, "`context.director_uuid`"),
            (
                r#"{"method":"info","arguments":[],"context":{"vm":{"stemcell":{"api_version":"2"}}}}"#,
                "`context.vm.stemcell.api_version`",
            ),
        ] {
            let failure = parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
            assert!(failure.to_string().contains(said), "{text}: {failure}");
            assert!(failure.to_string().starts_with("request: "), "{failure}");
        }
    }

    #[test]
    fn invalid_utf_8_and_deep_nesting_are_rejected() {
        assert!(Request::parse(b"{\"method\":\"\xff\"}", 3).is_err());
        let deep = format!("{{\"method\":\"info\",\"arguments\":[{}{}]}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse(&deep).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(&bytes, 3);
        }

        #[test]
        fn no_json_makes_it_panic(method in ".{0,8}", version in any::<i64>(), key in "[a-z_]{0,12}", value in any::<f64>()) {
            let text = serde_json::json!({"method": method, "arguments": [value], "api_version": version, "context": {key: value}});
            let _ = Request::parse(text.to_string().as_bytes(), 3);
        }
    }
}
