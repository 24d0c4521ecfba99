//! Modifies volumes in place.

use super::Call;
use super::block_devices::check_performance;
use crate::aws::error::{Error, invalid};
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, describe as list_resources};
use crate::aws::parameters::{number, required, text};
use crate::aws::state::{Effect, State};
use serde_json::{Value, json};

/// How often a volume can be modified; EC2 counts within 24 hours.
const MAX_MODIFICATIONS: u64 = 4;

const LISTING: Listing = Listing {
    kind: Kind::Modification,
    ids: "VolumeId",
    filters: &[("modification-state", "modificationState"), ("volume-id", "volumeId")],
    result: "volumeModificationSet",
};

/// Returns the id of the resource that records the last modification of a volume.
fn modification(volume: &str) -> String {
    format!("{}{volume}", Kind::Modification.prefix())
}

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let mut parameters = call.parameters.clone();
    for id in parameters["VolumeId"].as_array_mut().into_iter().flatten() {
        let volume = id.as_str().unwrap_or_default();
        state.find(Kind::Volume, call.account, volume)?;
        let own = modification(volume);
        if state.resources.get(&own).is_none() {
            let message = format!("Modification for volume '{volume}' does not exist.");
            return Err(Error::new("InvalidVolumeModification.NotFound", message));
        }
        *id = json!(own);
    }
    let call = Call { parameters: &parameters, ..*call };
    list_resources(state, &call, &LISTING, |_, item| item.view.clone())
}

pub(super) fn modify(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = required(call.parameters, "VolumeId")?;
    let volume = state.find(Kind::Volume, call.account, id)?;
    if !["available", "in-use"].contains(&volume.text("status")) {
        let message = format!("Volume '{id}' is in the '{}' state.", volume.text("status"));
        return Err(Error::new("IncorrectState", message));
    }
    let last = modification(id);
    if let Some(last) = state.resources.get(&last).filter(|last| last.view["modificationState"] != "completed") {
        let message = format!("Volume {id} is in the '{}' state", last.text("modificationState"));
        return Err(Error::new("IncorrectModificationState", message));
    }
    if volume.hidden["modifications"].as_u64().unwrap_or_default() >= MAX_MODIFICATIONS {
        let message = "You've reached the maximum modification rate per volume limit.";
        return Err(Error::new("VolumeModificationRateExceeded", message));
    }
    let (old_kind, old_size) = (volume.text("volumeType"), volume.view["size"].as_i64().unwrap_or_default());
    let size = number(call.parameters, "Size").unwrap_or(old_size);
    if size < old_size {
        return Err(invalid("size", &size.to_string(), "New size cannot be smaller than existing size."));
    }
    let kind = text(call.parameters, "VolumeType").unwrap_or(old_kind);
    let kept = |name: &str, key: &str| {
        number(call.parameters, name).or_else(|| volume.view[key].as_i64().filter(|_| kind == old_kind))
    };
    let (iops, throughput) = check_performance(kind, size, kept("Iops", "iops"), kept("Throughput", "throughput"))?;
    let mut view = json!({
        "volumeId": id, "modificationState": "modifying", "progress": 0, "startTime": state.time(),
        "originalSize": old_size, "originalVolumeType": old_kind, "targetSize": size, "targetVolumeType": kind,
    });
    for (key, value) in [("targetIops", iops), ("targetThroughput", throughput)] {
        if let Some(value) = value {
            view[key] = json!(value);
        }
    }
    for (key, own) in [("originalIops", "iops"), ("originalThroughput", "throughput")] {
        if let Some(value) = volume.view.get(own) {
            view[key] = value.clone();
        }
    }
    if let Some(item) = state.resources.get_mut(id) {
        item.hidden["modifications"] = json!(item.hidden["modifications"].as_u64().unwrap_or_default() + 1);
    }
    state.resources.remove(&last);
    state.add(&last, call.account, view.clone(), json!({}));
    if let Some(item) = state.resources.get_mut(&last) {
        item.hidden["hidden_lookups"] = json!(0);
    }
    state.schedule(&[&last], Effect::Optimizing { volume: id.to_owned() });
    Ok(json!({"volumeModification": view}))
}

/// The new size can be used as soon as the volume is optimised.
pub(in crate::aws) fn start_optimizing(state: &mut State, volume: &str) {
    let last = modification(volume);
    let Some(done) = state.resources.get(&last).map(|last| last.view.clone()) else { return };
    for (key, own) in [
        ("targetSize", "size"),
        ("targetVolumeType", "volumeType"),
        ("targetIops", "iops"),
        ("targetThroughput", "throughput"),
    ] {
        if let Some(item) = state.resources.get_mut(volume) {
            match done.get(key) {
                Some(value) => item.view[own] = value.clone(),
                None => drop(item.view.as_object_mut().and_then(|view| view.remove(own))),
            }
        }
    }
    state.resources.set(&last, "modificationState", json!("optimizing"));
    state.resources.set(&last, "progress", json!(50));
    state.schedule(&[&last], Effect::Modified { volume: volume.to_owned() });
}

pub(in crate::aws) fn finish(state: &mut State, volume: &str) {
    let (last, time) = (modification(volume), state.time());
    state.resources.set(&last, "modificationState", json!("completed"));
    state.resources.set(&last, "progress", json!(100));
    state.resources.set(&last, "endTime", json!(time));
}
