//! Nova's `os-volume_attachments`: attaches volumes to servers and detaches them.

use super::message::{Answer, Response, fault, not_found};
use super::python::{invalid_value, is_uuid};
use super::simulator::Call;
use super::state::{Effect, State};
use super::{block_devices, servers};
use serde_json::{Value, json};

/// The microversions that changed the view of an attachment.
const TAG: u32 = 70;
const DELETE_ON_TERMINATION: u32 = 79;
const NO_ID: u32 = 89;

/// The states of a server in which volumes can be attached and detached.
const STATES: [&str; 4] = ["active", "paused", "stopped", "suspended"];

pub(super) fn answer(state: &mut State, call: &Call, version: u32, server: &str) -> Answer {
    servers::find(state, &call.session, server)?;
    match call.route() {
        ("GET", [.., "os-volume_attachments"]) => {
            let all = entries(state, server);
            let all: Vec<Value> = all.iter().map(|entry| view(server, entry, version)).collect();
            Ok(Response::json(200, &json!({"volumeAttachments": all})))
        }
        ("POST", [.., "os-volume_attachments"]) => attach(state, call, version, server),
        ("GET", [.., volume]) => {
            state.count_read([*volume]);
            let all = entries(state, server);
            let entry = all.iter().find(|entry| entry["id"] == *volume).ok_or_else(|| not_attached(server, volume))?;
            Ok(Response::json(200, &json!({"volumeAttachment": view(server, entry, version)})))
        }
        ("DELETE", [.., volume]) => detach(state, call, server, volume),
        _ => Err(not_found(call.request)),
    }
}

fn entries(state: &State, server: &str) -> Vec<Value> {
    let server = state.servers.get(server);
    server.and_then(|server| server.hidden["volumes"].as_array()).cloned().unwrap_or_default()
}

fn view(server: &str, entry: &Value, version: u32) -> Value {
    let mut view = json!({});
    if version < NO_ID {
        view["id"] = entry["id"].clone();
    }
    view["serverId"] = json!(server);
    view["volumeId"] = entry["id"].clone();
    view["device"] = entry["device"].clone();
    if version >= TAG {
        view["tag"] = Value::Null;
    }
    if version >= DELETE_ON_TERMINATION {
        view["delete_on_termination"] = entry["delete_on_termination"].clone();
    }
    if version >= NO_ID {
        view["attachment_id"] = entry["attachment"].clone();
        view["bdm_uuid"] = entry["bdm"].clone();
    }
    view
}

fn not_attached(server: &str, volume: &str) -> Response {
    fault(404, &format!("Instance {server} is not attached to volume {volume}"))
}

fn attach(state: &mut State, call: &Call, version: u32, server: &str) -> Answer {
    let requested = &call.body["volumeAttachment"];
    let id = requested["volumeId"].as_str().unwrap_or_default().to_owned();
    if !is_uuid(&id) {
        return Err(invalid_value("volumeId", &requested["volumeId"], "is not a 'uuid'"));
    }
    let missing = || fault(404, &format!("Volume {id} could not be found."));
    let volume = state.volumes.get(&id).filter(|volume| call.session.sees(&volume.project)).ok_or_else(missing)?;
    servers::check_state(state, server, "attach_volume", &STATES)?;
    if entries(state, server).iter().any(|entry| entry["id"] == *id) {
        let message = format!("Invalid volume: volume {id} is already attached to instances: {server}");
        return Err(fault(400, &message));
    }
    if volume.text("status") != "available" {
        let status = volume.text("status");
        let holder = volume.view["attachments"][0]["server_id"].as_str();
        let message = holder.map_or_else(
            || format!("Invalid input received: Invalid volume: Volume {id} status must be available or downloading to reserve, but the current status is {status}. (HTTP 400) (Request-ID: req-00000000-0000-4000-a000-000000000000)"),
            |holder| format!("Invalid volume: volume {id} is already attached to instances: {holder}"),
        );
        return Err(fault(400, &message));
    }
    let delete_on_termination = requested["delete_on_termination"] == true && version >= DELETE_ON_TERMINATION;
    let device = block_devices::device_name(state, server, requested["device"].as_str())?;
    block_devices::reserve(state, server, &id, &device, delete_on_termination);
    state.schedule(&[&id, server], Effect::Attached { server: server.to_owned(), volume: id.clone() });
    let all = entries(state, server);
    let entry = all.iter().find(|entry| entry["id"] == *id).cloned().unwrap_or_default();
    Ok(Response::json(200, &json!({"volumeAttachment": view(server, &entry, version)})))
}

fn detach(state: &mut State, call: &Call, server: &str, id: &str) -> Answer {
    let missing = || fault(404, &format!("Volume {id} could not be found."));
    state.volumes.get(id).filter(|volume| call.session.sees(&volume.project)).ok_or_else(missing)?;
    if !entries(state, server).iter().any(|entry| entry["id"] == *id) {
        return Err(not_attached(server, id));
    }
    servers::check_state(state, server, "detach_volume", &STATES)?;
    let status = state.volumes.get(id).map(|volume| volume.text("status").to_owned()).unwrap_or_default();
    if status != "in-use" {
        let message = "Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status must be 'attached' to detach. (HTTP 400) (Request-ID: req-00000000-0000-4000-a000-000000000000)";
        return Err(fault(400, message));
    }
    state.volumes.set(id, "status", json!("detaching"));
    state.schedule(&[id, server], Effect::Detached { server: server.to_owned(), volume: id.to_owned() });
    Ok(Response::new(202))
}
