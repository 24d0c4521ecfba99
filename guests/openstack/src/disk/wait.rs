//! Waiting for volumes.

use wasm_cpi_sdk::Error;

use crate::api::Volume;
use crate::session::Session;

/// What a volume passes through: it becomes something else by itself.
const PASSING: [&str; 10] = [
    "creating",
    "reserved",
    "downloading",
    "detaching",
    "attaching",
    "extending",
    "retyping",
    "backing-up",
    "restoring-backup",
    "uploading",
];

pub(super) fn is_passing(volume: &Volume) -> bool {
    PASSING.contains(&volume.status.as_str())
}

/// Waits while the volume passes from one state to another, and answers what it
/// became.
pub(super) fn until_settled(session: &Session, disk: &str) -> Result<Volume, Error> {
    let volumes = session.volumes()?;
    session.certainly(&format!("disk `{disk}` to settle"), || {
        let volume = volumes.volume(disk)?.ok_or_else(|| Error::disk_not_found(disk))?;
        Ok((!is_passing(&volume)).then_some(volume))
    })
}

/// Waits until the volume has gone from all states in between to `wanted`.
pub(super) fn until(session: &Session, disk: &str, wanted: &str) -> Result<Volume, Error> {
    let volumes = session.volumes()?;
    session.poll().until(&format!("disk `{disk}` to be {wanted}"), || {
        let volume = volumes.volume(disk)?.ok_or_else(|| Error::disk_not_found(disk))?;
        match volume.status.as_str() {
            status if status == wanted => Ok(Some(volume)),
            status if status.starts_with("error") => {
                Err(Error::cloud(format!("disk `{disk}` is in state `{status}` instead of `{wanted}`")))
            }
            _ => Ok(None),
        }
    })
}
