//! `detach_disk`.

use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{Error, ErrorKind, agent, log};

use super::certainty::{self, Outcome, Refusal};
use super::{STATE_TIMEOUT, find};
use crate::session::Session;

pub(crate) fn detach(session: &Session, vm: &str, disk: &str) -> Result<(), Error> {
    match detach_volume(session, vm, disk) {
        // bosh-aws-cpi succeeds for a disk that does not exist, so that the VM's agent settings forget it.
        Err(error) if matches!(error.kind, ErrorKind::DiskNotFound(_)) => {
            log::info(format_args!("disk {disk} does not exist, so it is not attached to VM {vm}"));
        }
        outcome => outcome?,
    }
    agent::detached(vm, disk)
}

/// Returns true if the error says that the disk was not attached, or does not exist.
pub(super) fn is_detached(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::DiskNotFound(_) | ErrorKind::DiskNotAttached(_))
}

pub(super) fn detach_volume(session: &Session, vm: &str, disk: &str) -> Result<(), Error> {
    let context = |error: Error| error.context(format_args!("detaching disk `{disk}` from VM `{vm}`"));
    let request = session.ec2().detach_volume(disk, vm);
    let look = |refusal: &Refusal<'_>| match refusal.error.code() {
        "InvalidVolume.NotFound" => Err(Error::disk_not_found(disk)),
        "InvalidInstanceID.NotFound" => Err(Error::vm_not_found(vm)),
        "IncorrectState" | "InvalidAttachment.NotFound" => after_refusal(session, vm, disk, refusal),
        _ if refusal.error.may_have_succeeded() => after_refusal(session, vm, disk, refusal),
        _ => Err(context(refusal.error.clone().into())),
    };
    certainty::send(&format!("disk `{disk}` to be detached"), &request, look)?;
    wait_until_detached(session, vm, disk).map_err(context)
}

/// Finds out whether the disk is attached to the VM.
fn after_refusal(session: &Session, vm: &str, disk: &str, refusal: &Refusal<'_>) -> Result<Outcome, Error> {
    let Some(volume) = find(session, disk)? else { return Err(Error::disk_not_found(disk)) };
    match volume.attachment_to(vm) {
        Some(attachment) if attachment.status == "detaching" => Ok(Outcome::Done),
        Some(_) => Ok(Outcome::NotDone),
        None if refusal.is_unclear => Ok(Outcome::Done),
        None => Err(Error::disk_not_attached(disk, vm).ok_to_retry(true)),
    }
}

fn wait_until_detached(session: &Session, vm: &str, disk: &str) -> Result<(), Error> {
    let poll = Poll {
        remedy: Some("a disk that the VM still uses stays attached: unmount it in the VM, or stop the VM"),
        ..Poll::for_at_most(STATE_TIMEOUT).with_jitter()
    };
    poll.until(&format!("disk `{disk}` to be detached"), || {
        let volume = find(session, disk)?;
        let is_attached = volume.is_some_and(|volume| volume.attachment_to(vm).is_some());
        Ok((!is_attached).then_some(()))
    })
}
