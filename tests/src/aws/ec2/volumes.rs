//! Volumes.

use super::block_devices::{self, VolumePlan};
use super::{Call, done, tags};
use crate::aws::error::{Error, invalid};
use crate::aws::idempotency;
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, describe as list_resources};
use crate::aws::parameters::required;
use crate::aws::seed;
use crate::aws::state::{Effect, State};
use serde_json::{Value, json};

const LISTING: Listing = Listing {
    kind: Kind::Volume,
    ids: "VolumeId",
    filters: &[
        ("attachment.device", "attachmentSet.device"),
        ("attachment.instance-id", "attachmentSet.instanceId"),
        ("attachment.status", "attachmentSet.status"),
        ("availability-zone", "availabilityZone"),
        ("encrypted", "encrypted"),
        ("size", "size"),
        ("snapshot-id", "snapshotId"),
        ("status", "status"),
        ("volume-id", "volumeId"),
        ("volume-type", "volumeType"),
    ],
    result: "volumeSet",
};

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    list_resources(state, call, &LISTING, |_, item| item.view.clone())
}

pub(super) fn create(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = idempotency::once(state, call, |state| {
        let zone = required(call.parameters, "AvailabilityZone")?;
        if !seed::zones(&state.region).iter().any(|known| known == zone) {
            let message = format!("The zone '{zone}' does not exist.");
            return Err(Error::new("InvalidZone.NotFound", message));
        }
        let plan = block_devices::plan(state, call.account, call.parameters, "Size")?;
        let tags = tags::specified(state, call.parameters, Kind::Volume, &[Kind::Volume])?;
        let id = add(state, call.account, zone, &plan, tags)?;
        state.schedule(&[&id], Effect::VolumeAvailable { volume: id.clone() });
        Ok(json!(id))
    })?;
    let id = id.as_str().unwrap_or_default();
    let item = state.resources.get(id).filter(|item| item.project == call.account);
    item.map(|item| item.view.clone()).ok_or_else(|| Kind::Volume.not_found(id))
}

/// Adds a volume that is being created, and returns its id.
pub(super) fn add(
    state: &mut State,
    account: &str,
    zone: &str,
    plan: &VolumePlan,
    tags: Vec<Value>,
) -> Result<String, Error> {
    let limit = state.limit("volumes");
    if state.own(Kind::Volume, account).len() >= limit {
        return Err(Error::new("VolumeLimitExceeded", format!("Maximum number of volumes '{limit}' exceeded.")));
    }
    let id = state.new_id(Kind::Volume);
    let mut view = json!({
        "volumeId": id, "size": plan.size, "snapshotId": plan.snapshot.clone().unwrap_or_default(),
        "availabilityZone": zone, "status": "creating", "createTime": state.time(), "attachmentSet": [],
        "volumeType": plan.kind, "encrypted": plan.encrypted, "multiAttachEnabled": false, "tagSet": tags,
    });
    for (name, value) in [("iops", plan.iops), ("throughput", plan.throughput)] {
        if let Some(value) = value {
            view[name] = json!(value);
        }
    }
    if let Some(key) = &plan.kms_key {
        view["kmsKeyId"] = json!(key);
    }
    state.add(&id, account, view, json!({"modifications": 0}));
    Ok(id)
}

pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = required(call.parameters, "VolumeId")?;
    let volume = state.find(Kind::Volume, call.account, id)?;
    match volume.text("status") {
        "available" | "error" => {}
        "deleting" => return Err(Kind::Volume.not_found(id)),
        "in-use" => {
            let instance = volume.view["attachmentSet"][0]["instanceId"].as_str().unwrap_or_default();
            let message = format!("Volume {id} is currently attached to {instance}");
            return Err(Error::new("VolumeInUse", message));
        }
        status => return Err(Error::new("IncorrectState", format!("Volume '{id}' is in the '{status}' state."))),
    }
    state.resources.set(id, "status", json!("deleting"));
    state.schedule(&[id], Effect::VolumeDeleted { volume: id.to_owned() });
    done()
}

/// Checks a device name for an attachment.
pub(super) fn check_device(device: &str) -> Result<(), Error> {
    let letters = device.strip_prefix("/dev/sd").or_else(|| device.strip_prefix("/dev/xvd")).unwrap_or_default();
    let good = !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if good { Ok(()) } else { Err(invalid("device", device, &format!("{device} is not a valid EBS device name."))) }
}
