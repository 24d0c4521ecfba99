//! `snapshot_disk` and `delete_snapshot`.

use std::collections::BTreeMap;

use serde_json::json;
use wasm_cpi_sdk::{Cid, Error, Metadata, log};

use super::get;
use crate::api::once;
use crate::names;
use crate::session::Session;
use crate::tags::{cut, tags};

pub(crate) fn snapshot(session: &Session, disk: &str, metadata: &Metadata) -> Result<Cid, Error> {
    let volume = get(session, disk)?;
    let tags = tags(metadata);
    let value = |key: &str| tags.get(key).cloned().unwrap_or_default();
    let mut description = vec![value("deployment"), value("job"), value("index")];
    let device = volume.attachments.iter().find_map(|place| place.device.as_deref());
    description.extend(device.and_then(|device| device.rsplit('/').next()).map(str::to_owned));
    let name = names::unique("snapshot");
    // A disk in use is taken as it is: the Director decides when.
    let body = json!({
        "name": name, "description": cut(&description.join("/")), "volume_id": disk, "force": true,
        "metadata": renamed(tags),
    });
    let volumes = session.volumes()?;
    let post = || volumes.create_snapshot(&body);
    let snapshot = once(&format!("snapshot {name}"), post, || volumes.snapshot_named(&name))?;
    let id = snapshot.id;
    let available = session.poll().until(&format!("snapshot `{id}` to be available"), || {
        let found = volumes.snapshot(&id)?.ok_or_else(|| Error::cloud(format!("snapshot `{id}` is gone")))?;
        match found.status.as_str() {
            "available" => Ok(Some(())),
            status if status.starts_with("error") => Err(Error::cloud(format!("snapshot `{id}` failed: {status}"))),
            _ => Ok(None),
        }
    });
    match available {
        Ok(()) => Ok(id),
        Err(error) => {
            if let Err(left) = undo(session, &id) {
                return Err(Error::cloud(format!("{error}; and deleting it failed: {left}")));
            }
            Err(error.context(format_args!("taking a snapshot of disk `{disk}`")))
        }
    }
}

/// The names that bosh-openstack-cpi gives to what the Director tells.
fn renamed(mut tags: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let job = tags.remove("job");
    if let Some(director) = tags.remove("director_name") {
        tags.insert("director".to_owned(), director);
    }
    if let Some(index) = tags.remove("index") {
        tags.insert("instance_index".to_owned(), index);
    }
    if let (Some(job), Some(id)) = (job, tags.get("instance_id")) {
        tags.insert("instance_name".to_owned(), cut(&format!("{job}/{id}")));
    }
    tags
}

/// One that is gone is what was asked for.
pub(crate) fn delete_snapshot(session: &Session, snapshot: &str) -> Result<(), Error> {
    if session.volumes()?.snapshot(snapshot)?.is_none() {
        log::info(format_args!("snapshot {snapshot} is gone already"));
        return Ok(());
    }
    remove(session, snapshot)
}

/// Deletes one that nobody knows of yet, once Cinder lets it.
fn undo(session: &Session, snapshot: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    session.certainly(&format!("snapshot `{snapshot}` to settle"), || {
        Ok(volumes.snapshot(snapshot)?.is_none_or(|found| found.status != "creating").then_some(()))
    })?;
    remove(session, snapshot)
}

fn remove(session: &Session, snapshot: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    let status = || Ok(volumes.snapshot(snapshot)?.map(|found| found.status));
    super::remove::remove(session, &format!("snapshot `{snapshot}`"), || volumes.delete_snapshot(snapshot), status)
}
