//! `delete_disk`.

use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{Error, ErrorKind};

use super::STATE_TIMEOUT;
use super::certainty::{self, Outcome};
use crate::session::Session;
use crate::tags::Tags;

/// The name of a volume that is not waited for (`fast_path_delete`).
const NAME_OF_DELETED: &str = "to be deleted";

pub(crate) fn delete(session: &Session, disk: &str) -> Result<(), Error> {
    request(session, disk)?;
    if session.properties.deletes_fast() {
        let mut tags = Tags::default();
        tags.insert("Name", NAME_OF_DELETED);
        // The volume may be gone already, so its absence is not waited out.
        return match session.ec2().create_tags(&[disk], &tags).passing(&[]).send() {
            Err(error) if error.is("InvalidVolume.NotFound") => Ok(()),
            outcome => Ok(outcome?),
        };
    }
    wait_until_deleted(session, disk)
}

/// Deletes a volume that the Director does not know yet. Succeeds if it does not exist.
pub(super) fn undo(session: &Session, disk: &str) -> Result<(), Error> {
    match request(session, disk) {
        Err(error) if matches!(error.kind, ErrorKind::DiskNotFound(_)) => Ok(()),
        outcome => outcome,
    }
}

/// Requests the deletion. A volume of an instance that just ended is in use for some time.
fn request(session: &Session, disk: &str) -> Result<(), Error> {
    let request = session.ec2().delete_volume(disk);
    certainty::send(&format!("disk `{disk}` to be free"), &request, |refusal| match refusal.error.code() {
        "InvalidVolume.NotFound" if refusal.is_unclear => Ok(Outcome::Done),
        "InvalidVolume.NotFound" => Err(Error::disk_not_found(disk)),
        "VolumeInUse" | "IncorrectState" => Ok(Outcome::NotDone),
        _ if refusal.error.may_have_succeeded() => Ok(Outcome::NotDone),
        _ => Err(Error::from(refusal.error.clone()).context(format_args!("deleting disk `{disk}`"))),
    })
}

fn wait_until_deleted(session: &Session, disk: &str) -> Result<(), Error> {
    let query = session.ec2().volume(disk);
    let poll = Poll::for_at_most(STATE_TIMEOUT).with_jitter();
    poll.until(&format!("disk `{disk}` to be deleted"), || match query.send() {
        Ok(found) => Ok(found.iter().all(|volume| volume.status == "deleted").then_some(())),
        Err(error) if error.is("InvalidVolume.NotFound") => Ok(Some(())),
        Err(error) => Err(error.into()),
    })
}
