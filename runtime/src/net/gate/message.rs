//! A guest's request and its response, as both cross the gate.

use crate::image::ImagePart;
use crate::net::error::quoted;
use std::fmt;

/// As the guest wrote it.
pub struct OutboundRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: OutboundBody,
    pub timeout_ms: Option<u32>,
}

impl fmt::Debug for OutboundRequest {
    /// URL, headers and body are the guest's, and may hold anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutboundRequest({})", quoted(&self.method))
    }
}

pub enum OutboundBody {
    None,
    Bytes(Vec<u8>),
    Image(ImagePart),
}

/// As the guest may see it.
#[derive(Debug)]
pub struct InboundResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}
