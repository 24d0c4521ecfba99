//! The limits for bodies of requests and responses.

use super::{Gate, GuestBody, GuestResponse};
use crate::image::ImagePart;
use crate::net::error::HttpError;

pub(super) const NO_IMAGE: &str =
    "this call has no image; only `create_stemcell` has one, for guests whose needs declare `image`";

const TOTAL: &str = "the sum of all bodies of the call";

impl Gate {
    /// Returns the body as bytes, or the part of the image to send instead. Rejects a body above
    /// the limits.
    pub(super) fn bounded_body(&self, body: GuestBody) -> Result<(Vec<u8>, Option<ImagePart>), HttpError> {
        let bytes = match body {
            GuestBody::None => return Ok((Vec::new(), None)),
            // Rejected here, so that no name is resolved and no login is made for it.
            GuestBody::Image(_) if self.image.is_none() => return Err(HttpError::invalid(NO_IMAGE)),
            GuestBody::Image(part) => return Ok((Vec::new(), Some(part))),
            GuestBody::Bytes(bytes) => bytes,
        };
        let length = bytes.len() as u64;
        if length > self.limits.http_request_mib.saturating_mul(1024 * 1024) {
            return Err(HttpError::limit("http_request_mib", self.limits.http_request_mib, "the body of a request"));
        }
        if length > self.record.bytes_left(&self.limits) {
            return Err(HttpError::limit("http_total_mib", self.limits.http_total_mib, TOTAL));
        }
        Ok((bytes, None))
    }

    /// Counts the response. Rejects it if all bodies of the call together are too large then.
    pub(super) fn bounded_response(&self, response: GuestResponse, received: u64) -> Result<GuestResponse, HttpError> {
        if self.record.count_response(response.body.len() as u64, received, &self.limits) {
            return Ok(response);
        }
        Err(HttpError::limit("http_total_mib", self.limits.http_total_mib, TOTAL))
    }
}
