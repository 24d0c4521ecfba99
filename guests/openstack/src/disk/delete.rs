//! `delete_disk`.

use wasm_cpi_sdk::Error;

use super::{deletion, get, wait};
use crate::session::Session;

pub(crate) fn delete(session: &Session, disk: &str) -> Result<(), Error> {
    let mut volume = get(session, disk)?;
    if wait::is_changing(&volume) {
        volume = wait::until_settled(session, disk)?;
    }
    if volume.status == "in-use" {
        let servers: Vec<&str> =
            volume.attachments.iter().filter_map(|attachment| attachment.server_id.as_deref()).collect();
        return Err(Error::cloud(format!("disk `{disk}` is attached to `{}`; detach it first", servers.join(", "))));
    }
    delete_volume(session, disk)
}

/// Deletes a volume that the Director does not know yet, as soon as Cinder allows it.
pub(super) fn undo(session: &Session, disk: &str) -> Result<(), Error> {
    wait::until_settled(session, disk)?;
    delete_volume(session, disk)
}

fn delete_volume(session: &Session, disk: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    let status = || Ok(volumes.volume(disk)?.map(|volume| volume.status));
    deletion::delete_and_wait(session, &format!("disk `{disk}`"), || volumes.delete(disk), status)
}
