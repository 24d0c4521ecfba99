//! The request for one block, made from what the guest asks for all blocks.

use super::BlockUpload;
use crate::image::BlockContent;
use crate::net::error::HttpError;
use crate::net::gate::message::Block;
use crate::net::gate::{GuestBody, GuestRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wasm_cpi_policy::destination::Destination;

/// What the number of a block replaces in the URL.
const INDEX: &str = "{index}";
/// What the digest of a block replaces, as the whole value of a header.
const SHA256: &str = "{sha256-base64}";
/// What the length of a block replaces, as the whole value of a header.
const LENGTH: &str = "{length}";

/// Rejects a URL without the number of the block in its path or query.
pub(super) fn expect_index(url: &str, max_bytes: u64) -> Result<(), HttpError> {
    let of_block = |index: &str| Destination::from_guest(&url.replace(INDEX, index), max_bytes);
    // Other mistakes in the URL are reported when the first block is checked.
    let is_usable = match (of_block("0"), of_block("1")) {
        (Ok(one), Ok(other)) => one.origin() == other.origin() && one.to_url() != other.to_url(),
        _ => url.contains(INDEX),
    };
    if is_usable {
        return Ok(());
    }
    Err(HttpError::invalid(format_args!(
        "the URL of the blocks needs `{INDEX}` in its path or query, and nowhere else, so that each block has its own"
    )))
}

/// Returns origin and path of the blocks for logs; empty if the URL is not valid.
pub(super) fn target(url: &str, max_bytes: u64) -> String {
    let template = Destination::from_guest(url, max_bytes).map(|template| template.to_string());
    template.unwrap_or_default().replace("%7Bindex%7D", INDEX)
}

/// Returns the request of the block at this position of the image.
pub(super) fn request(upload: &BlockUpload, position: u64, content: &BlockContent) -> GuestRequest {
    let mut computed_headers = Vec::new();
    let headers = upload.headers.iter().map(|(name, value)| {
        let computed = match value.as_str() {
            SHA256 => STANDARD.encode(content.sha256),
            LENGTH => content.bytes.len().to_string(),
            _ => return (name.clone(), value.clone()),
        };
        computed_headers.push(name.clone());
        (name.clone(), computed)
    });
    let headers = headers.collect();
    let index = u64::from(upload.first_index) + position;
    GuestRequest {
        method: "PUT".to_owned(),
        url: upload.url.replace(INDEX, &index.to_string()),
        headers,
        body: GuestBody::Block(Block { content: content.clone(), computed_headers }),
        timeout_ms: upload.timeout_ms,
    }
}
