//! Images that this CPI creates: waits for them, and deletes them with their snapshots.

use std::time::Duration;

use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{Error, clock, log};

use crate::api::Batch;
use crate::api::ec2::Image;
use crate::session::Session;

/// How long an image may take. EC2 copies gigabytes for an encrypted one.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// How long EC2 may not show a new image everywhere.
const UNKNOWN_BUDGET: Duration = Duration::from_secs(2 * 60);

/// How long a snapshot may be in use after the end of its image.
const IN_USE_BUDGET: Duration = Duration::from_secs(60);

pub(super) fn wait_until_available(session: &Session, id: &str) -> Result<(), Error> {
    let (query, start) = (session.ec2().image(id), clock::monotonic());
    Poll::for_at_most(TIMEOUT).with_jitter().until(&format!("image `{id}` to be available"), || {
        let image = query.send()?.into_iter().find(|image| image.id == id);
        match image.as_ref().map(|image| &*image.state) {
            Some("available") => Ok(Some(())),
            Some("pending") => Ok(None),
            None if clock::monotonic().saturating_sub(start) < UNKNOWN_BUDGET => Ok(None),
            found => Err(Error::cloud(format!(
                "image `{id}` failed: expected state `available`, found `{}`; if it is encrypted, check that its key exists and \
                 that the credentials may use it",
                found.unwrap_or("not found")
            ))),
        }
    })
}

/// Deletes an image that the Director does not know yet. Succeeds if EC2 does not show it.
pub(super) fn undo(session: &Session, id: &str) -> Result<(), Error> {
    match session.ec2().image(id).send()?.into_iter().find(|image| image.id == id) {
        Some(image) => delete(session, &image),
        None => deregister(session, id),
    }
}

pub(super) fn delete(session: &Session, image: &Image) -> Result<(), Error> {
    deregister(session, &image.id)?;
    let ec2 = session.ec2();
    let mut batch = Batch::default();
    let snapshots: Vec<&str> = image.devices.iter().filter_map(|device| device.snapshot.as_deref()).collect();
    let tickets: Vec<_> = snapshots
        .iter()
        .map(|id| batch.add(ec2.delete_snapshot(id).passing(&["InvalidSnapshot.InUse"]).for_at_most(IN_USE_BUDGET)))
        .collect();
    let mut answers = batch.send();
    let mut problems = vec![];
    for (id, ticket) in snapshots.iter().zip(tickets) {
        match answers.take(&ticket) {
            Ok(()) => {}
            Err(error) if error.is("InvalidSnapshot.NotFound") => {}
            Err(error) if error.is("InvalidSnapshot.InUse") => {
                log::warn(format_args!("snapshot {id} is left in the cloud, because another image uses it: {error}"));
            }
            Err(error) => problems.push(format!("snapshot `{id}` is left in the cloud: {}", Error::from(error))),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::cloud(problems.join("; "))) }
}

/// Removes an image. Succeeds if it does not exist: an earlier request whose answer was lost removed it.
pub(super) fn deregister(session: &Session, id: &str) -> Result<(), Error> {
    match session.ec2().deregister_image(id).send() {
        Err(error) if matches!(error.code(), "InvalidAMIID.NotFound" | "InvalidAMIID.Unavailable") => Ok(()),
        outcome => Ok(outcome?),
    }
}
