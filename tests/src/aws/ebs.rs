//! The REST protocol of EBS direct: which operation a request is, where its parameters
//! are, and how results are written.

use super::error::Error;
use super::model::{self, Direction, Operation, Shape, Structure};
use super::service::Api;
use crate::gateway::{Request, Response};
use serde_json::{Map, Value, json};

/// The headers of signatures.
const SIGNATURE: [&str; 3] = ["x-amz-date", "x-amz-content-sha256", "x-amz-security-token"];

/// Returns the operation of a request, and the parameters in its path.
pub(super) fn operation(request: &Request) -> Option<(&'static str, Vec<(String, String)>)> {
    model::operations(Api::Ebs).find_map(|operation| {
        let same_method = operation.text("method") == request.method;
        let parameters = same_method.then(|| path_parameters(operation.text("path"), &request.path)).flatten();
        parameters.map(|parameters| (operation.name, parameters))
    })
}

fn path_parameters(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
    let (wanted, parts): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    if wanted.len() != parts.len() {
        return None;
    }
    let mut found = Vec::new();
    for (wanted, part) in wanted.into_iter().zip(parts) {
        match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => found.push((name.to_owned(), part.to_owned())),
            None if wanted == part => {}
            None => return None,
        }
    }
    Some(found)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new("ValidationException", message)
}

/// Returns the parameters of a request with their types; a block stays in the body.
pub(super) fn parameters(
    operation: Operation,
    request: &Request,
    path: Vec<(String, String)>,
    body: &[u8],
) -> Result<Value, Error> {
    let shape = operation.shape(Direction::Input).ok_or_else(|| invalid("the operation has no parameters"))?;
    let mut given: Vec<(String, String, &str)> = path.into_iter().map(|(name, value)| (name, value, "uri")).collect();
    given.extend(request.query.iter().map(|(name, value)| (name.clone(), value.clone(), "querystring")));
    for (name, value) in &request.headers {
        let lower = name.to_lowercase();
        if lower.starts_with("x-amz-") && !SIGNATURE.contains(&lower.as_str()) {
            let known = shape.members().find(|(member, _)| member.eq_ignore_ascii_case(name));
            let known = known.map_or(name.as_str(), |(member, _)| member);
            given.push((known.to_owned(), value.clone(), "header"));
        }
    }
    let mut read = match shape.payload() {
        Some(name) => json!({name: ""}),
        None => read_body(operation, shape, request, body)?,
    };
    for (name, text, place) in given {
        if shape.place(&name) != Some(place) {
            return Err(invalid(format!("There is no parameter {name} in the {place}.")));
        }
        let member = shape.member(&name).unwrap_or("string");
        let value = match operation.resolve(Direction::Input, member) {
            Shape::Integer => text.parse::<i64>().map(Value::from).unwrap_or(Value::Null),
            _ => json!(text),
        };
        read[&name] = check(operation, member, &value, &name)?;
    }
    match shape.required().find(|name| read.get(name).is_none()) {
        Some(name) => Err(invalid(format!("{name} is missing."))),
        None => Ok(read),
    }
}

fn read_body(operation: Operation, shape: Structure<'_>, request: &Request, body: &[u8]) -> Result<Value, Error> {
    if body.is_empty() {
        return Ok(json!({}));
    }
    if request.header("content-type") != Some("application/json") {
        return Err(invalid("The body must have the type application/json."));
    }
    let given: Map<String, Value> =
        serde_json::from_slice(body).map_err(|_| invalid("The body is not a JSON object."))?;
    let mut read = json!({});
    for (name, value) in &given {
        let member = shape.member(name).filter(|_| shape.place(name).is_none());
        let member = member.ok_or_else(|| invalid(format!("There is no parameter {name} in the body.")))?;
        read[name] = check(operation, member, value, name)?;
    }
    Ok(read)
}

/// Returns the value if it has the type of the shape.
fn check(operation: Operation, shape: &str, value: &Value, name: &str) -> Result<Value, Error> {
    let fits = match operation.resolve(Direction::Input, shape) {
        Shape::String | Shape::Blob | Shape::Timestamp => value.is_string(),
        Shape::Integer => value.is_i64(),
        Shape::Number => value.is_number(),
        Shape::Boolean => value.is_boolean(),
        Shape::Enum(values) => values.contains(value),
        Shape::List { member, .. } => {
            let values = value.as_array().ok_or_else(|| invalid(format!("{name} must be a list.")))?;
            return values.iter().map(|value| check(operation, member, value, name)).collect();
        }
        Shape::Structure(structure) => {
            let members = value.as_object().ok_or_else(|| invalid(format!("{name} must be an object.")))?;
            let unknown = members.keys().find(|key| structure.member(key).is_none());
            if let Some(key) = unknown {
                return Err(invalid(format!("There is no parameter {name}.{key}.")));
            }
            for (key, value) in members {
                check(operation, structure.member(key).unwrap_or("string"), value, key)?;
            }
            true
        }
    };
    if fits { Ok(value.clone()) } else { Err(invalid(format!("{name} has an invalid value: {value}."))) }
}

/// Writes a result: members of headers, and the rest as JSON, or a block.
pub(super) fn response(operation: Operation, result: &Value, block: Vec<u8>, id: &str) -> Response {
    let mut response = Response::new(operation.status()).with("x-amzn-RequestId", id);
    let shape = operation.shape(Direction::Output);
    let mut body = Map::new();
    for (name, value) in result.as_object().into_iter().flatten() {
        let known = shape.and_then(|shape| shape.member(name).map(|_| shape.place(name)));
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match known {
            Some(Some("header")) => response = response.with(name, &text),
            Some(_) => drop(body.insert(name.clone(), value.clone())),
            None => {
                let error = Error::with_status(500, "InternalServerException", format!("the model has no {name}"));
                return super::answer::error(Api::Ebs, &error, id);
            }
        }
    }
    if shape.and_then(Structure::payload).is_some() {
        return Response { body: block, ..response }.with("Content-Type", "application/octet-stream");
    }
    Response { body: Value::Object(body).to_string().into_bytes(), ..response }.with("Content-Type", "application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_recognised_by_method_and_path() {
        for (method, target, expected) in [
            ("POST", "/snapshots", Some("StartSnapshot")),
            ("PUT", "/snapshots/snap-1/blocks/7", Some("PutSnapshotBlock")),
            ("GET", "/snapshots/snap-1/blocks/7?blockToken=x", Some("GetSnapshotBlock")),
            ("GET", "/snapshots/snap-1/blocks", Some("ListSnapshotBlocks")),
            ("POST", "/snapshots/completion/snap-1", Some("CompleteSnapshot")),
            ("GET", "/snapshots", None),
            ("POST", "/snapshots/", None),
        ] {
            let found = operation(&Request::new(method, target, Vec::new())).map(|(name, _)| name);
            assert_eq!(found, expected, "{method} {target}");
        }
    }
}
