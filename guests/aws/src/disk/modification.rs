//! Changes a volume with `ModifyVolume`, and waits until the change can be used.

use std::time::Duration;

use serde_json::{Map, Value};
use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{Error, clock};

use super::UNKNOWN_BUDGET;
use super::certainty::{self, Outcome, Refusal};
use crate::api::ApiError;
use crate::api::ec2::Modification;
use crate::error::{is_throttled, remedy};
use crate::session::Session;

const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Changes a volume. `change` holds parameters of `ModifyVolume`.
pub(super) fn modify(session: &Session, disk: &str, change: &Map<String, Value>) -> Result<(), Error> {
    let request = session.ec2().modify_volume(disk, change);
    let look = |refusal: &Refusal<'_>| {
        if refusal.is_unclear && last(session, disk)?.is_some_and(|last| last.has(change)) {
            return Ok(Outcome::Done);
        }
        if refusal.error.may_have_succeeded() {
            return Ok(Outcome::NotDone);
        }
        Err(refused(refusal.error, disk))
    };
    certainty::send(&format!("disk `{disk}` to be changed"), &request, look)?;
    wait(session, disk, change)
}

/// Returns the error of a change that EC2 refuses. What a copy of the disk would not run into, too, is not-supported.
fn refused(error: &ApiError, disk: &str) -> Error {
    if error.is("InvalidVolume.NotFound") {
        return Error::disk_not_found(disk);
    }
    let is_refusal = error.status().is_some_and(|status| (400..500).contains(&status))
        && !is_throttled(error.code(), error.status())
        && remedy(error).is_none();
    if is_refusal {
        return Error::not_supported(format!("EC2 does not change disk `{disk}` in place: {error}"));
    }
    Error::from(error.clone()).context(format_args!("changing disk `{disk}`"))
}

fn last(session: &Session, disk: &str) -> Result<Option<Modification>, ApiError> {
    match session.ec2().modification(disk).send() {
        Ok(found) => Ok(found.into_iter().next()),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits until the volume can be used with its new properties. It is optimized for hours after that.
fn wait(session: &Session, disk: &str, change: &Map<String, Value>) -> Result<(), Error> {
    let start = clock::monotonic();
    Poll::for_at_most(TIMEOUT).with_jitter().until(&format!("disk `{disk}` to be changed"), || {
        let is_new = clock::monotonic().saturating_sub(start) < UNKNOWN_BUDGET;
        // EC2 may still show the modification before this one.
        let found = last(session, disk)?.filter(|found| found.has(change));
        match found.as_ref().map(|found| (&*found.state, &found.message)) {
            Some(("optimizing" | "completed", _)) => Ok(Some(())),
            Some(("modifying", _)) => Ok(None),
            None if is_new => Ok(None),
            None => Err(Error::cloud(format!("EC2 does not show the change of disk `{disk}`"))),
            Some((state, message)) => {
                Err(Error::cloud(format!("disk `{disk}` was not changed: the state is `{state}`: {message}")))
            }
        }
    })
}
