//! The volumes of a server: those it boots from, and those attached later.

use super::clock;
use super::message::{Response, fault};
use super::python::{invalid_value, unexpected_property};
use super::server_create::TAGGED;
use super::simulator::Call;
use super::state::{Effect, State};
use super::table::{Item, unknown_key};
use super::{volume, volume_actions};
use serde_json::{Value, json};

/// The microversion that added `volume_type`.
const TYPED: u32 = 67;
const KEYS: [&str; 11] = [
    "boot_index",
    "uuid",
    "source_type",
    "destination_type",
    "volume_size",
    "delete_on_termination",
    "device_name",
    "disk_bus",
    "device_type",
    "guest_format",
    "no_device",
];

/// Returns the devices in `block_device_mapping_v2`, or the error for an invalid one.
pub(super) fn check(state: &State, call: &Call, requested: &Value, version: u32) -> Result<Vec<Value>, Response> {
    let devices = requested["block_device_mapping_v2"].as_array().cloned().unwrap_or_default();
    let to_volume = |device: &Value| device["destination_type"] == "volume";
    if devices.iter().filter(|device| index(device) == Some(0)).count() > 1 {
        let message = "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping combination is not valid.";
        return Err(fault(400, message));
    }
    for device in &devices {
        let later = [("tag", TAGGED), ("volume_type", TYPED)].into_iter().filter(|(_, since)| version >= *since);
        let known: Vec<&str> = KEYS.iter().copied().chain(later.map(|(key, _)| key)).collect();
        if let Some(key) = unknown_key(device, &known) {
            return Err(unexpected_property("0", device, key));
        }
        let place = &device["boot_index"];
        if !place.is_null() && index(device).is_none() {
            return Err(invalid_value("boot_index", place, "does not match '^-?[0-9]+$'"));
        }
        let id = device["uuid"].as_str().unwrap_or_default();
        match device["source_type"].as_str() {
            Some("volume") => {
                let known = state.volumes.get(id).filter(|volume| call.session.sees(&volume.project));
                let message = format!("Block Device Mapping is Invalid: failed to get volume {id}.");
                let known = known.ok_or_else(|| fault(400, &message))?;
                if known.text("status") != "available" {
                    let status = known.text("status");
                    let message = format!(
                        "Invalid volume: Volume {id} status must be available or downloading to reserve, but the current status is {status}. "
                    );
                    return Err(fault(400, message.trim_end()));
                }
                if index(device) == Some(0) && known.text("bootable") != "true" {
                    return Err(fault(400, &format!("Block Device {id} is not bootable.")));
                }
            }
            Some("image") => {
                let found = super::image::find(state, &call.session, call.request, id);
                let message = format!("Block Device Mapping is Invalid: failed to get image {id}.");
                found.map_err(|_| fault(400, &message))?;
                if to_volume(device) && size(device) == 0 {
                    let message = "Images with destination_type 'volume' need to have a non-zero size specified";
                    return Err(fault(400, message));
                }
            }
            Some("blank" | "snapshot") => {}
            _ => return Err(fault(400, "Block Device Mapping is Invalid: Unable to determine the source of it.")),
        }
    }
    Ok(devices)
}

fn index(device: &Value) -> Option<i64> {
    device["boot_index"].as_i64().or_else(|| device["boot_index"].as_str()?.parse().ok())
}

fn size(device: &Value) -> u64 {
    let text = || device["volume_size"].as_str().and_then(|text| text.parse().ok());
    device["volume_size"].as_u64().or_else(text).unwrap_or_default()
}

/// Creates and attaches the volumes of a new server.
pub(super) fn build(state: &mut State, server: &Item) -> Result<(), String> {
    let devices = server.hidden["devices"].as_array().cloned().unwrap_or_default();
    for device in devices.iter().filter(|device| device["destination_type"] == "volume") {
        let id = match device["source_type"].as_str() {
            Some("volume") => device["uuid"].as_str().unwrap_or_default().to_owned(),
            _ => {
                let wanted = json!({
                    "size": size(device), "imageRef": device["uuid"], "volume_type": device["volume_type"],
                    "availability_zone": server.hidden["zone"], "name": "", "description": "",
                });
                let made = volume::add(state, &server.project, server.text("user_id"), &wanted);
                let made = made
                    .map_err(|_| format!("Build of instance {} aborted: VolumeSizeExceedsAvailableQuota", server.id))?;
                state.cancel_pending(&made);
                volume_actions::finish_change(state, &made);
                made
            }
        };
        let name = device_name(state, &server.id, device["device_name"].as_str());
        let name =
            name.map_err(|_| format!("Build of instance {} aborted: Block Device Mapping is Invalid.", server.id))?;
        let delete_on_termination = super::server_create::is_truthy(&device["delete_on_termination"]);
        reserve(state, &server.id, &id, &name, delete_on_termination);
        finish_attach(state, &server.id, &id);
    }
    Ok(())
}

