//! `http.send-blocks` of a [`Fake`]: every block becomes a PUT with its bytes, which the
//! answers of the fake answer. No block is repeated. What the real host refuses with the
//! default limits is refused here, too.

use super::Fake;
use crate::bindings::bosh::cpi::http::{
    BlockUpload, BlocksError, BlocksSent, Body, Denial, Error, ErrorKind, ImagePart, Request,
};
use crate::host::Host;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// What the number of a block replaces in the URL.
const INDEX: &str = "{index}";

/// The memory for blocks in MiB: the default of the limit `http_blocks_mib`.
const MEMORY: u32 = 64;

/// The blocks that must fit into the memory: one is sent, and two are read ahead.
const LEAST_BLOCKS: u32 = 3;

/// The longest `etag` that the guest gets.
const MAX_ETAG: usize = 1024;

impl Fake {
    pub(super) fn send_blocks(&self, upload: &BlockUpload) -> Result<BlocksSent, BlocksError> {
        let bytes = self.bytes_to_send(upload).map_err(BlocksError::Failed)?;
        let mut result = BlocksSent { sent: 0, skipped: 0, sha256_of_digests: String::new(), etags: vec![] };
        let mut digests = vec![];
        for (index, block) in (upload.first_index..).zip(bytes.chunks(upload.block_bytes as usize)) {
            if upload.skip_zero_blocks && block.iter().all(|byte| *byte == 0) {
                result.skipped += 1;
                continue;
            }
            let response = self.http_send(&request(upload, index, block)).map_err(|error| {
                // Other blocks were sent, even if this one was not.
                BlocksError::Failed(Error { sent: error.sent || result.sent > 0, ..error })
            })?;
            if !(200..300).contains(&response.status) {
                return Err(BlocksError::Refused(response));
            }
            let etag = response.headers.into_iter().find(|(name, value)| name == "etag" && value.len() <= MAX_ETAG);
            result.etags.push(etag.map(|(_, value)| value).unwrap_or_default());
            result.sent += 1;
            digests.extend(Sha256::digest(block));
        }
        result.sha256_of_digests = STANDARD.encode(Sha256::digest(&digests));
        Ok(result)
    }

    /// Returns the bytes of the upload. Rejects what the host refuses before it sends a block. A call that is
    /// ending can upload the image, unlike read it.
    fn bytes_to_send(&self, upload: &BlockUpload) -> Result<Vec<u8>, Error> {
        check_url(&upload.url)?;
        if upload.block_bytes == 0 {
            return Err(invalid("the size of a block is 0; set the size that the server expects"));
        }
        if MEMORY * 1024 * 1024 / upload.block_bytes < LEAST_BLOCKS {
            let message = format!("the memory for {LEAST_BLOCKS} blocks is above the limit of {MEMORY} MiB");
            return Err(Error { kind: ErrorKind::Limit("http_blocks_mib".to_owned()), message, sent: false });
        }
        let state = self.state();
        if let Some(needs) = &state.needs {
            // Also if all blocks are left out.
            let first = request(upload, upload.first_index, &[]);
            if let Some(message) = needs.refusal(&first, &state.properties) {
                return Err(Error { kind: ErrorKind::Denied(Denial::Undeclared), message, sent: false });
            }
        }
        let is_declared = state.needs.as_ref().is_none_or(|needs| needs.has("image"));
        let whole = state.image.as_ref().filter(|_| is_declared).ok_or_else(|| {
            invalid("this call has no image; only `create_stemcell` has one, for guests whose needs declare `image`")
        })?;
        let bytes = match &upload.image {
            ImagePart::Whole => whole,
            ImagePart::Member(name) => {
                let found = state.members.iter().find(|(other, _)| other == name);
                found.map(|(_, bytes)| bytes).ok_or_else(|| invalid(&format!("the image has no member `{name}`")))?
            }
        };
        let count = bytes.len().div_ceil(upload.block_bytes as usize) as u64;
        if u64::from(upload.first_index) + count > u64::from(u32::MAX) {
            return Err(invalid("the last blocks have no number of 32 bits; use larger blocks"));
        }
        Ok(bytes.clone())
    }
}

/// Rejects a URL without the number of the block in its path or query.
fn check_url(url: &str) -> Result<(), Error> {
    let sent = url.split('#').next().unwrap_or_default();
    let authority = sent.find("://").map_or(0, |at| at + 3);
    let path = sent[authority..].find(['/', '?', '\\']).map_or(sent.len(), |at| authority + at);
    if !sent[..path].contains(INDEX) && sent[path..].contains(INDEX) {
        return Ok(());
    }
    Err(invalid(
        "the URL of the blocks needs `{index}` in its path or query, and nowhere else, so that each block has its own",
    ))
}

fn invalid(message: &str) -> Error {
    Error { kind: ErrorKind::InvalidRequest, message: format!("guest: {message}"), sent: false }
}

fn request(upload: &BlockUpload, index: u32, block: &[u8]) -> Request {
    let expand = |value: &String| match value.as_str() {
        "{sha256-base64}" => STANDARD.encode(Sha256::digest(block)),
        "{length}" => block.len().to_string(),
        _ => value.clone(),
    };
    Request {
        method: "PUT".to_owned(),
        url: upload.url.replace(INDEX, &index.to_string()),
        headers: upload.headers.iter().map(|(name, value)| (name.clone(), expand(value))).collect(),
        body: Body::Bytes(block.to_vec()),
        timeout_ms: upload.timeout_ms,
    }
}
