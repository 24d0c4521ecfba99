//! `delete_disk`.

use wasm_cpi_sdk::Error;

use super::{get, wait};
use crate::api::patiently;
use crate::session::Session;

pub(crate) fn delete(session: &Session, disk: &str) -> Result<(), Error> {
    get(session, disk)?;
    let volume = wait::until_settled(session, disk)?;
    if volume.status == "in-use" {
        let servers: Vec<&str> = volume.attachments.iter().filter_map(|place| place.server_id.as_deref()).collect();
        return Err(Error::cloud(format!("disk `{disk}` is attached to `{}`; detach it first", servers.join(", "))));
    }
    remove(session, disk)
}

/// Deletes a volume that nobody knows of yet, once Cinder lets it.
pub(super) fn undo(session: &Session, disk: &str) -> Result<(), Error> {
    wait::until_settled(session, disk)?;
    remove(session, disk)
}

fn remove(session: &Session, disk: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    if let Err(error) = patiently(|| volumes.delete(disk))
        // What was asked for twice is refused the second time while it goes on.
        && volumes.volume(disk)?.is_some_and(|volume| volume.status != "deleting")
    {
        return Err(error.context(format_args!("deleting disk `{disk}`")));
    }
    session.certainly(&format!("disk `{disk}` to be gone"), || match volumes.volume(disk)? {
        None => Ok(Some(())),
        Some(volume) if volume.status == "error_deleting" => {
            Err(Error::cloud(format!("disk `{disk}` cannot be deleted: its state is `{}`", volume.status)))
        }
        Some(_) => Ok(None),
    })
}
