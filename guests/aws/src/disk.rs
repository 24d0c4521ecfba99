//! Disks and snapshots: volumes of EBS and their snapshots.

mod attach;
mod certainty;
mod change;
mod create;
mod delete;
mod detach;
mod modification;
mod properties;
mod snapshot;

use std::time::Duration;

use wasm_cpi_sdk::{Cid, Error, Metadata, log};

use crate::api::ApiError;
use crate::api::ec2::{Instance, Volume};
use crate::session::Session;
use crate::tags::Tags;
use crate::vm;

pub(crate) use attach::attach;
pub(crate) use change::{resize, update};
pub(crate) use create::create;
pub(crate) use delete::delete;
pub(crate) use detach::detach;
pub(crate) use snapshot::{delete_snapshot, snapshot};

/// How long EC2 may not know everywhere what it just created.
const UNKNOWN_BUDGET: Duration = Duration::from_secs(60);

/// How long a volume may take to change its state.
const STATE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Returns a volume, unless it does not exist or is being deleted.
fn find(session: &Session, disk: &str) -> Result<Option<Volume>, ApiError> {
    match session.ec2().volume(disk).send() {
        Ok(found) => Ok(found.into_iter().find(|volume| volume.id == disk && !volume.is_gone())),
        Err(error) if error.is("InvalidVolume.NotFound") => Ok(None),
        Err(error) => Err(error),
    }
}

fn get(session: &Session, disk: &str) -> Result<Volume, Error> {
    find(session, disk)?.ok_or_else(|| Error::disk_not_found(disk))
}

/// Returns the instance of a VM that has not ended.
fn instance(session: &Session, vm: &str) -> Result<Instance, Error> {
    let found = session.ec2().instance(vm).send().map_err(|error| vm::not_found(error, vm))?;
    let instance = found.into_iter().find(|instance| instance.id == vm && !instance.is_gone());
    instance.ok_or_else(|| Error::vm_not_found(vm))
}

pub(crate) fn exists(session: &Session, disk: &str) -> Result<bool, Error> {
    Ok(find(session, disk)?.is_some())
}

pub(crate) fn set_metadata(session: &Session, disk: &str, metadata: &Metadata) -> Result<(), Error> {
    set_tags(session, disk, &Tags::of_metadata(metadata))
}

/// Adds tags. Like bosh-aws-cpi, it only logs that EC2 does not accept them.
fn set_tags(session: &Session, disk: &str, tags: &Tags) -> Result<(), Error> {
    if tags.is_empty() {
        return Ok(());
    }
    match session.ec2().create_tags(&[disk], tags).for_at_most(UNKNOWN_BUDGET).send() {
        Err(error) if error.is("InvalidVolume.NotFound") => Err(Error::disk_not_found(disk)),
        Err(error) if matches!(error.code(), "TagLimitExceeded" | "InvalidParameterValue") => {
            log::warn(format_args!("disk {disk} does not get its tags: {error}"));
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}

/// Returns all volumes of a VM: its disks, its root disk and its ephemeral disk, as bosh-aws-cpi does.
pub(crate) fn of_vm(session: &Session, vm: &str) -> Result<Vec<Cid>, Error> {
    let instance = instance(session, vm)?;
    Ok(instance.volumes.into_iter().map(|volume| volume.volume).collect())
}

/// Returns a size in MiB as GiB, rounded up.
fn gib(mib: u64) -> u64 {
    mib.div_ceil(1024)
}
