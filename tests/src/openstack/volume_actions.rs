//! Requests to existing volumes of Cinder: updates, actions, metadata and deletion.

use super::message::{Answer, Response, fault, not_found};
use super::simulator::Call;
use super::state::{Effect, State};
use super::volume::{check_size, find, view_without_owner};
use super::{clock, server_metadata};
use serde_json::{Value, json};

/// The characters that keys of metadata may contain besides letters and digits.
pub(super) const METADATA_KEY_CHARACTERS: &str = "-_:. /";
/// The microversion from which a volume in use can be extended.
const EXTEND_IN_USE: u32 = 42;

pub(super) fn answer(state: &mut State, call: &Call, version: u32, id: &str) -> Answer {
    match call.route() {
        ("GET", ["volumes", _]) => {
            state.count_read([id]);
            Ok(Response::json(200, &json!({"volume": find(state, call, id)?.view})))
        }
        ("PUT", ["volumes", _]) => {
            find(state, call, id)?;
            for key in ["name", "description", "metadata"] {
                if let Some(value) = call.body["volume"].get(key) {
                    state.volumes.set(id, key, value.clone());
                }
            }
            Ok(Response::json(200, &json!({"volume": view_without_owner(find(state, call, id)?)})))
        }
        ("DELETE", ["volumes", _]) => delete(state, call, id),
        ("POST", ["volumes", _, "action"]) => run_action(state, call, version, id),
        (method, ["volumes", _, "metadata"]) => {
            find(state, call, id)?;
            let volume = state.volumes.get_mut(id).map(|volume| &mut volume.view["metadata"]);
            volume.map_or_else(|| Err(not_found(call.request)), |metadata| update_metadata(call, method, metadata))
        }
        _ => Err(not_found(call.request)),
    }
}

/// Answers a request about metadata of a volume or snapshot: POST adds, PUT replaces.
pub(super) fn update_metadata(call: &Call, method: &str, metadata: &mut Value) -> Answer {
    if method != "GET" {
        let new = server_metadata::check_metadata_with(&call.body["metadata"], METADATA_KEY_CHARACTERS)?;
        let mut all = metadata.as_object().cloned().unwrap_or_default();
        if method == "PUT" {
            all.clear();
        }
        all.extend(new);
        *metadata = Value::Object(all);
    }
    Ok(Response::json(200, &json!({"metadata": metadata})))
}

fn delete(state: &mut State, call: &Call, id: &str) -> Answer {
    let volume = find(state, call, id)?;
    let deletable = ["available", "error", "error_restoring", "error_extending", "error_managing"];
    let copied = state.snapshots.iter().any(|snapshot| snapshot.text("volume_id") == id);
    if !deletable.contains(&volume.text("status")) || copied {
        let message = "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.";
        return Err(fault(400, message));
    }
    state.volumes.set(id, "status", json!("deleting"));
    state.schedule(&[id], Effect::VolumeDeleted { volume: id.to_owned() });
    Ok(Response::new(202))
}

fn run_action(state: &mut State, call: &Call, version: u32, id: &str) -> Answer {
    let volume = find(state, call, id)?;
    let (status, size, project) = (volume.text("status").to_owned(), volume.number("size"), volume.project.clone());
    let action = call.body.as_object().and_then(|body| body.keys().next()).map(String::as_str);
    match action {
        Some("os-extend") => {
            let wanted = &call.body["os-extend"]["new_size"];
            let new = wanted.as_u64().or_else(|| wanted.as_str()?.parse().ok()).unwrap_or_default();
            if new <= size {
                let message = format!(
                    "Invalid input received: New size for extend must be greater than current size. (current: {size}, extended: {new})."
                );
                return Err(fault(400, &message));
            }
            let expected = if status == "in-use" && version >= EXTEND_IN_USE { "in-use" } else { "available" };
            if status != expected {
                let message = format!(
                    "Invalid volume: Volume {id} status must be '{{'status': '{expected}'}}' to extend, currently {status}."
                );
                return Err(fault(400, &message));
            }
            check_size(state, &project, [new - size, new])?;
            state.volumes.set(id, "status", json!("extending"));
            state.schedule(&[id], Effect::Extended { volume: id.to_owned(), size: new });
        }
        Some("os-retype") => {
            let kind = call.body["os-retype"]["new_type"].as_str().unwrap_or_default();
            let known = state.volume_types.iter().find(|known| known.id == kind || known.text("name") == kind);
            let message = format!("Volume type with name {kind} could not be found.");
            let kind = known.ok_or_else(|| fault(404, &message))?.text("name").to_owned();
            if !["available", "in-use"].contains(&status.as_str()) {
                let message = "Invalid volume: Retype needs volume to be in available or in-use state, not be part of an active migration or a consistency group, requested type has to be different that the one from the volume, and for in-use volumes front-end qos specs cannot change.";
                return Err(fault(400, message));
            }
            state.volumes.set(id, "status", json!("retyping"));
            state.schedule(&[id], Effect::Retyped { volume: id.to_owned(), kind });
        }
        Some("os-set_bootable") => {
            let bootable = super::server_create::is_truthy(&call.body["os-set_bootable"]["bootable"]);
            state.volumes.set(id, "bootable", json!(bootable.to_string()));
            return Ok(Response::new(200));
        }
        _ => {
            let message = format!(
                "There is no such action: {}. Verify the request body and Content-Type header and try again.",
                action.unwrap_or_default()
            );
            return Err(fault(400, &message));
        }
    }
    Ok(Response::new(202))
}

/// Completes a change: the volume is available, or in use if it is attached.
pub(super) fn finish_change(state: &mut State, id: &str) {
    let Some(volume) = state.volumes.get_mut(id) else { return };
    let attached = volume.view["attachments"].as_array().is_some_and(|all| !all.is_empty());
    volume.view["status"] = json!(if attached { "in-use" } else { "available" });
    volume.view["updated_at"] = json!(clock::now() + ".000000");
    if volume.view.get("volume_image_metadata").is_some() {
        volume.view["bootable"] = json!("true");
    }
}

pub(super) fn finish_extend(state: &mut State, id: &str, size: u64) {
    state.volumes.set(id, "size", json!(size));
    finish_change(state, id);
}

pub(super) fn finish_retype(state: &mut State, id: &str, kind: &str) {
    state.volumes.set(id, "volume_type", json!(kind));
    finish_change(state, id);
}
