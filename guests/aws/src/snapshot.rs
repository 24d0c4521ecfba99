//! Snapshots of EBS: those of disks, and those that images consist of.

use std::time::Duration;

use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{Error, clock, log};

use crate::session::Session;

/// How long EC2 may not know a new snapshot everywhere.
const UNKNOWN_BUDGET: Duration = Duration::from_secs(2 * 60);

/// Waits until a snapshot is completed.
pub(crate) fn wait_until_completed(session: &Session, id: &str, timeout: Duration) -> Result<(), Error> {
    let (query, start) = (session.ec2().snapshot(id), clock::monotonic());
    Poll::for_at_most(timeout).with_jitter().until(&format!("snapshot `{id}` to be completed"), || {
        let snapshot = match query.send() {
            Ok(found) => found.into_iter().find(|snapshot| snapshot.id == id),
            Err(error) if error.is("InvalidSnapshot.NotFound") => None,
            Err(error) => return Err(error.into()),
        };
        match snapshot.as_ref().map(|snapshot| (&*snapshot.status, &snapshot.message)) {
            Some(("completed", _)) => Ok(Some(())),
            Some(("pending", _)) => Ok(None),
            None if clock::monotonic().saturating_sub(start) < UNKNOWN_BUDGET => Ok(None),
            None => Err(Error::cloud(format!("snapshot `{id}` disappeared while it was created"))),
            Some((status, message)) => {
                Err(Error::cloud(format!("snapshot `{id}` failed: its status is `{status}`: {message}")))
            }
        }
    })
}

/// Deletes a snapshot. It succeeds if the snapshot does not exist.
pub(crate) fn delete(session: &Session, id: &str) -> Result<(), Error> {
    match session.ec2().delete_snapshot(id).send() {
        Err(error) if error.is("InvalidSnapshot.NotFound") => {
            log::info(format_args!("snapshot {id} does not exist"));
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}
