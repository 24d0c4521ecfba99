//! Glance.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use wasm_cpi_sdk::http::{self, ImagePart, Request, RequestError, segment};
use wasm_cpi_sdk::log;

use super::Service;

/// Longer than any upload takes. The time of the call limits it.
const UPLOAD_TIME: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Images(pub(crate) Service);

#[derive(Debug, Deserialize)]
pub(crate) struct Image {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) status: String,
}

impl Images {
    pub(crate) fn image(&self, id: &str) -> Result<Option<Image>, RequestError> {
        self.0.find(&image_path(id))
    }

    /// Returns the request of [`Self::image`], to read it ahead.
    pub(crate) fn image_request(&self, id: &str) -> Option<Request> {
        self.0.request_of(&image_path(id))
    }

    pub(crate) fn create(&self, body: &Value) -> Result<Image, RequestError> {
        let image: Image = self.0.post("/v2/images", body)?;
        log::info(format_args!("created image {} ({})", image.id, body["name"].as_str().unwrap_or_default()));
        Ok(image)
    }

    /// Sends one file of the stemcell's archive, which the host streams. It is
    /// retried only if Glance did not process it; the caller decides on all other
    /// failures.
    pub(crate) fn upload(&self, id: &str, member: &str) -> Result<(), RequestError> {
        let put = http::put(self.0.url(&format!("/v2/images/{}/file", segment(id))))
            .image(ImagePart::Member(member.to_owned()))
            .timeout(UPLOAD_TIME)
            .unrepeatable();
        self.0.change(put, format_args!("uploaded image {id}"))
    }

    pub(crate) fn delete(&self, id: &str) -> Result<bool, RequestError> {
        self.0.delete(&image_path(id), format_args!("image {id}"))
    }
}

fn image_path(id: &str) -> String {
    format!("/v2/images/{}", segment(id))
}
