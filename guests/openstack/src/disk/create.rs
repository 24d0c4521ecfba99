//! `create_disk`: a volume near the VM that will most likely get it.

use serde::Deserialize;
use serde_json::json;
use wasm_cpi_sdk::{Cid, Error, Json, log};

use super::{delete, gib, wait};
use crate::api::once;
use crate::session::Session;
use crate::{names, vm};

/// `cloud_properties` of a disk type.
#[derive(Debug, Default, Deserialize)]
pub(super) struct DiskProperties {
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl DiskProperties {
    /// The volume type, if the cloud is not to choose.
    pub(super) fn volume_type(&self, session: &Session) -> Option<String> {
        let of_disk = self.kind.as_ref().filter(|name| !name.is_empty());
        of_disk.or(session.properties.default_volume_type.as_ref().filter(|name| !name.is_empty())).cloned()
    }
}

pub(crate) fn create(
    session: &Session,
    size_mib: u64,
    cloud_properties: &Json,
    vm: Option<&str>,
) -> Result<Cid, Error> {
    let properties: DiskProperties = cloud_properties.parse()?;
    if size_mib < 1024 {
        return Err(Error::cpi(format!("a disk of {size_mib} MiB is too small; the least is 1024 MiB")));
    }
    let name = names::unique("volume");
    let mut body = json!({"name": name, "description": "", "size": gib(size_mib)});
    if let Some(kind) = properties.volume_type(session) {
        body["volume_type"] = json!(kind);
    }
    if let Some(zone) = zone(session, vm)? {
        body["availability_zone"] = json!(zone);
    }
    let volumes = session.volumes()?;
    let post = || volumes.create(&body);
    let volume = once(&format!("disk {name}"), post, || volumes.volume_named(&name)).map_err(no_room)?;
    match wait::until(session, &volume.id, "available") {
        Ok(_) => Ok(volume.id),
        Err(error) => {
            // Nobody knows of the disk yet, so nobody would delete it.
            if let Err(left) = delete::undo(session, &volume.id) {
                log::error(format_args!("disk {} is left behind: {left}", volume.id));
                return Err(Error::cloud(format!("{error}; and deleting it failed: {left}")));
            }
            Err(error.context("creating a disk"))
        }
    }
}

fn zone(session: &Session, vm: Option<&str>) -> Result<Option<String>, Error> {
    match vm {
        Some(vm) if !session.properties.zones_are_apart() => {
            Ok(vm::find(session, vm)?.and_then(|server| server.zone().map(str::to_owned)))
        }
        _ => Ok(None),
    }
}

/// Cinder answers 413 where volumes or gigabytes of the project are used up.
fn no_room(error: wasm_cpi_sdk::http::Error) -> Error {
    match error.status() {
        Some(413) => Error::no_disk_space(error.to_string()),
        _ => Error::from(error),
    }
}
