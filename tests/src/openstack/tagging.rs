//! What clients write on servers: metadata and tags.

use super::message::{Answer, Response, fault, nowhere};
use super::python::{invalid, unfit};
use super::servers::{find, settled};
use super::simulator::Call;
use super::state::State;
use serde_json::{Map, Value, json};

/// Before, servers had no tags.
const TAGS: u32 = 26;
const CHANGEABLE: [&str; 4] = ["active", "paused", "suspended", "stopped"];

pub(super) fn answer(state: &mut State, call: &Call, version: u32, id: &str) -> Answer {
    find(state, &call.session, id)?;
    match call.route() {
        ("GET", [.., "metadata"]) => Ok(metadata(state, id)),
        ("POST", [.., "metadata"]) => write(state, id, checked(&call.body["metadata"])?, false),
        ("PUT", [.., "metadata"]) => write(state, id, checked(&call.body["metadata"])?, true),
        ("PUT", [.., "metadata", key]) => {
            let meta = checked(&call.body["meta"])?;
            if !meta.contains_key(*key) {
                return Err(fault(400, "Request body and URI mismatch"));
            }
            write(state, id, meta.clone(), false)?;
            Ok(Response::json(200, &json!({"meta": meta})))
        }
        ("DELETE", [.., "metadata", key]) => {
            settled(state, id, "delete metadata", &CHANGEABLE)?;
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
        _ => Err(nowhere(call.request)),
    }
}

fn metadata(state: &State, id: &str) -> Response {
    let metadata = state.servers.get(id).map(|server| &server.view["metadata"]);
    Response::json(200, &json!({"metadata": metadata}))
}

fn write(state: &mut State, id: &str, new: Map<String, Value>, replace: bool) -> Answer {
    settled(state, id, "update metadata", &CHANGEABLE)?;
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

/// Texts of at most 255 characters by names of the same.
pub(super) fn checked(metadata: &Value) -> Result<Map<String, Value>, Response> {
    checked_with(metadata, "-_:. ")
}

/// Names of letters, digits and these.
pub(super) fn checked_with(metadata: &Value, more: &str) -> Result<Map<String, Value>, Response> {
    let object = metadata.as_object().ok_or_else(|| unfit("metadata", metadata, "is not of type 'object'"))?;
    for (key, value) in object {
        let known = key.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter));
        if key.is_empty() || key.len() > 255 || !known {
            let why = format!("'{key}' does not match any of the regexes: '^[a-zA-Z0-9{more}]{{1,255}}$'");
            return Err(invalid("metadata", metadata, &why));
        }
        let text = value.as_str().ok_or_else(|| unfit(key, value, "is not of type 'string'"))?;
        if text.chars().count() > 255 {
            return Err(unfit(key, value, "is too long"));
        }
    }
    Ok(object.clone())
}

/// At most 50 of at most 60 characters, without commas and slashes.
pub(super) fn check_tags(tags: &Value) -> Result<Vec<String>, Response> {
    let list = tags.as_array().ok_or_else(|| unfit("tags", tags, "is not of type 'array'"))?;
    if list.len() > 50 {
        return Err(unfit("tags", tags, "is too long"));
    }
    let mut known = Vec::new();
    for (index, tag) in list.iter().enumerate() {
        let field = index.to_string();
        let text = tag.as_str().ok_or_else(|| unfit(&field, tag, "is not of type 'string'"))?;
        if text.is_empty() {
            return Err(unfit(&field, tag, "is too short"));
        }
        if text.chars().count() > 60 {
            return Err(unfit(&field, tag, "is too long"));
        }
        if text.contains([',', '/']) {
            return Err(unfit(&field, tag, "does not match '^[^,/]*$'"));
        }
        if !known.iter().any(|known| known == text) {
            known.push(text.to_owned());
        }
    }
    Ok(known)
}
