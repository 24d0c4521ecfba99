//! `snapshot_disk` and `delete_snapshot`.

use std::time::Duration;

use wasm_cpi_sdk::{Cid, Error, Metadata, clock, log, random};

use super::get;
use crate::api::ApiError;
use crate::session::Session;
use crate::snapshot;
use crate::tags::Tags;

/// How long a snapshot may take. It can be hours, but a call does not last as long.
const TIMEOUT: Duration = Duration::from_secs(45 * 60);

/// The pauses of the search for a snapshot whose answer was lost.
const SEARCH_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// How often a request is repeated that had no effect.
const MAX_REPETITIONS: usize = 2;

/// The longest description.
const MAX_DESCRIPTION: usize = 255;

/// The tag by which a snapshot is found if the answer with its ID was lost: EC2 has no token for this operation.
const TOKEN_TAG: &str = "bosh-cpi-request";

pub(crate) fn snapshot(session: &Session, disk: &str, metadata: &Metadata) -> Result<Cid, Error> {
    let volume = get(session, disk)?;
    let device = volume.attachments.first().map(|attachment| attachment.device.as_str());
    let token = session.tokens.token("snapshot");
    let (description, mut tags) = describe(metadata, device);
    tags.insert(TOKEN_TAG, &token);
    let context = |error: Error| error.context(format_args!("taking a snapshot of disk `{disk}`"));
    let id = create_once(session, disk, &description, &tags, &token).map_err(context)?;
    snapshot::wait_until_completed(session, &id, TIMEOUT).map_err(|error| {
        // The Director does not know the snapshot yet, so it would never delete it.
        let left = snapshot::delete(session, &id).err();
        let left =
            left.map(|left| format!("; snapshot `{id}` is left in the cloud, because deleting it failed: {left}"));
        context(Error::new(error.kind, format!("{}{}", error.message, left.unwrap_or_default())))
    })?;
    Ok(id)
}

/// Takes a snapshot. If an answer is lost, the snapshot is found by its tag; if it is not there, the request is repeated.
fn create_once(session: &Session, disk: &str, description: &str, tags: &Tags, token: &str) -> Result<String, Error> {
    let ec2 = session.ec2();
    let mut error = match ec2.create_snapshot(disk, description, tags).send() {
        Err(error) if error.is("InvalidVolume.NotFound") => return Err(Error::disk_not_found(disk)),
        Err(error) if error.may_have_succeeded() => error,
        outcome => return Ok(outcome?),
    };
    for _ in 0..MAX_REPETITIONS {
        log::warn(format_args!("{error}; searching for the snapshot by its tag {TOKEN_TAG}"));
        if let Some(id) = search(session, token).map_err(|why| unclear(&error, &why, token))? {
            return Ok(id);
        }
        match ec2.create_snapshot(disk, description, tags).send() {
            Ok(id) => {
                delete_others(session, &id, token);
                return Ok(id);
            }
            Err(again) if again.may_have_succeeded() => error = again,
            Err(again) => return Err(unclear(&error, &again.to_string(), token)),
        }
    }
    match search(session, token).map_err(|why| unclear(&error, &why, token))? {
        Some(id) => Ok(id),
        None => Err(unclear(&error, "it was not found by that tag", token)),
    }
}

/// Searches for a snapshot by its tag. EC2 may not show a new one everywhere.
fn search(session: &Session, token: &str) -> Result<Option<String>, String> {
    let query = session.ec2().snapshots_with_tag(TOKEN_TAG, token);
    for pause in SEARCH_PAUSES {
        let found = query.send().map_err(|error| error.to_string())?;
        if let Some(snapshot) = found.into_iter().next() {
            return Ok(Some(snapshot.id));
        }
        clock::sleep(random::jittered(pause)).map_err(|error| error.to_string())?;
    }
    Ok(None)
}

/// Deletes the snapshots of earlier requests, which EC2 shows only now.
fn delete_others(session: &Session, id: &str, token: &str) {
    let found = session.ec2().snapshots_with_tag(TOKEN_TAG, token).send().unwrap_or_default();
    for other in found.iter().filter(|other| other.id != id) {
        if let Err(error) = snapshot::delete(session, &other.id) {
            log::error(format_args!("snapshot {} is left in the cloud: {error}", other.id));
        }
    }
}

/// Returns the error of a snapshot that may exist.
fn unclear(error: &ApiError, why: &str, token: &str) -> Error {
    Error::cloud(format!("{error}; a snapshot with the tag {TOKEN_TAG}={token} may exist, which is not certain: {why}"))
}

/// Returns the description and the tags that bosh-aws-cpi gives a snapshot.
fn describe(metadata: &Metadata, device: Option<&str>) -> (String, Tags) {
    let value = |key: &str| metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let text = |key: &str| value(key).unwrap_or_default();
    let mut parts = vec![text("deployment"), text("job"), text("index")];
    parts.extend(device.and_then(|device| device.rsplit('/').next()));
    let name = parts.join("/");
    let renamed = ["director_name", "index", "job"];
    let kept = metadata.iter().filter(|(key, _)| !renamed.contains(&&**key)).cloned().collect();
    let mut tags = Tags::of_metadata(&kept);
    if let Some(device) = device {
        tags.insert("device", device);
    }
    for (key, value) in [("director", value("director_name")), ("instance_index", value("index"))] {
        if let Some(value) = value {
            tags.insert(key, value);
        }
    }
    if let (Some(job), Some(id)) = (value("job"), value("instance_id")) {
        tags.insert("instance_name", &format!("{job}/{id}"));
    }
    tags.insert("Name", &name);
    (name.chars().take(MAX_DESCRIPTION).collect(), tags)
}

/// Deletes a snapshot. It succeeds if the snapshot does not exist.
pub(crate) fn delete_snapshot(session: &Session, snapshot: &str) -> Result<(), Error> {
    snapshot::delete(session, snapshot).map_err(|error| error.context(format_args!("deleting snapshot `{snapshot}`")))
}
