//! `resize_disk` and `update_disk`. If Cinder cannot change the disk in place, the
//! error is not-supported, and the Director copies the disk instead.

use std::cell::Cell;

use wasm_cpi_sdk::{Cid, Error, Json, http, log};

use super::create::DiskProperties;
use super::{get, gib, wait};
use crate::api::{Volume, request_change};
use crate::session::Session;

pub(crate) fn resize(session: &Session, disk: &str, size_mib: u64) -> Result<(), Error> {
    let volume = get(session, disk)?;
    grow(session, &volume, gib(size_mib))
}

pub(crate) fn update(
    session: &Session,
    disk: &str,
    size_mib: u64,
    cloud_properties: &Json,
) -> Result<Option<Cid>, Error> {
    let properties: DiskProperties = cloud_properties.parse()?;
    let volume = get(session, disk)?;
    let size = gib(size_mib);
    let new_type = properties.volume_type(session).filter(|kind| Some(kind) != volume.volume_type.as_ref());
    if size < volume.size {
        return Err(cannot_shrink(&volume, size));
    }
    if (size > volume.size || new_type.is_some()) && volume.status != "available" {
        return Err(Error::not_supported(format!(
            "disk `{disk}` cannot be changed: expected status `available`, found `{}`; detach the disk first, or wait \
             until it is available",
            volume.status
        )));
    }
    if let Some(kind) = new_type {
        retype(session, disk, &kind)?;
    }
    grow(session, &volume, size)?;
    Ok(None)
}

fn grow(session: &Session, volume: &Volume, size: u64) -> Result<(), Error> {
    let disk = volume.id.as_str();
    if size == volume.size {
        log::info(format_args!("disk {disk} already has {size} GiB"));
        return Ok(());
    }
    if size < volume.size {
        return Err(cannot_shrink(volume, size));
    }
    if !volume.attachments.is_empty() {
        let count = volume.attachments.len();
        return Err(Error::cloud(format!(
            "disk `{disk}` cannot be resized: it has {count} attachment(s); detach it first"
        )));
    }
    let volumes = session.volumes()?;
    let done = |volume: &Volume| volume.size == size || volume.status == "extending";
    request(session, disk, || volumes.extend(disk, size), done)?;
    let grown = wait::until(session, disk, "available")?;
    if grown.size != size {
        return Err(Error::cloud(format!(
            "disk `{disk}` was not resized: expected {size} GiB, found {} GiB; look at `openstack volume show {disk}`, \
             and try again",
            grown.size
        )));
    }
    Ok(())
}

/// Changes the type of a volume in place. Cinder restores the old type if it cannot.
fn retype(session: &Session, disk: &str, kind: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    let done = |volume: &Volume| volume.volume_type.as_deref() == Some(kind) || volume.status == "retyping";
    let cannot =
        |why: &str| Error::not_supported(format!("the type of disk `{disk}` cannot be changed to `{kind}`: {why}"));
    // The cloud does not support what it rejects; what fails may work later.
    let refused = Cell::new(false);
    let send = || {
        let by_cloud = |error: &http::RequestError| error.status().is_some_and(|status| (400..500).contains(&status));
        volumes.retype(disk, kind).inspect_err(|error| refused.set(by_cloud(error)))
    };
    request(session, disk, send, done).map_err(|error| if refused.get() { cannot(&error.message) } else { error })?;
    let volume = wait::until(session, disk, "available")?;
    if volume.volume_type.as_deref() == Some(kind) { Ok(()) } else { Err(cannot("the storage backend refused")) }
}

fn request(
    session: &Session,
    disk: &str,
    send: impl Fn() -> Result<(), http::RequestError>,
    done: impl Fn(&Volume) -> bool,
) -> Result<(), Error> {
    let volumes = session.volumes()?;
    let changes = || Ok(volumes.volume(disk)?.is_some_and(|volume| done(&volume)));
    Ok(request_change("the disk is changing", send, changes)?)
}

fn cannot_shrink(volume: &Volume, size: u64) -> Error {
    let (disk, now) = (&volume.id, volume.size);
    Error::not_supported(format!(
        "disk `{disk}` cannot shrink from {now} GiB to {size} GiB; request at least {now} GiB"
    ))
}
