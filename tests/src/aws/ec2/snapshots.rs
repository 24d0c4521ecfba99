//! Snapshots.

use super::{Call, done, tags};
use crate::aws::error::Error;
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, page, select};
use crate::aws::parameters::{required, text, texts};
use crate::aws::state::{Effect, State};
use serde_json::{Value, json};

const LISTING: Listing = Listing {
    kind: Kind::Snapshot,
    ids: "SnapshotId",
    filters: &[
        ("description", "description"),
        ("encrypted", "encrypted"),
        ("owner-id", "ownerId"),
        ("snapshot-id", "snapshotId"),
        ("status", "status"),
        ("volume-id", "volumeId"),
        ("volume-size", "volumeSize"),
    ],
    result: "snapshotSet",
};

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let mut found = select(state, call, &LISTING, |_, item| item.view.clone())?;
    let owners = texts(call.parameters, "Owner");
    let owned = |view: &Value| {
        owners.iter().any(|owner| view["ownerId"] == *owner || (*owner == "self" && view["ownerId"] == call.account))
    };
    found.retain(|view| owners.is_empty() || owned(view));
    page(call.parameters, &LISTING, found)
}

pub(super) fn create(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let volume = state.find(Kind::Volume, call.account, required(call.parameters, "VolumeId")?)?;
    if !["available", "in-use"].contains(&volume.text("status")) {
        let message = format!("Volume '{}' is in the '{}' state.", volume.id, volume.text("status"));
        return Err(Error::new("IncorrectState", message));
    }
    let tags = tags::specified(state, call.parameters, Kind::Snapshot, &[Kind::Snapshot])?;
    let description = text(call.parameters, "Description").unwrap_or_default();
    let mut view = json!({
        "volumeId": volume.id, "volumeSize": volume.view["size"], "description": description,
        "encrypted": volume.view["encrypted"], "tagSet": tags,
    });
    if let Some(key) = volume.view.get("kmsKeyId") {
        view["kmsKeyId"] = key.clone();
    }
    let id = add(state, call.account, view)?;
    state.schedule(&[&id], Effect::SnapshotCompleted { snapshot: id.clone() });
    Ok(state.resources.get(&id).map(|item| item.view.clone()).unwrap_or_default())
}

/// Adds a pending snapshot and returns its id.
pub(in crate::aws) fn add(state: &mut State, account: &str, mut view: Value) -> Result<String, Error> {
    let limit = state.limit("snapshots");
    if state.own(Kind::Snapshot, account).len() >= limit {
        return Err(Error::new("SnapshotLimitExceeded", format!("Maximum number of snapshots '{limit}' exceeded.")));
    }
    let id = state.new_id(Kind::Snapshot);
    for (key, value) in [
        ("snapshotId", json!(id)),
        ("status", json!("pending")),
        ("startTime", json!(state.time())),
        ("progress", json!("0%")),
        ("ownerId", json!(account)),
    ] {
        view[key] = value;
    }
    state.add(&id, account, view, json!({}));
    Ok(id)
}

pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = required(call.parameters, "SnapshotId")?;
    state.find(Kind::Snapshot, call.account, id)?;
    remove(state, call.account, id)?;
    done()
}

/// Deletes a snapshot, unless an image uses it.
pub(super) fn remove(state: &mut State, account: &str, id: &str) -> Result<(), Error> {
    let uses = |image: &Value| {
        image["blockDeviceMapping"].as_array().into_iter().flatten().any(|device| device["ebs"]["snapshotId"] == id)
    };
    if let Some(image) = state.own(Kind::Image, account).iter().find(|image| uses(&image.view)) {
        let message = format!("The snapshot {id} is currently in use by {}", image.id);
        return Err(Error::new("InvalidSnapshot.InUse", message));
    }
    state.pending.cancel(id);
    state.resources.remove(id);
    state.blocks.remove(id);
    Ok(())
}
