//! `attach_disk`. The hint is the path by which the Agent finds the disk: for NVMe devices the one that udev makes of
//! the volume's ID, and otherwise the name of the device.

use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{DiskHint, Error, agent, clock};

use super::certainty::{self, Outcome, Refusal};
use super::{STATE_TIMEOUT, UNKNOWN_BUDGET, detach, find, instance};
use crate::api::ec2::{Instance, Volume};
use crate::session::Session;
use crate::vm;

/// The letters of the device names that AWS recommends for volumes.
const LETTERS: std::ops::RangeInclusive<u8> = b'f'..=b'p';

pub(crate) fn attach(session: &Session, vm: &str, disk: &str) -> Result<DiskHint, Error> {
    let instance = instance(session, vm)?;
    match instance.volumes.iter().find(|volume| volume.volume == disk && volume.status == "attached") {
        Some(volume) => report(session, &instance, disk, &volume.device),
        None => attach_new(session, &instance, disk),
    }
}

fn attach_new(session: &Session, instance: &Instance, disk: &str) -> Result<DiskHint, Error> {
    let device = free_device(instance)?;
    let vm = instance.id.as_str();
    let context = |error: Error| error.context(format_args!("attaching disk `{disk}` to VM `{vm}`"));
    request(session, vm, disk, &device).map_err(context)?;
    let attached = wait_until_attached(session, vm, disk);
    attached.and_then(|device| report(session, instance, disk, &device)).map_err(|error| {
        // The Director does not know of the attachment, so it would never undo it.
        let undone = detach::detach_volume(session, vm, disk);
        let left = undone.err().filter(|left| !detach::is_detached(left));
        let left = left.map(|left| format!("; it may still be attached, because undoing that failed: {left}"));
        context(Error::new(error.kind, format!("{}{}", error.message, left.unwrap_or_default())))
    })
}

/// Tells the Agent of an attached disk, and returns the hint.
fn report(session: &Session, instance: &Instance, disk: &str, device: &str) -> Result<DiskHint, Error> {
    let hint = DiskHint::Text(path(session, &instance.kind, disk, device)?);
    agent::attached(&instance.id, disk, &hint)?;
    Ok(hint)
}

fn free_device(instance: &Instance) -> Result<String, Error> {
    let is_taken = |letter: char| {
        let names = [format!("/dev/sd{letter}"), format!("/dev/xvd{letter}")];
        instance.volumes.iter().any(|volume| names.contains(&volume.device))
    };
    let free = LETTERS.map(char::from).find(|letter| !is_taken(*letter));
    free.map(|letter| format!("/dev/sd{letter}")).ok_or_else(|| {
        Error::cloud(format!(
            "VM `{}` has no free device name from /dev/sdf to /dev/sdp for another disk; detach one first",
            instance.id
        ))
    })
}

/// Requests the attachment. A volume is in use for some time after the end of another instance, and may not yet be
/// available everywhere.
fn request(session: &Session, vm: &str, disk: &str, device: &str) -> Result<(), Error> {
    let start = clock::monotonic();
    let is_new = || clock::monotonic().saturating_sub(start) < UNKNOWN_BUDGET;
    let request = session.ec2().attach_volume(disk, vm, device);
    let look = |refusal: &Refusal<'_>| match refusal.error.code() {
        "InvalidVolume.NotFound" if is_new() => Ok(Outcome::NotDone),
        "InvalidVolume.NotFound" => Err(Error::disk_not_found(disk)),
        "InvalidInstanceID.NotFound" => Err(Error::vm_not_found(vm)),
        "AttachmentLimitExceeded" => Err(Error::cloud(format!(
            "{}; each instance type has a maximum number of volumes and network interfaces: detach one, or use another type",
            refusal.error
        ))),
        "VolumeInUse" => after_refusal(session, vm, disk),
        "IncorrectState" if is_new() => after_refusal(session, vm, disk),
        _ if refusal.error.may_have_succeeded() => after_refusal(session, vm, disk),
        _ => Err(refusal.error.clone().into()),
    };
    certainty::send(&format!("disk `{disk}` to be free"), &request, look)
}

/// Finds out whether an earlier request attached the disk whose answer was lost.
fn after_refusal(session: &Session, vm: &str, disk: &str) -> Result<Outcome, Error> {
    let volume = find(session, disk)?;
    let attachment = volume.as_ref().and_then(|volume| volume.attachment_to(vm));
    // A disk that is being detached can be attached again when that is done.
    let is_attached = attachment.is_some_and(|attachment| attachment.status != "detaching");
    Ok(if is_attached { Outcome::Done } else { Outcome::NotDone })
}

/// Returns the name of the device.
fn wait_until_attached(session: &Session, vm: &str, disk: &str) -> Result<String, Error> {
    let start = clock::monotonic();
    let poll = Poll::for_at_most(STATE_TIMEOUT).with_jitter();
    poll.until(&format!("disk `{disk}` to be attached"), || {
        let volume = find(session, disk)?;
        let attachment = volume.as_ref().and_then(|volume| volume.attachment_to(vm));
        match attachment.map(|attachment| (&*attachment.status, &attachment.device)) {
            Some(("attached", device)) => Ok(Some(device.clone())),
            Some(("attaching" | "busy", _)) => Ok(None),
            // EC2 may not show the attachment everywhere yet.
            None if clock::monotonic().saturating_sub(start) < UNKNOWN_BUDGET => Ok(None),
            found => Err(Error::cloud(format!(
                "expected the attachment to be `attached`, found `{}`; the volume's status is `{}`",
                found.map_or("none", |(status, _)| status),
                volume.as_ref().map_or("not found", |volume: &Volume| &*volume.status)
            ))),
        }
    })
}

/// Returns the path of a disk in the VM.
fn path(session: &Session, kind: &str, disk: &str, device: &str) -> Result<String, Error> {
    let described = if session.properties.describes_instance_types() {
        session.ec2().instance_type(kind).send()?.into_iter().find(|described| described.name == kind)
    } else {
        None
    };
    let has_nvme = described.map_or_else(|| vm::has_nvme_volumes(kind), |described| described.has_nvme_volumes);
    if !has_nvme {
        return Ok(device.to_owned());
    }
    Ok(format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{}", disk.replacen("vol-", "vol", 1)))
}
