//! Images.

use super::block_devices::{self, Device, default_key, devices, image_views};
use super::{Call, snapshots, tags};
use crate::aws::error::{Error, combination, invalid, missing};
use crate::aws::idempotency;
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, page, select};
use crate::aws::parameters::{flag, required, text, texts};
use crate::aws::state::{Effect, State};
use crate::simulation::Item;
use serde_json::{Value, json};

const LISTING: Listing = Listing {
    kind: Kind::Image,
    ids: "ImageId",
    filters: &[
        ("architecture", "architecture"),
        ("block-device-mapping.snapshot-id", "blockDeviceMapping.ebs.snapshotId"),
        ("description", "description"),
        ("image-id", "imageId"),
        ("is-public", "isPublic"),
        ("name", "name"),
        ("owner-id", "imageOwnerId"),
        ("root-device-name", "rootDeviceName"),
        ("state", "imageState"),
        ("virtualization-type", "virtualizationType"),
    ],
    result: "imagesSet",
};

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let mut found = select(state, call, &LISTING, |_, item| item.view.clone())?;
    let owners = texts(call.parameters, "Owner");
    let owned = |view: &Value| {
        let is_own = |owner: &&str| *owner == "self" && view["imageOwnerId"] == call.account;
        owners.iter().any(|owner| is_own(owner) || view["imageOwnerId"] == *owner || view["imageOwnerAlias"] == *owner)
    };
    found.retain(|view| owners.is_empty() || owned(view));
    page(call.parameters, &LISTING, found)
}

pub(super) fn register(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    let name = check_name(given)?;
    if let Some(image) = state.own(Kind::Image, call.account).iter().find(|image| image.view["name"] == name) {
        let message = format!("AMI name {name} is already in use by AMI {}", image.id);
        return Err(Error::new("InvalidAMIName.Duplicate", message));
    }
    let root = text(given, "RootDeviceName").ok_or_else(|| missing("rootDeviceName"))?;
    let devices = devices(state, call.account, block_devices::mappings(given), &[])?;
    let root_volume = devices.iter().find(|device| device.name == root).and_then(|device| device.volume.as_ref());
    if root_volume.and_then(|volume| volume.snapshot.as_ref()).is_none() {
        let message = format!("No snapshot was specified for the root device {root}.");
        return Err(Error::new("InvalidBlockDeviceMapping", message));
    }
    let virtualization = text(given, "VirtualizationType").unwrap_or("paravirtual");
    if !["hvm", "paravirtual"].contains(&virtualization) {
        return Err(invalid("virtualizationType", virtualization, ""));
    }
    if given.get("KernelId").is_some() && virtualization == "hvm" {
        return Err(combination("The parameter KernelId cannot be used with virtualization type hvm."));
    }
    let tags = tags::specified(state, given, Kind::Image, &[Kind::Image])?;
    let mut view = json!({
        "name": name, "description": text(given, "Description").unwrap_or_default(), "isPublic": false,
        "architecture": text(given, "Architecture").unwrap_or("i386"), "virtualizationType": virtualization,
        "rootDeviceName": root, "enaSupport": flag(given, "EnaSupport"), "tagSet": tags,
        "imageState": "available",
    });
    for (key, name) in [
        ("kernelId", "KernelId"),
        ("bootMode", "BootMode"),
        ("imdsSupport", "ImdsSupport"),
        ("sriovNetSupport", "SriovNetSupport"),
    ] {
        if let Some(value) = given.get(name) {
            view[key] = value.clone();
        }
    }
    let id = add(state, call.account, view, &devices);
    Ok(json!({"imageId": id}))
}

fn check_name(given: &Value) -> Result<&str, Error> {
    let name = required(given, "Name")?;
    let usual = |letter: char| letter.is_ascii_alphanumeric() || "()[] ./-'@_".contains(letter);
    if (3..=128).contains(&name.len()) && name.chars().all(usual) {
        return Ok(name);
    }
    let message = "AMI names must be between 3 and 128 characters long, and may contain letters, numbers, \
                   '(', ')', '.', '-', '/' and '_'";
    Err(Error::new("InvalidAMIName.Malformed", message))
}

/// Adds an image and returns its id.
pub(super) fn add(state: &mut State, account: &str, mut view: Value, devices: &[Device]) -> String {
    let id = state.new_id(Kind::Image);
    for (key, value) in [
        ("imageId", json!(id)),
        ("imageOwnerId", json!(account)),
        ("imageLocation", json!(format!("{account}/{}", view["name"].as_str().unwrap_or_default()))),
        ("creationDate", json!(state.time())),
        ("imageType", json!("machine")),
        ("rootDeviceType", json!("ebs")),
        ("hypervisor", json!("xen")),
        ("platformDetails", json!("Linux/UNIX")),
        ("blockDeviceMapping", json!(image_views(devices))),
    ] {
        view[key] = value;
    }
    state.add(&id, account, view, json!({}));
    id
}

