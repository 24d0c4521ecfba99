//! Stemcells: images of EC2. A light stemcell names an image that exists; a heavy one brings its disk.

use wasm_cpi_sdk::{Cid, Error, Json, Metadata};

use crate::session::Session;

pub(crate) fn create(_: &Session, _: &Json, _: &Metadata) -> Result<Cid, Error> {
    Err(Error::not_implemented("create_stemcell"))
}

pub(crate) fn delete(_: &Session, _: &str) -> Result<(), Error> {
    Err(Error::not_implemented("delete_stemcell"))
}

/// Returns the ID of the image of a stemcell. The ID of a light stemcell ends in ` light`.
pub(crate) fn image_id(stemcell: &str) -> &str {
    stemcell.strip_suffix(" light").unwrap_or(stemcell)
}
