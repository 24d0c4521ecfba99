//! Persistent disks: volumes of Cinder, attached by Nova.

mod attach;
mod change;
mod create;
mod delete;
mod deletion;
mod snapshot;
mod wait;

pub(crate) use attach::{attach, detach};
pub(crate) use change::{resize, update};
pub(crate) use create::create;
pub(crate) use delete::delete;
pub(crate) use snapshot::{delete_snapshot, snapshot};

use wasm_cpi_sdk::{Cid, Error, Metadata};

use crate::api::Volume;
use crate::session::Session;
use crate::tags::tags;
use crate::vm;

pub(crate) fn get(session: &Session, disk: &str) -> Result<Volume, Error> {
    session.volumes()?.volume(disk)?.ok_or_else(|| Error::disk_not_found(disk))
}

pub(crate) fn exists(session: &Session, disk: &str) -> Result<bool, Error> {
    Ok(session.volumes()?.volume(disk)?.is_some())
}

pub(crate) fn set_metadata(session: &Session, disk: &str, metadata: &Metadata) -> Result<(), Error> {
    let tags = tags(metadata);
    let volumes = session.volumes()?;
    let found = if tags.is_empty() { exists(session, disk)? } else { volumes.add_metadata(disk, &tags)? };
    if found { Ok(()) } else { Err(Error::disk_not_found(disk)) }
}

/// Returns the disks of a VM, without the volume that it booted from.
pub(crate) fn of_vm(session: &Session, vm: &str) -> Result<Vec<Cid>, Error> {
    let compute = session.compute()?;
    session.ahead.read([compute.server_request(vm), compute.attachments_request(vm)]);
    let server = vm::get(session, vm)?;
    let attached: Vec<Cid> = compute.attachments(vm)?.into_iter().map(|attachment| attachment.volume).collect();
    if !server.boots_from_volume() {
        return Ok(attached);
    }
    let volumes = session.volumes()?;
    session.ahead.read(attached.iter().map(|volume| volumes.volume_request(volume)));
    let mut disks = vec![];
    for disk in attached {
        if !volumes.volume(&disk)?.is_some_and(|volume| vm::is_boot_volume(&volume)) {
            disks.push(disk);
        }
    }
    Ok(disks)
}

/// Returns the size in whole GiB, as Cinder counts, rounded up.
fn gib(size_mib: u64) -> u64 {
    size_mib.div_ceil(1024)
}
