//! Stemcells: images of EC2. A light stemcell names an image that exists; a heavy one brings its disk.

mod heavy;
mod image;
mod light;
mod properties;
mod registration;

use wasm_cpi_sdk::{Cid, Error, Json, Metadata, log};

use crate::session::Session;
use properties::StemcellProperties;

/// The suffix of the cloud ID of a light stemcell.
const LIGHT: &str = " light";

pub(crate) fn create(session: &Session, cloud_properties: &Json, metadata: &Metadata) -> Result<Cid, Error> {
    let properties = StemcellProperties::read(session, cloud_properties)?;
    let tags = properties.tags(metadata);
    if properties.is_light() {
        light::create(session, &properties, &tags)
    } else {
        heavy::create(session, &properties, &tags)
    }
}

/// Deletes an image that this CPI created, and its snapshots. The image of a light stemcell stays.
pub(crate) fn delete(session: &Session, stemcell: &str) -> Result<(), Error> {
    if stemcell.ends_with(LIGHT) {
        log::info(format_args!("the image of the light stemcell {stemcell} is not deleted"));
        return Ok(());
    }
    let found = session.ec2().image(stemcell).send()?;
    let Some(found) = found.into_iter().find(|image| image.id == stemcell) else {
        return Err(Error::stemcell_not_found(stemcell));
    };
    image::delete(session, &found).map_err(|error| error.context(format_args!("deleting stemcell `{stemcell}`")))
}

/// Returns the ID of the image of a stemcell. The ID of a light stemcell ends in ` light`.
pub(crate) fn image_id(stemcell: &str) -> &str {
    stemcell.strip_suffix(LIGHT).unwrap_or(stemcell)
}
