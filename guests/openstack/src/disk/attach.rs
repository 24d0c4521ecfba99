//! `attach_disk` and `detach_disk`. The hint is the device name that the cloud
//! answers: the Agent of OpenStack's stemcells first looks for the disk by its
//! ID, and then for that name, whatever the kernel made of it (sd, vd or xvd).

use wasm_cpi_sdk::{DiskHint, Error, agent, log};

use super::{get, wait};
use crate::api::{Attachment, Server, Volume, insist, patiently};
use crate::properties::ConfigDrive;
use crate::session::Session;
use crate::vm;

pub(crate) fn attach(session: &Session, vm: &str, disk: &str) -> Result<DiskHint, Error> {
    let server = vm::get(session, vm)?;
    let mut volume = get(session, disk)?;
    if wait::is_passing(&volume) {
        volume = wait::until_settled(session, disk)?;
    }
    let hint = match attached_to(&volume, vm) {
        Some(device) => hint(session, vm, disk, device)?,
        None => attach_free(session, &server, &volume)?,
    };
    agent::attached(vm::registry_key(&server), disk, &hint)?;
    Ok(hint)
}

fn attach_free(session: &Session, server: &Server, volume: &Volume) -> Result<DiskHint, Error> {
    let (vm, disk) = (server.id.as_str(), volume.id.as_str());
    if volume.status != "available" {
        let holders: Vec<&str> = volume.attachments.iter().filter_map(|place| place.server_id.as_deref()).collect();
        let holders =
            if holders.is_empty() { String::new() } else { format!(", attached to `{}`", holders.join(", ")) };
        return Err(Error::cloud(format!("disk `{disk}` cannot be attached: it is {}{holders}", volume.status)));
    }
    let device = device_name(session, server)?;
    let attached = request(session, vm, disk, &device).and_then(|()| wait::until(session, disk, "in-use"));
    match attached {
        Ok(volume) => match attached_to(&volume, vm) {
            Some(told) if !told.is_empty() => Ok(DiskHint::Text(told.to_owned())),
            _ => Ok(DiskHint::Text(device)),
        },
        Err(error) => {
            // The Director knows of no attachment, and would never undo one.
            let undone = wait::until_settled(session, disk).and_then(|_| detach_volume(session, vm, disk));
            let left = undone.err().map(|left| format!("; it may be attached, as undoing that failed: {left}"));
            let message = format!("{error}{}", left.unwrap_or_default());
            Err(Error::new(error.kind, message).context(format_args!("attaching disk `{disk}` to VM `{vm}`")))
        }
    }
}

fn request(session: &Session, vm: &str, disk: &str, device: &str) -> Result<(), Error> {
    let compute = session.compute()?;
    let here = || Ok(compute.attachments(vm)?.iter().any(|place| place.volume == disk));
    Ok(insist("the disk is attached", || compute.attach(vm, disk, device), here)?)
}

/// A free name, as bosh-openstack-cpi counts them: after the root disk come
/// ephemeral disk, swap and a config drive that is a disk.
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
    let free = (first..=b'z').map(char::from).find(|letter| !taken.iter().any(|place| has_letter(place, *letter)));
    free.map(|letter| format!("/dev/sd{letter}"))
        .ok_or_else(|| Error::cloud(format!("VM `{}` has no device name left for another disk", server.id)))
}

fn has_letter(place: &Attachment, letter: char) -> bool {
    let device = place.device.as_deref().unwrap_or_default();
    ["/dev/sd", "/dev/vd", "/dev/xvd"]
        .iter()
        .any(|prefix| device.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(letter)))
}

/// The device of the volume at this VM, empty if the cloud does not say.
fn attached_to<'v>(volume: &'v Volume, vm: &str) -> Option<&'v str> {
    let place = volume.attachments.iter().find(|place| place.server_id.as_deref() == Some(vm))?;
    (volume.status == "in-use").then(|| place.device.as_deref().unwrap_or_default())
}

/// The device of a disk that was attached before. Where Cinder does not say,
/// Nova does; a guess could be the ephemeral disk, and the Agent would format it.
fn hint(session: &Session, vm: &str, disk: &str, device: &str) -> Result<DiskHint, Error> {
    if !device.is_empty() {
        return Ok(DiskHint::Text(device.to_owned()));
    }
    let places = session.compute()?.attachments(vm)?;
    let place = places.into_iter().find(|place| place.volume == disk).and_then(|place| place.device);
    let device = place.filter(|device| !device.is_empty());
    device.map(DiskHint::Text).ok_or_else(|| {
        Error::cloud(format!(
            "disk `{disk}` is attached to VM `{vm}`, but the cloud does not say as which device; detach it first"
        ))
    })
}

pub(crate) fn detach(session: &Session, vm: &str, disk: &str) -> Result<(), Error> {
    let server = vm::get(session, vm)?;
    match session.volumes()?.volume(disk)? {
        Some(_) => detach_volume(session, vm, disk)?,
        None => log::info(format_args!("disk {disk} is gone, and so attached to nothing")),
    }
    agent::detached(vm::registry_key(&server), disk)
}

fn detach_volume(session: &Session, vm: &str, disk: &str) -> Result<(), Error> {
    let (compute, volumes) = (session.compute()?, session.volumes()?);
    match patiently(|| compute.detach(vm, disk)) {
        Ok(true) => {}
        Ok(false) => log::info(format_args!("disk {disk} is not attached to VM {vm}")),
        // What was asked for twice is refused the second time while it goes on.
        Err(error) if volumes.volume(disk)?.is_some_and(|volume| volume.status != "detaching") => {
            return Err(error.context(format_args!("detaching disk `{disk}`")));
        }
        Err(error) => log::warn(format_args!("{error}; but disk {disk} is being detached")),
    }
    session.certainly(&format!("disk `{disk}` to be detached"), || {
        let Some(volume) = volumes.volume(disk)? else {
            return Ok(Some(()));
        };
        let here = volume.attachments.iter().any(|place| place.server_id.as_deref() == Some(vm));
        match volume.status.as_str() {
            "detaching" => Ok(None),
            status if status.starts_with("error") => {
                Err(Error::cloud(format!("disk `{disk}` is in state `{status}` instead of detached")))
            }
            _ => Ok((!here).then_some(())),
        }
    })
}