/// Records an attachment that is not complete yet.
pub(super) fn reserve(state: &mut State, server: &str, volume: &str, device: &str, delete_on_termination: bool) {
    let attachment = state.uuid();
    let entry = json!({
        "id": volume, "device": device, "delete_on_termination": delete_on_termination, "attachment": attachment, "bdm": state.uuid(),
    });
    if let Some(volumes) = state.servers.get_mut(server).and_then(|server| server.hidden["volumes"].as_array_mut()) {
        volumes.push(entry);
    }
    state.volumes.set(volume, "status", json!("reserved"));
}

/// Returns the requested device name in this cloud's notation, or the first name that
/// is used neither by a disk of the flavor nor by a volume.
pub(super) fn device_name(state: &State, server: &str, requested: Option<&str>) -> Result<String, Response> {
    let Some(server) = state.servers.get(server) else { return Ok(String::new()) };
    let flavor = state.flavors.get(server.hidden["flavor"].as_str().unwrap_or_default());
    let own = [
        (!server.hidden["image"].is_null()).then_some('a'),
        flavor.filter(|flavor| flavor.number("OS-FLV-EXT-DATA:ephemeral") > 0).map(|_| 'b'),
    ];
    let volumes = server.hidden["volumes"].as_array().into_iter().flatten();
    let volumes = volumes.filter_map(|volume| volume["device"].as_str()?.chars().last());
    let used: Vec<char> = own.into_iter().flatten().chain(volumes).collect();
    let letter = match requested {
        None => ('a'..='z').find(|letter| !used.contains(letter)),
        Some(path) => {
            let short = path.strip_prefix("/dev/").unwrap_or(path);
            let letters =
                short.strip_prefix("xvd").or_else(|| short.strip_prefix("vd")).or_else(|| short.strip_prefix("sd"));
            let letter = letters.and_then(|letters| letters.chars().next().filter(char::is_ascii_lowercase));
            let message = format!("The supplied device path ({path}) is invalid.");
            let letter = letter.ok_or_else(|| fault(400, &message))?;
            if used.contains(&letter) {
                return Err(fault(409, &format!("The supplied device path ({path}) is in use.")));
            }
            Some(letter)
        }
    };
    Ok(format!("/dev/sd{}", letter.unwrap_or('z')))
}

/// Completes an attachment.
pub(super) fn finish_attach(state: &mut State, server: &str, volume: &str) {
    let volumes = state.servers.get(server).and_then(|server| server.hidden["volumes"].as_array());
    let entry = volumes.into_iter().flatten().find(|entry| entry["id"] == volume).cloned();
    let Some(entry) = entry else { return };
    let attachment = json!({
        "id": volume, "attachment_id": entry["attachment"], "volume_id": volume, "server_id": server,
        "host_name": null, "device": entry["device"], "attached_at": clock::now() + ".000000",
    });
    state.volumes.set(volume, "status", json!("in-use"));
    state.volumes.set(volume, "attachments", json!([attachment]));
}

/// Completes a detachment.
pub(super) fn finish_detach(state: &mut State, server: &str, volume: &str) {
    if let Some(volumes) = state.servers.get_mut(server).and_then(|server| server.hidden["volumes"].as_array_mut()) {
        volumes.retain(|entry| entry["id"] != volume);
    }
    state.volumes.set(volume, "status", json!("available"));
    state.volumes.set(volume, "attachments", json!([]));
}

/// Detaches the volumes of a deleted server and deletes those marked
/// `delete_on_termination`.
pub(super) fn release(state: &mut State, server: &Item) {
    for entry in server.hidden["volumes"].as_array().into_iter().flatten() {
        let id = entry["id"].as_str().unwrap_or_default();
        state.cancel_pending(id);
        finish_detach(state, &server.id, id);
        if entry["delete_on_termination"] == true {
            state.volumes.set(id, "status", json!("deleting"));
            state.schedule(&[id], Effect::VolumeDeleted { volume: id.to_owned() });
        }
    }
}
