//! Waits for volumes.

use wasm_cpi_sdk::Error;

use crate::api::Volume;
use crate::session::Session;

/// States that a volume leaves by itself.
const TRANSITIONAL: [&str; 10] = [
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

pub(super) fn is_changing(volume: &Volume) -> bool {
    TRANSITIONAL.contains(&volume.status.as_str())
}

/// Waits until the volume leaves all transitional states, and returns it.
pub(super) fn until_settled(session: &Session, disk: &str) -> Result<Volume, Error> {
    let volumes = session.volumes()?;
    session.wait_until_certain(&format!("disk `{disk}` to leave its transitional state"), || {
        let volume = volumes.volume(disk)?.ok_or_else(|| Error::disk_not_found(disk))?;
        Ok((!is_changing(&volume)).then_some(volume))
    })
}

/// Waits until the status of the volume is `wanted`.
pub(super) fn until(session: &Session, disk: &str, wanted: &str) -> Result<Volume, Error> {
    let volumes = session.volumes()?;
    session.poll().until(&format!("disk `{disk}` to be {wanted}"), || {
        let volume = volumes.volume(disk)?.ok_or_else(|| Error::disk_not_found(disk))?;
        match volume.status.as_str() {
            status if status == wanted => Ok(Some(volume)),
            status if status.starts_with("error") => Err(Error::cloud(format!(
                "disk `{disk}` failed: expected status `{wanted}`, found `{status}`; look at `openstack volume show \
                 {disk}` and at Cinder's log"
            ))),
            _ => Ok(None),
        }
    })
}
