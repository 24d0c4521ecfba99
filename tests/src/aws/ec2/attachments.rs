//! Attaches and detaches volumes.

use super::{Call, instance_types, volumes};
use crate::aws::error::Error;
use crate::aws::kind::Kind;
use crate::aws::parameters::{flag, required, text};
use crate::aws::state::{Effect, State};
use crate::simulation::Item;
use serde_json::{Value, json};

pub(super) fn attach(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let (device, instance) = (required(call.parameters, "Device")?, required(call.parameters, "InstanceId")?);
    let volume = required(call.parameters, "VolumeId")?;
    volumes::check_device(device)?;
    let volume = state.find(Kind::Volume, call.account, volume)?;
    let instance = state.find(Kind::Instance, call.account, instance)?;
    match instance.view["instanceState"]["name"].as_str() {
        Some("running" | "stopped") => {}
        Some("terminated") => return Err(Kind::Instance.not_found(&instance.id)),
        _ => return Err(Error::new("IncorrectState", format!("Instance '{}' is not 'running'.", instance.id))),
    }
    match volume.text("status") {
        "available" => {}
        "in-use" => {
            let message = format!("{} is already attached to an instance", volume.id);
            return Err(Error::new("VolumeInUse", message));
        }
        _ => return Err(Error::new("IncorrectState", format!("{} is not 'available'.", volume.id))),
    }
    if volume.view["availabilityZone"] != instance.view["placement"]["availabilityZone"] {
        let message =
            format!("The volume '{}' is not in the same availability zone as instance '{}'", volume.id, instance.id);
        return Err(Error::new("InvalidVolume.ZoneMismatch", message));
    }
    let attached = attachments_of(state, &instance);
    if attached.iter().any(|attachment| attachment["device"] == device) {
        let message = format!("Invalid value '{device}' for unixDevice. Attachment point {device} is already in use");
        return Err(Error::new("InvalidParameterValue", message));
    }
    if attached.len() >= instance_types::max_volumes(instance.text("instanceType")) {
        let message = format!("Attachment limit of instance {} exceeded", instance.id);
        return Err(Error::new("AttachmentLimitExceeded", message));
    }
    put(state, &volume.id, &instance.id, device, "attaching", false);
    state.schedule(&[&volume.id, &instance.id], Effect::Attached { volume: volume.id.clone() });
    Ok(attachment(state, &volume.id))
}

/// Attaches a volume of a new instance.
pub(super) fn put(
    state: &mut State,
    volume: &str,
    instance: &str,
    device: &str,
    status: &str,
    delete_on_termination: bool,
) {
    let attachment = json!({
        "volumeId": volume, "instanceId": instance, "device": device, "status": status, "attachTime": state.time(),
        "deleteOnTermination": delete_on_termination,
    });
    state.resources.set(volume, "attachmentSet", json!([attachment]));
    state.resources.set(volume, "status", json!("in-use"));
}

pub(super) fn detach(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = required(call.parameters, "VolumeId")?;
    let volume = state.find(Kind::Volume, call.account, id)?;
    let attached = volume.view["attachmentSet"][0].clone();
    if attached.is_null() {
        let message = format!("Volume '{id}' is in the '{}' state.", volume.text("status"));
        return Err(Error::new("IncorrectState", message));
    }
    for (name, key) in [("InstanceId", "instanceId"), ("Device", "device")] {
        if text(call.parameters, name).is_some_and(|wanted| attached[key] != wanted) {
            let message = format!("The volume {id} is not attached as specified.");
            return Err(Error::new("InvalidAttachment.NotFound", message));
        }
    }
    let instance = attached["instanceId"].as_str().unwrap_or_default().to_owned();
    let root = state.resources.get(&instance).map(|instance| instance.view["rootDeviceName"].clone());
    let running = state.resources.get(&instance).is_some_and(|item| item.view["instanceState"]["name"] != "stopped");
    if running && root == Some(attached["device"].clone()) {
        let message = format!("Unable to detach root volume '{id}' from instance '{instance}'");
        return Err(Error::new("OperationNotPermitted", message));
    }
    if attached["status"] != "detaching" {
        state.pending.cancel(id);
        set_status(state, id, "detaching");
        if flag(call.parameters, "Force") {
            state.pending.schedule_at_next_read(id, Effect::Detached { volume: id.to_owned() });
        } else {
            state.schedule(&[id, &instance], Effect::Detached { volume: id.to_owned() });
        }
    }
    Ok(attachment(state, id))
}

pub(in crate::aws) fn finish_attach(state: &mut State, volume: &str) {
    set_status(state, volume, "attached");
}

pub(in crate::aws) fn finish_detach(state: &mut State, volume: &str) {
    state.resources.set(volume, "attachmentSet", json!([]));
    state.resources.set(volume, "status", json!("available"));
}

fn set_status(state: &mut State, volume: &str, status: &str) {
    if let Some(item) = state.resources.get_mut(volume)
        && item.view["attachmentSet"][0].is_object()
    {
        item.view["attachmentSet"][0]["status"] = json!(status);
    }
}

/// Returns a volume's attachment.
fn attachment(state: &State, volume: &str) -> Value {
    state.resources.get(volume).map(|volume| volume.view["attachmentSet"][0].clone()).unwrap_or_default()
}

/// Returns the attachments of an instance's volumes.
pub(super) fn attachments_of(state: &State, instance: &Item) -> Vec<Value> {
    let volumes = state.own(Kind::Volume, &instance.project).into_iter();
    let attachments = volumes.map(|volume| volume.view["attachmentSet"][0].clone());
    attachments.filter(|attachment| attachment["instanceId"] == instance.id).collect()
}
