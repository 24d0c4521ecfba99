//! Applies the limits for the bodies of requests and responses, and counts their bytes.

use super::message::{GuestBodyPart, ImageContent, guest_bytes};
use super::{Gate, GuestBody, GuestResponse};
use crate::net::error::HttpError;
use crate::net::http_record::Reservation;
use wasm_cpi_checks::Check;

pub(super) const NO_IMAGE: &str =
    "this call has no image; only `create_stemcell` has one, for guests whose needs declare `image`";

const TOTAL_TEXT: &str = "the sum of all bodies of the call";

/// A body within the limits.
pub(super) struct BoundedBody {
    pub(super) bytes: Vec<u8>,
    /// What is sent of the image, in place of the bytes.
    pub(super) image: Option<ImageContent>,
    pub(super) reserved: Reservation,
}

/// The most parts of a body: a form has three for each file.
const MAX_PARTS: usize = 64;

/// Returns the parts of a body as bytes if none is an image. Rejects too many parts, and more than one image: each
/// takes a thread that reads it.
fn content_of(parts: Vec<GuestBodyPart>) -> Result<(Vec<u8>, Option<ImageContent>), HttpError> {
    let (count, images) = (parts.len(), parts.iter().filter(|part| matches!(part, GuestBodyPart::Image(_))).count());
    Check::BodyParts.ensure(count <= MAX_PARTS, || {
        HttpError::invalid(format_args!("the body has {count} parts; at most {MAX_PARTS} can be"))
    })?;
    Check::BodyParts.ensure(images <= 1, || {
        HttpError::invalid(format_args!("the body has {images} parts that are an image; at most one part can be"))
    })?;
    Ok(match images {
        0 => (guest_bytes(&parts), None),
        _ => (Vec::new(), Some(ImageContent::Parts(parts))),
    })
}

impl Gate {
    /// Returns the body as bytes, or what to send of the image instead, and reserves its bytes. Rejects a
    /// body above the limits.
    pub(super) fn reserve_body(&self, body: GuestBody) -> Result<BoundedBody, HttpError> {
        // Rejected here, so that no name is resolved and no login is made for it.
        if body.has_image() && self.image.is_none() {
            return Err(HttpError::invalid(NO_IMAGE));
        }
        let (bytes, image) = match body {
            GuestBody::None => (Vec::new(), None),
            GuestBody::Bytes(bytes) => (bytes, None),
            GuestBody::Image(part) => (Vec::new(), Some(ImageContent::Part(part))),
            GuestBody::Block(block) => (Vec::new(), Some(ImageContent::Block(block))),
            GuestBody::Parts(parts) => content_of(parts)?,
        };
        let length = bytes.len() as u64 + image.as_ref().map_or(0, ImageContent::guest_length);
        if length > self.limits.http_request_mib.saturating_mul(1024 * 1024) {
            return Err(HttpError::limit("http_request_mib", self.limits.http_request_mib, "the body of a request"));
        }
        let reserved = self.record.reserve(length, &self.limits);
        let reserved =
            reserved.ok_or_else(|| HttpError::limit("http_total_mib", self.limits.http_total_mib, TOTAL_TEXT))?;
        Ok(BoundedBody { bytes, image, reserved })
    }

    /// Counts the response. Rejects it if all bodies of the call together are too large then.
    pub(super) fn count_response(&self, response: GuestResponse, received: u64) -> Result<GuestResponse, HttpError> {
        self.count_shown_bytes(response.body.len() as u64, received).map(|()| response)
    }

    /// Counts `shown` bytes, which the guest gets, against `http_total_mib`. `received` is what the server sent.
    pub(super) fn count_shown_bytes(&self, shown: u64, received: u64) -> Result<(), HttpError> {
        if self.record.count_response(shown, received, &self.limits) {
            return Ok(());
        }
        Err(HttpError::limit("http_total_mib", self.limits.http_total_mib, TOTAL_TEXT))
    }
}
