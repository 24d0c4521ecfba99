//! The operations that needs declare, for APIs with one path for all of them. A native test judges operations
//! in forms, in JSON and in headers, and takes others for declared.
//!
//! `tests/cases/declared-operations.json` of the repository keeps this module and the runtime's own reader of
//! needs the same.

use serde_json::{Value, json};

use super::form::{form_fields, header, media_type};
use crate::bindings::bosh::cpi::http;

/// Returns true if a need declares the operation of a request. A need without operations declares all of
/// them: which ones are granted only the policy says.
pub(super) fn declares(need: &Value, request: &http::Request) -> bool {
    let operations = &need["operations"];
    let (Some(place), Some(allowed)) = (operations["in"].as_str(), operations["allow"].as_array()) else {
        return true;
    };
    let named = match place.split_once(':') {
        // A server could read the query as fields of the form.
        Some(("form", _)) if request.url.contains('?') => None,
        Some(("form", field)) => form_fields(request).and_then(|mut form| form.remove(field)),
        Some(("header", name)) => header(request, name).map(str::to_owned),
        Some(("json", pointer)) => {
            let text = |(_, body): (String, Value)| body.pointer(pointer)?.as_str().map(str::to_owned);
            only_key(request).and_then(text)
        }
        None if place == "json" => only_key(request).map(|(key, _)| key),
        _ => return true,
    };
    named.is_some_and(|named| allowed.iter().any(|name| *name == *named))
}

/// Returns the operations of a need for this request, if its form has an `Action`.
pub(super) fn suggestion(request: &http::Request) -> Option<Value> {
    let action = form_fields(request)?.remove("Action")?;
    Some(json!({"in": "form:Action", "allow": [action]}))
}

/// Returns the only top-level key of a JSON body, and the body.
fn only_key(request: &http::Request) -> Option<(String, Value)> {
    let http::Body::Bytes(bytes) = &request.body else { return None };
    let media_type = media_type(request)?;
    if media_type != "application/json" && !media_type.ends_with("+json") {
        return None;
    }
    let body: Value = serde_json::from_slice(bytes).ok()?;
    let object = body.as_object().filter(|object| object.len() == 1)?;
    Some((object.keys().next()?.clone(), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same cases as the runtime's own reader of needs.
    #[test]
    fn exactly_the_operations_that_the_runtime_sees_as_declared_are_declared() {
        let cases: Vec<Value> =
            serde_json::from_str(include_str!("../../../../tests/cases/declared-operations.json")).unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            for (key, declared) in [("declared", true), ("undeclared", false)] {
                for sent in case[key].as_array().unwrap() {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    let headers = sent["headers"].as_object().unwrap();
                    let request = http::Request {
                        method: "POST".to_owned(),
                        url: "https://api.test/".to_owned(),
                        headers: headers.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
                        body: http::Body::Bytes(text(&sent["body"]).into_bytes()),
                        timeout_ms: None,
                    };
                    assert_eq!(declares(&case, &request), declared, "{}: {sent}", case["operations"]);
                }
            }
        }
    }
}
