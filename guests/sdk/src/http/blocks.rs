//! Uploads the image in blocks.

use std::time::Duration;

use super::error::request_name;
use super::{BlocksSent, ImagePart, RequestError, Response};
use crate::bindings::bosh::cpi::http as wire;
use crate::host;

/// An upload of the image in blocks, under construction.
#[derive(Clone, Debug)]
pub struct BlockUpload(wire::BlockUpload);

/// Starts an upload of the image of this `create_stemcell` in blocks of `block_bytes`
/// bytes: one PUT for each block. `{index}` in the URL becomes the number of the
/// block, from 0. The operator's grant must say `blocks`.
///
/// ```
/// use wasm_cpi_sdk::fake::{Answer, Fake};
/// use wasm_cpi_sdk::http;
///
/// let host = Fake::new().image([0, 0, 1, 2, 3]).serve(|_| Answer::text(200, "")).install();
/// let upload = http::put_blocks("https://cloud.example/blocks/{index}", 2).skip_zero_blocks();
/// let done = upload.header("x-length", "{length}").send().unwrap();
/// assert_eq!((done.sent, done.skipped), (2, 1));
/// let sent: Vec<String> = host.requests().iter().map(|request| request.url.clone()).collect();
/// assert_eq!(sent, ["https://cloud.example/blocks/1", "https://cloud.example/blocks/2"]);
/// ```
pub fn put_blocks(url: impl Into<String>, block_bytes: u32) -> BlockUpload {
    BlockUpload(wire::BlockUpload {
        url: url.into(),
        headers: vec![],
        image: ImagePart::Whole,
        block_bytes,
        first_index: 0,
        skip_zero_blocks: false,
        timeout_ms: None,
    })
}

impl BlockUpload {
    /// Adds a header to every block. If the grant lists the header under
    /// `block_headers`, the value `{sha256-base64}` becomes the digest of the block,
    /// and `{length}` the number of its bytes.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Uploads one file of the image, which is an archive, instead of the whole image.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>) -> Self {
        self.0.image = ImagePart::Member(name.into());
        self
    }

    /// Sets the number of the first block.
    #[must_use]
    pub fn first_index(mut self, index: u32) -> Self {
        self.0.first_index = index;
        self
    }

    /// Does not send blocks that hold only zeros.
    #[must_use]
    pub fn skip_zero_blocks(mut self) -> Self {
        self.0.skip_zero_blocks = true;
        self
    }

    /// Limits the time of each try to send a block.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.0.timeout_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Uploads the blocks. The host repeats those that fail.
    pub fn send(self) -> Result<BlocksSent, RequestError> {
        let name = request_name("PUT", &self.0.url);
        host::current().http_send_blocks(&self.0).map_err(|error| match error {
            wire::BlocksError::Failed(error) => RequestError::transport(&name, error),
            wire::BlocksError::Refused(response) => Response::new(name, response).unexpected(),
        })
    }
}
