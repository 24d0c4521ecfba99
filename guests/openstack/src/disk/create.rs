//! `create_disk`: creates a volume in the zone of the VM that will probably get it.

use serde::Deserialize;
use serde_json::json;
use wasm_cpi_sdk::{Cid, Error, Json, log};

use super::{delete, gib, wait};
use crate::api::create_once;
use crate::session::Session;
use crate::{names, vm};

/// `cloud_properties` of a disk type.
#[derive(Debug, Default, Deserialize)]
pub(super) struct DiskProperties {
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl DiskProperties {
    /// Returns the volume type, or `None` if the cloud chooses it.
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
        return Err(Error::cpi(format!("a disk of {size_mib} MiB is too small; the smallest size is 1024 MiB")));
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
    let volume =
        create_once(&format!("disk {name}"), post, || volumes.volume_named(&name)).map_err(quota_as_no_disk_space)?;
    match wait::until(session, &volume.id, "available") {
        Ok(_) => Ok(volume.id),
        Err(error) => {
            // The Director does not know the disk yet, so it would never delete it.
            if let Err(left) = delete::undo(session, &volume.id) {
                log::error(format_args!("disk {} is left in the cloud: {left}", volume.id));
                return Err(Error::cloud(format!(
                    "creating a disk: {error}; disk `{}` is left in the cloud, because deleting it failed: {left}",
                    volume.id
                )));
            }
            Err(error.context("creating a disk"))
        }
    }
}

fn zone(session: &Session, vm: Option<&str>) -> Result<Option<String>, Error> {
    match vm {
        Some(vm) if !session.properties.ignores_zones() => {
            Ok(vm::find(session, vm)?.and_then(|server| server.zone().map(str::to_owned)))
        }
        _ => Ok(None),
    }
}

/// Returns the error of a request for a volume. Cinder answers 413 if the project's quota is used up.
fn quota_as_no_disk_space(error: wasm_cpi_sdk::http::RequestError) -> Error {
    match error.status() {
        Some(413) => Error::no_disk_space(error.to_string()),
        _ => Error::from(error),
    }
}
