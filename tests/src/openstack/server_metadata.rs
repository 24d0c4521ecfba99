//! The metadata and tags of servers.

use super::message::{Answer, Response, fault, not_found};
use super::python::{invalid_input, invalid_value};
use super::servers::{check_state, find};
use super::simulator::Call;
use super::state::State;
use serde_json::{Map, Value, json};

/// The microversion that added tags.
const TAGS: u32 = 26;
/// The states of a server in which its metadata can change.
const CHANGEABLE: [&str; 4] = ["active", "paused", "suspended", "stopped"];

pub(super) fn answer(state: &mut State, call: &Call, version: u32, id: &str) -> Answer {
    find(state, &call.session, id)?;
    match call.route() {
        ("GET", [.., "metadata"]) => Ok(metadata(state, id)),
        ("POST", [.., "metadata"]) => update_metadata(state, id, check_metadata(&call.body["metadata"])?, false),
        ("PUT", [.., "metadata"]) => update_metadata(state, id, check_metadata(&call.body["metadata"])?, true),
        ("PUT", [.., "metadata", key]) => {
            let meta = check_metadata(&call.body["meta"])?;
            if !meta.contains_key(*key) {
                return Err(fault(400, "Request body and URI mismatch"));
            }
            update_metadata(state, id, meta.clone(), false)?;
            Ok(Response::json(200, &json!({"meta": meta})))
        }
        ("DELETE", [.., "metadata", key]) => {
            check_state(state, id, "delete metadata", &CHANGEABLE)?;
            let server = state.servers.get_mut(id).and_then(|server| server.view["metadata"].as_object_mut());
            let removed = server.and_then(|metadata| metadata.shift_remove(*key));
            removed.map(|_| Response::new(204)).ok_or_else(|| fault(404, "Metadata item was not found"))
        }
        (_, [.., "tags"] | [.., "tags", _]) if version < TAGS => Err(fault(404, "The resource could not be found.")),
        ("GET", [.., "tags"]) => {
            Ok(Response::json(200, &json!({"tags": find(state, &call.session, id)?.hidden["tags"]})))
        }
        ("PUT", [.., "tags"]) => {
            let tags = check_tags(&call.body["tags"])?;
            if let Some(server) = state.servers.get_mut(id) {
                server.hidden["tags"] = json!(tags);
            }
            Ok(Response::json(200, &json!({"tags": tags})))
        }
        ("PUT", [.., "tags", tag]) => {
            let tags = state.servers.get_mut(id).and_then(|server| server.hidden["tags"].as_array_mut());
            if let Some(tags) = tags.filter(|tags| !tags.contains(&json!(tag))) {
                tags.push(json!(tag));
                return Ok(Response::new(201));
            }
            Ok(Response::new(204))
        }
        _ => Err(not_found(call.request)),
    }
}

fn metadata(state: &State, id: &str) -> Response {
    let metadata = state.servers.get(id).map(|server| &server.view["metadata"]);
    Response::json(200, &json!({"metadata": metadata}))
}

fn update_metadata(state: &mut State, id: &str, new: Map<String, Value>, replace: bool) -> Answer {
    check_state(state, id, "update metadata", &CHANGEABLE)?;
    if let Some(server) = state.servers.get_mut(id) {
        let mut all = server.view["metadata"].as_object().cloned().unwrap_or_default();
        if replace {
            all.clear();
        }
        all.extend(new);
        server.view["metadata"] = Value::Object(all);
    }
    Ok(metadata(state, id))
}

/// Checks metadata of servers: keys and values of at most 255 characters.
pub(super) fn check_metadata(metadata: &Value) -> Result<Map<String, Value>, Response> {
    check_metadata_with(metadata, "-_:. ")
}

/// Checks metadata whose keys consist of letters, digits and the characters in `more`.
pub(super) fn check_metadata_with(metadata: &Value, more: &str) -> Result<Map<String, Value>, Response> {
    let object = metadata.as_object().ok_or_else(|| invalid_value("metadata", metadata, "is not of type 'object'"))?;
    for (key, value) in object {
        let known = key.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter));
        if key.is_empty() || key.len() > 255 || !known {
            let why = format!("'{key}' does not match any of the regexes: '^[a-zA-Z0-9{more}]{{1,255}}$'");
            return Err(invalid_input("metadata", metadata, &why));
        }
        let text = value.as_str().ok_or_else(|| invalid_value(key, value, "is not of type 'string'"))?;
        if text.chars().count() > 255 {
            return Err(invalid_value(key, value, "is too long"));
        }
    }
    Ok(object.clone())
}

/// Checks tags: at most 50, each of at most 60 characters without commas and slashes.
pub(super) fn check_tags(tags: &Value) -> Result<Vec<String>, Response> {
    let list = tags.as_array().ok_or_else(|| invalid_value("tags", tags, "is not of type 'array'"))?;
    if list.len() > 50 {
        return Err(invalid_value("tags", tags, "is too long"));
    }
    let mut known = Vec::new();
    for (index, tag) in list.iter().enumerate() {
        let field = index.to_string();
        let text = tag.as_str().ok_or_else(|| invalid_value(&field, tag, "is not of type 'string'"))?;
        if text.is_empty() {
            return Err(invalid_value(&field, tag, "is too short"));
        }
        if text.chars().count() > 60 {
            return Err(invalid_value(&field, tag, "is too long"));
        }
        if text.contains([',', '/']) {
            return Err(invalid_value(&field, tag, "does not match '^[^,/]*$'"));
        }
        if !known.iter().any(|known| known == text) {
            known.push(text.to_owned());
        }
    }
    Ok(known)
}
