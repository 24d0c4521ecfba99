//! `snapshot_disk` and `delete_snapshot`.

use std::collections::BTreeMap;

use serde_json::json;
use wasm_cpi_sdk::{Cid, Error, Metadata};

use super::get;
use crate::api::create_once;
use crate::names;
use crate::session::Session;
use crate::tags::{tags, truncate};

pub(crate) fn snapshot(session: &Session, disk: &str, metadata: &Metadata) -> Result<Cid, Error> {
    let volume = get(session, disk)?;
    let tags = tags(metadata);
    let value = |key: &str| tags.get(key).cloned().unwrap_or_default();
    let mut description = vec![value("deployment"), value("job"), value("index")];
    let device = volume.attachments.iter().find_map(|attachment| attachment.device.as_deref());
    description.extend(device.and_then(|device| device.rsplit('/').next()).map(str::to_owned));
    let name = names::unique("snapshot");
    // `force` allows a snapshot of a disk in use: the Director decides when to take it.
    let body = json!({
        "name": name, "description": truncate(&description.join("/")), "volume_id": disk, "force": true,
        "metadata": renamed(tags),
    });
    let volumes = session.volumes()?;
    let post = || volumes.create_snapshot(&body);
    let snapshot = create_once(&format!("snapshot {name}"), post, || volumes.snapshot_named(&name))?;
    let id = snapshot.id;
    let available = session.poll().until(&format!("snapshot `{id}` to be available"), || {
        let found = volumes.snapshot(&id)?.ok_or_else(|| {
            Error::cloud(format!(
                "snapshot `{id}` disappeared while it was created; something else deleted it, try again"
            ))
        })?;
        match found.status.as_str() {
            "available" => Ok(Some(())),
            status if status.starts_with("error") => Err(Error::cloud(format!(
                "snapshot `{id}` failed: expected status `available`, found `{status}`; look at Cinder's log, and \
                     try again"
            ))),
            _ => Ok(None),
        }
    });
    match available {
        Ok(()) => Ok(id),
        Err(error) => {
            if let Err(left) = undo(session, &id) {
                return Err(Error::cloud(format!(
                    "taking a snapshot of disk `{disk}`: {error}; snapshot `{id}` is left in the cloud, because deleting it \
                     failed: {left}"
                )));
            }
            Err(error.context(format_args!("taking a snapshot of disk `{disk}`")))
        }
    }
}

/// Renames the Director's metadata as bosh-openstack-cpi does.
fn renamed(mut tags: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let job = tags.remove("job");
    if let Some(director) = tags.remove("director_name") {
        tags.insert("director".to_owned(), director);
    }
    if let Some(index) = tags.remove("index") {
        tags.insert("instance_index".to_owned(), index);
    }
    if let (Some(job), Some(id)) = (job, tags.get("instance_id")) {
        tags.insert("instance_name".to_owned(), truncate(&format!("{job}/{id}")));
    }
    tags
}

/// Deletes a snapshot. It succeeds if the snapshot does not exist.
pub(crate) fn delete_snapshot(session: &Session, snapshot: &str) -> Result<(), Error> {
    delete_and_wait(session, snapshot)
}

/// Deletes a snapshot that the Director does not know yet, as soon as Cinder allows it.
fn undo(session: &Session, snapshot: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    session.wait_until_certain(&format!("snapshot `{snapshot}` to be created"), || {
        Ok(volumes.snapshot(snapshot)?.is_none_or(|found| found.status != "creating").then_some(()))
    })?;
    delete_and_wait(session, snapshot)
}

fn delete_and_wait(session: &Session, snapshot: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    let status = || Ok(volumes.snapshot(snapshot)?.map(|found| found.status));
    super::deletion::delete_and_wait(
        session,
        &format!("snapshot `{snapshot}`"),
        || volumes.delete_snapshot(snapshot),
        status,
    )
}
