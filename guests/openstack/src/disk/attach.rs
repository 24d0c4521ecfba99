//! `attach_disk` and `detach_disk`. The hint is the device name that the cloud
//! returns. The Agent of OpenStack's stemcells searches for the disk by its ID
//! first, and then by this name with any of the prefixes sd, vd and xvd.

use wasm_cpi_sdk::{DiskHint, Error, agent, log};

use super::{get, wait};
use crate::api::{Attachment, Server, Volume, request_change, retry_while_busy};
use crate::properties::ConfigDrive;
use crate::session::Session;
use crate::vm;

pub(crate) fn attach(session: &Session, vm: &str, disk: &str) -> Result<DiskHint, Error> {
    let (compute, volumes) = (session.compute()?, session.volumes()?);
    session.ahead.read([compute.server_request(vm), volumes.volume_request(disk), compute.attachments_request(vm)]);
    let server = vm::get(session, vm)?;
    let mut volume = get(session, disk)?;
    if wait::is_changing(&volume) {
        session.ahead.discard();
        volume = wait::until_settled(session, disk)?;
    }
    let hint = match device_at(&volume, vm) {
        Some(device) => hint(session, vm, disk, device)?,
        None => attach_available(session, &server, &volume)?,
    };
    agent::attached(vm::registry_key(&server), disk, &hint)?;
    Ok(hint)
}

fn attach_available(session: &Session, server: &Server, volume: &Volume) -> Result<DiskHint, Error> {
    let (vm, disk) = (server.id.as_str(), volume.id.as_str());
    if volume.status != "available" {
        let holders: Vec<&str> =
            volume.attachments.iter().filter_map(|attachment| attachment.server_id.as_deref()).collect();
        let holders =
            if holders.is_empty() { String::new() } else { format!(", attached to `{}`", holders.join(", ")) };
        return Err(Error::cloud(format!(
            "disk `{disk}` cannot be attached: expected status `available`, found `{}`{holders}",
            volume.status
        )));
    }
    let device = device_name(session, server)?;
    let attached = request_attachment(session, vm, disk, &device).and_then(|()| wait::until(session, disk, "in-use"));
    match attached {
        Ok(volume) => match device_at(&volume, vm) {
            Some(actual) if !actual.is_empty() => Ok(DiskHint::Text(actual.to_owned())),
            _ => Ok(DiskHint::Text(device)),
        },
        Err(error) => {
            // The Director does not know of the attachment, so it would never undo it.
            let undone = wait::until_settled(session, disk).and_then(|_| detach_volume(session, vm, disk));
            let left =
                undone.err().map(|left| format!("; it may still be attached, because undoing that failed: {left}"));
            let message = format!("{error}{}", left.unwrap_or_default());
            Err(Error::new(error.kind, message).context(format_args!("attaching disk `{disk}` to VM `{vm}`")))
        }
    }
}

fn request_attachment(session: &Session, vm: &str, disk: &str, device: &str) -> Result<(), Error> {
    let compute = session.compute()?;
    let here = || Ok(compute.attachments(vm)?.iter().any(|attachment| attachment.volume == disk));
    Ok(request_change("the disk is attached", || compute.attach(vm, disk, device), here)?)
}

/// Returns a free device name, as bosh-openstack-cpi counts them: after the root
/// disk come the ephemeral disk, swap, and a config drive that is a disk.
fn device_name(session: &Session, server: &Server) -> Result<String, Error> {
    let compute = session.compute()?;
    let flavor = match server.flavor_id() {
        Some(id) => compute.flavor(id)?,
        None => None,
    };
    let before = [
        flavor.as_ref().is_some_and(|flavor| flavor.ephemeral > 0),
        flavor.as_ref().is_some_and(|flavor| flavor.has_swap()),
        session.properties.config_drive()? == Some(ConfigDrive::Disk),
    ];
    let taken = compute.attachments(&server.id)?;
    let first = b'b' + before.into_iter().map(u8::from).sum::<u8>();
    let free =
        (first..=b'z').map(char::from).find(|letter| !taken.iter().any(|attachment| has_letter(attachment, *letter)));
    free.map(|letter| format!("/dev/sd{letter}")).ok_or_else(|| {
        Error::cloud(format!("VM `{}` has no free device name for another disk; detach one first", server.id))
    })
}

fn has_letter(attachment: &Attachment, letter: char) -> bool {
    let device = attachment.device.as_deref().unwrap_or_default();
    ["/dev/sd", "/dev/vd", "/dev/xvd"]
        .iter()
        .any(|prefix| device.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(letter)))
}

/// Returns the device of a volume that is attached to this VM. It is empty if the
/// cloud does not name it.
fn device_at<'v>(volume: &'v Volume, vm: &str) -> Option<&'v str> {
    let attachment = volume.attachments.iter().find(|attachment| attachment.server_id.as_deref() == Some(vm))?;
    (volume.status == "in-use").then(|| attachment.device.as_deref().unwrap_or_default())
}

/// Returns the device of a disk that was attached before. If Cinder does not name
/// it, Nova does. It is never guessed: the guess could be the ephemeral disk, and
/// the Agent would format it.
fn hint(session: &Session, vm: &str, disk: &str, device: &str) -> Result<DiskHint, Error> {
    if !device.is_empty() {
        return Ok(DiskHint::Text(device.to_owned()));
    }
    let mut attachments = session.compute()?.attachments(vm)?.into_iter();
    let named = attachments.find(|attachment| attachment.volume == disk).and_then(|attachment| attachment.device);
    let device = named.filter(|device| !device.is_empty());
    device.map(DiskHint::Text).ok_or_else(|| {
        Error::cloud(format!(
            "disk `{disk}` is attached to VM `{vm}`, but the cloud does not name its device; detach the disk first"
        ))
    })
}

pub(crate) fn detach(session: &Session, vm: &str, disk: &str) -> Result<(), Error> {
    let server = vm::get(session, vm)?;
    detach_volume(session, vm, disk)?;
    agent::detached(vm::registry_key(&server), disk)
}

fn detach_volume(session: &Session, vm: &str, disk: &str) -> Result<(), Error> {
    let (compute, volumes) = (session.compute()?, session.volumes()?);
    match retry_while_busy(|| compute.detach(vm, disk)) {
        Ok(true) => {}
        Ok(false) => log::info(format_args!("disk {disk} is not attached to VM {vm}")),
        // Cinder rejects a second request while the first one is in progress.
        Err(error) if volumes.volume(disk)?.is_some_and(|volume| volume.status != "detaching") => {
            return Err(error.context(format_args!("detaching disk `{disk}`")));
        }
        Err(error) => log::warn(format_args!("{error}; disk {disk} is being detached nevertheless")),
    }
    session.wait_until_certain(&format!("disk `{disk}` to be detached"), || {
        let Some(volume) = volumes.volume(disk)? else {
            return Ok(Some(()));
        };
        let here = volume.attachments.iter().any(|attachment| attachment.server_id.as_deref() == Some(vm));
        match volume.status.as_str() {
            "detaching" => Ok(None),
            status if status.starts_with("error") => {
                Err(Error::cloud(format!("disk `{disk}` was not detached: its status is `{status}`")))
            }
            _ => Ok((!here).then_some(())),
        }
    })
}
