//! Light stemcells: an image that exists, or an encrypted copy of it.

use serde_json::json;
use wasm_cpi_sdk::{Cid, Error};

use super::properties::StemcellProperties;
use super::{LIGHT, image};
use crate::encryption::Encryption;
use crate::session::Session;
use crate::tags::Tags;

pub(super) fn create(session: &Session, properties: &StemcellProperties, tags: &Tags) -> Result<Cid, Error> {
    let encryption = properties.encryption(session)?;
    let id = properties.image_in(session.properties.region())?;
    let found = session.ec2().image(id).send()?.into_iter().find(|image| image.id == id);
    match found.as_ref().map(|image| &*image.state) {
        Some("available") if encryption.encrypted => copy(session, id, &encryption, tags),
        Some("available") => {
            if !tags.is_empty() {
                session.ec2().create_tags(&[id], tags).send()?;
            }
            Ok(format!("{id}{LIGHT}"))
        }
        Some(state) => Err(Error::cloud(format!(
            "the light stemcell's image `{id}` cannot be used: expected state `available`, found `{state}`"
        ))),
        None => Err(Error::cloud(format!(
            "the light stemcell's image `{id}` was not found in region {}; check that the account may use it",
            session.properties.region()
        ))),
    }
}

/// Makes an encrypted copy of an image. It belongs to the stemcell, so its ID is not that of a light one.
fn copy(session: &Session, source: &str, encryption: &Encryption, tags: &Tags) -> Result<Cid, Error> {
    let parameters = json!({
        "SourceRegion": session.properties.region(),
        "SourceImageId": source,
        "Name": format!("Copied from SourceAMI {source}"),
        "Encrypted": true,
        "KmsKeyId": encryption.key,
        "TagSpecification": tags.specification(&["image", "snapshot"]),
        "ClientToken": session.tokens.token("image"),
    });
    let failed = |error: Error, left: Option<String>| {
        let error = Error::new(error.kind, format!("{}{}", error.message, left.unwrap_or_default()));
        error.context(format_args!("making an encrypted copy of image `{source}`"))
    };
    let request = session.ec2().copy_image(&parameters);
    let id = request.send().map_err(|error| {
        // With the same token, the answer to another request names the copy of the first one.
        let undo = || image::undo(session, &request.send()?);
        let left = if error.may_have_succeeded() { undo().err() } else { None };
        failed(error.into(), left.map(|left| format!("; a copy may be left in the cloud: {left}")))
    })?;
    image::wait_until_available(session, &id).map_err(|error| {
        let left = image::undo(session, &id).err();
        let left = left.map(|left| format!("; image `{id}` is left in the cloud, because deleting it failed: {left}"));
        failed(error, left)
    })?;
    Ok(id)
}