pub(super) fn copy(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = idempotency::once(state, call, |state| {
        let given = call.parameters;
        let name = check_name(given)?;
        let region = required(given, "SourceRegion")?;
        if region != state.region {
            let message = format!("The region '{region}' does not exist.");
            return Err(Error::new("InvalidRequest", message));
        }
        let source = state.find(Kind::Image, call.account, required(given, "SourceImageId")?)?;
        if source.text("imageState") != "available" {
            let message = format!("Image {} is not available", source.id);
            return Err(Error::new("InvalidAMIID.Unavailable", message));
        }
        let key = text(given, "KmsKeyId").map(str::to_owned);
        if key.is_some() && !flag(given, "Encrypted") {
            let message = "The parameter KmsKeyId requires the parameter Encrypted to be set.";
            return Err(Error::new("InvalidParameterDependency", message));
        }
        let kinds = [Kind::Image, Kind::Snapshot];
        let mut tags = tags::specified(state, given, Kind::Image, &kinds)?;
        if flag(given, "CopyImageTags") {
            let own = source.view["tagSet"].as_array().cloned().unwrap_or_default();
            tags = tags::merge(own, &tags, state.limit("tags-per-resource"))?;
        }
        let snapshot_tags = tags::specified(state, given, Kind::Snapshot, &kinds)?;
        let mut view = source.view.clone();
        let own = [
            ("name", json!(name)),
            ("description", json!(text(given, "Description").unwrap_or_default())),
            ("imageState", json!("pending")),
            ("isPublic", json!(false)),
            ("tagSet", json!(tags)),
        ];
        for (key, value) in own {
            view[key] = value;
        }
        view.as_object_mut().map(|view| view.remove("imageOwnerAlias"));
        let mappings = copy_snapshots(state, call, &source, key, &snapshot_tags)?;
        let id = add(state, call.account, view, &[]);
        state.resources.set(&id, "blockDeviceMapping", mappings);
        state.schedule(&[&id], Effect::ImageAvailable { image: id.clone() });
        Ok(json!(id))
    })?;
    Ok(json!({"imageId": id}))
}

/// Copies the snapshots of an image, and returns the image's mappings with the copies.
fn copy_snapshots(
    state: &mut State,
    call: &Call<'_>,
    source: &Item,
    key: Option<String>,
    tags: &[Value],
) -> Result<Value, Error> {
    let mut mappings = source.view["blockDeviceMapping"].clone();
    for mapping in mappings.as_array_mut().into_iter().flatten().filter(|mapping| mapping["ebs"].is_object()) {
        let ebs = &mut mapping["ebs"];
        let encrypted = flag(call.parameters, "Encrypted") || ebs["encrypted"] == true;
        let mut view = json!({
            "volumeId": "vol-ffffffff", "volumeSize": ebs["volumeSize"], "encrypted": encrypted, "tagSet": tags,
            "description": format!("Copied for DestinationAmi from SourceAmi {}", source.id),
        });
        if encrypted {
            view["kmsKeyId"] = json!(key.clone().unwrap_or_else(|| default_key(state, call.account)));
        }
        let id = snapshots::add(state, call.account, view)?;
        state.schedule(&[&id], Effect::SnapshotCompleted { snapshot: id.clone() });
        ebs["snapshotId"] = json!(id);
        ebs["encrypted"] = json!(encrypted);
    }
    Ok(mappings)
}

pub(super) fn deregister(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = required(call.parameters, "ImageId")?;
    let image = state.find(Kind::Image, call.account, id)?;
    if image.project != call.account {
        return Err(Error::new("AuthFailure", format!("Not authorized for image:{id}")));
    }
    state.pending.cancel(id);
    state.resources.remove(id);
    let mut results = Vec::new();
    if flag(call.parameters, "DeleteAssociatedSnapshots") {
        for device in image.view["blockDeviceMapping"].as_array().into_iter().flatten() {
            let Some(snapshot) = device["ebs"]["snapshotId"].as_str() else { continue };
            let code = match snapshots::remove(state, call.account, snapshot) {
                Ok(()) => "success",
                Err(_) => "client-error",
            };
            results.push(json!({"snapshotId": snapshot, "returnCode": code}));
        }
    }
    let mut result = json!({"return": true});
    if !results.is_empty() {
        result["deleteSnapshotResultSet"] = json!(results);
    }
    Ok(result)
}
