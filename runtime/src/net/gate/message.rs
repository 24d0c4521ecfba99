//! A guest's request and its response.

use crate::image::ImagePart;
use crate::net::error::quoted;
use reqwest::Method;
use std::fmt;
use std::time::Instant;
use wasm_cpi_policy::destination::Destination;

/// A request as the guest wrote it.
pub struct GuestRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: GuestBody,
    pub timeout_ms: Option<u32>,
}

impl fmt::Debug for GuestRequest {
    /// Shows the method only: URL, headers and body come from the guest and may hold anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestRequest({})", quoted(&self.method))
    }
}

/// The body of a guest's request.
pub enum GuestBody {
    None,
    Bytes(Vec<u8>),
    Image(ImagePart),
}

/// A request whose form and size are valid.
pub(super) struct ParsedRequest {
    pub(super) method: Method,
    pub(super) destination: Destination,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The part of the image that is sent instead of the body.
    pub(super) image_part: Option<ImagePart>,
    /// True if `fields` of the policy judged the body.
    pub(super) body_is_judged: bool,
    /// The end of the request's time.
    pub(super) deadline: Instant,
}

/// A response as the guest may see it.
#[derive(Debug)]
pub struct GuestResponse {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}
