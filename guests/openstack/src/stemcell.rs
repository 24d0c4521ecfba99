//! Stemcells: images of Glance. A heavy stemcell is uploaded from its archive,
//! which the host streams. A light stemcell names an existing image, which is
//! never deleted.

mod upload;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::{Cid, Error, Json, Metadata, image};

use crate::session::Session;
use crate::tags::{tags, truncate};

/// The suffix of the cloud ID of a light stemcell.
const LIGHT: &str = " light";
/// The file of the root disk in the archive.
const ROOT_IMAGE: &str = "root.img";
const QCOW2: &[u8] = b"QFI\xfb";

/// The properties of an image that bosh-openstack-cpi sets, in Ruby or in Go, each with the key
/// in the stemcell's manifest. Each is a string in Glance. README.md has the same table.
pub(crate) const IMAGE_PROPERTIES: [(&str, &str); 15] = [
    ("version", "version"),
    ("os_type", "os_type"),
    ("os_distro", "os_distro"),
    ("architecture", "architecture"),
    ("auto_disk_config", "auto_disk_config"),
    ("hw_vif_model", "hw_vif_model"),
    ("hw_vif_multiqueue_enabled", "hw_vif_multiqueue_enabled"),
    ("hw_disk_bus_model", "hw_disk_bus_model"),
    ("hw_scsi_model", "hw_scsi_model"),
    ("hw_disk_bus", "hw_disk_bus"),
    ("hypervisor_type", "hypervisor"),
    ("vmware_adaptertype", "vmware_adaptertype"),
    ("vmware_disktype", "vmware_disktype"),
    ("vmware_linked_clone", "vmware_linked_clone"),
    ("vmware_ostype", "vmware_ostype"),
];

pub(crate) fn create(session: &Session, cloud_properties: &Json, metadata: &Metadata) -> Result<Cid, Error> {
    let properties: Map<String, Value> = cloud_properties.parse()?;
    if let Some(id) = text(&properties, "image_id")? {
        return light(session, &id);
    }
    let member = root_image()?;
    let body = body(session, &properties, metadata, &member)?;
    upload::upload(session, body, &member)
}

/// Returns the ID of a stemcell's image.
pub(crate) fn image_of(stemcell: &str) -> &str {
    stemcell.strip_suffix(LIGHT).unwrap_or(stemcell)
}

pub(crate) fn delete(session: &Session, stemcell: &str) -> Result<(), Error> {
    if stemcell.ends_with(LIGHT) {
        return Ok(());
    }
    let images = session.images()?;
    if images.image(stemcell)?.is_none() {
        return Err(Error::stemcell_not_found(stemcell));
    }
    // An image that does not exist now was deleted by this call, whose answer got lost.
    images.delete(stemcell)?;
    Ok(())
}

fn light(session: &Session, id: &str) -> Result<Cid, Error> {
    match session.images()?.image(id)? {
        Some(image) if image.status == "active" => Ok(format!("{}{LIGHT}", image.id)),
        Some(image) => Err(Error::cloud(format!(
            "the light stemcell's image `{id}` cannot be used: expected status `active`, found `{}`",
            image.status
        ))),
        None => Err(Error::cloud(format!(
            "the light stemcell's image `{id}` was not found; check cloud_properties.image_id"
        ))),
    }
}

fn root_image() -> Result<String, Error> {
    let members = image::members()?;
    let found = members.into_iter().find(|member| member.name.trim_start_matches("./") == ROOT_IMAGE);
    found.map(|member| member.name).ok_or_else(|| {
        Error::cpi(format!("the stemcell's archive has no file {ROOT_IMAGE}; use a stemcell for OpenStack"))
    })
}

fn body(
    session: &Session,
    properties: &Map<String, Value>,
    metadata: &Metadata,
    member: &str,
) -> Result<Map<String, Value>, Error> {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    for (name, key) in IMAGE_PROPERTIES {
        if let Some(value) = text(properties, key)? {
            set(name, json!(value));
        }
    }
    let name = match (text(properties, "name")?, text(properties, "version")?) {
        (Some(name), Some(version)) => format!("{name}/{version}"),
        (Some(name), None) => name,
        (None, _) => "BOSH stemcell".to_owned(),
    };
    set("name", json!(truncate(&name)));
    let disk_format = match text(properties, "disk_format")? {
        Some(format) => format,
        None if image::read_member(member, 4)? == QCOW2 => "qcow2".to_owned(),
        None => "raw".to_owned(),
    };
    set("disk_format", json!(disk_format));
    set("container_format", json!(text(properties, "container_format")?.unwrap_or_else(|| "bare".to_owned())));
    set("visibility", json!(if session.properties.public_stemcells() { "public" } else { "private" }));
    let tags = image_tags(properties, metadata)?;
    if !tags.is_empty() {
        set("tags", json!(tags));
    }
    Ok(body)
}

/// Returns the tags of the stemcell's manifest, and those of the Director as `key=value`.
fn image_tags(properties: &Map<String, Value>, metadata: &Metadata) -> Result<BTreeSet<String>, Error> {
    let wrong = || Error::cpi("cloud_properties.tags: expected a list of strings");
    let own = match properties.get("tags") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(own)) => own,
        Some(_) => return Err(wrong()),
    };
    let own = own.iter().map(|tag| tag.as_str().map(truncate).ok_or_else(wrong));
    let given = tags(metadata).into_iter().map(|(key, value)| Ok(truncate(&format!("{key}={value}"))));
    own.chain(given).filter(|tag| tag.as_ref().map_or(true, |tag| !tag.is_empty())).collect()
}

/// Returns a property as the text that Glance expects, or `None` if it is empty. Numbers and
/// booleans are converted.
fn text(properties: &Map<String, Value>, key: &str) -> Result<Option<String>, Error> {
    match properties.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Ok(Some(value.to_string())),
        Some(_) => Err(Error::cpi(format!("cloud_properties.{key}: expected a string, number or boolean"))),
    }
}
