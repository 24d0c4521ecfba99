//! A guest's request and its response.

use crate::image::{BlockContent, ImagePart};
use crate::net::error::quoted;
use crate::net::http_record::Reservation;
use reqwest::Method;
use std::borrow::Cow;
use std::fmt;
use std::time::Instant;
use wasm_cpi_policy::Operation;
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
    Parts(Vec<GuestBodyPart>),
    /// One block of an upload in blocks.
    Block(Block),
}

/// One part of a body that consists of several.
pub enum GuestBodyPart {
    Bytes(Vec<u8>),
    Image(ImagePart),
}

impl GuestBody {
    /// Returns true if a part of the image is sent.
    pub fn has_image(&self) -> bool {
        match self {
            GuestBody::None | GuestBody::Bytes(_) => false,
            GuestBody::Image(_) | GuestBody::Block(_) => true,
            GuestBody::Parts(parts) => parts.iter().any(|part| matches!(part, GuestBodyPart::Image(_))),
        }
    }
}

/// A block of the image, and the names of the headers that the host computed from it.
pub struct Block {
    pub(super) content: BlockContent,
    pub(super) computed_headers: Vec<String>,
}

/// What a request sends of the image. The policy judges such a request by an empty body.
pub(super) enum ImageContent {
    Part(ImagePart),
    /// Several parts, of which one is an image.
    Parts(Vec<GuestBodyPart>),
    Block(Block),
}

impl ImageContent {
    /// Returns the bytes that the guest wrote around the image.
    pub(super) fn guest_bytes(&self) -> Vec<u8> {
        guest_bytes(self.parts())
    }

    /// Returns the number of these bytes.
    pub(super) fn guest_length(&self) -> u64 {
        slices(self.parts()).map(|bytes| bytes.len() as u64).sum()
    }

    /// Returns the block, if one block of an upload in blocks is sent.
    pub(super) fn block(&self) -> Option<&Block> {
        if let ImageContent::Block(block) = self { Some(block) } else { None }
    }

    fn parts(&self) -> &[GuestBodyPart] {
        if let ImageContent::Parts(parts) = self { parts } else { &[] }
    }
}

/// Returns the bytes of all parts that are no image.
pub(super) fn guest_bytes(parts: &[GuestBodyPart]) -> Vec<u8> {
    slices(parts).collect::<Vec<_>>().concat()
}

fn slices(parts: &[GuestBodyPart]) -> impl Iterator<Item = &[u8]> {
    parts.iter().filter_map(|part| match part {
        GuestBodyPart::Bytes(bytes) => Some(bytes.as_slice()),
        GuestBodyPart::Image(_) => None,
    })
}

/// A request whose form and size are valid.
pub(super) struct ParsedRequest {
    pub(super) method: Method,
    pub(super) destination: Destination,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// What is sent of the image, in place of the body.
    pub(super) image: Option<ImageContent>,
    /// The bytes of the guest's body, as they count against `http_total_mib`.
    pub(super) reserved: Reservation,
    /// True if `fields` of the policy list everything that the body holds.
    pub(super) body_is_listed: bool,
    /// The operation of the request, once a grant allows it that lists operations.
    pub(super) operation: Option<Operation>,
    /// The end of the request's time.
    pub(super) deadline: Instant,
}

impl ParsedRequest {
    /// Returns all bytes of the body that the guest wrote.
    pub(super) fn guest_bytes(&self) -> Cow<'_, [u8]> {
        self.image.as_ref().map_or(Cow::Borrowed(&self.body), |image| Cow::Owned(image.guest_bytes()))
    }
}

/// A response as the guest may see it.
#[derive(Debug)]
pub struct GuestResponse {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}
