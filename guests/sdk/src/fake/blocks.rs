//! `http.send-blocks` of a [`Fake`]: every block becomes a PUT with its bytes, which the
//! answers of the fake answer. No block is repeated.

use super::Fake;
use super::host::digest;
use crate::bindings::bosh::cpi::http::{
    BlockUpload, BlocksError, BlocksSent, Body, Error, ErrorKind, ImagePart, Request,
};
use crate::bindings::bosh::cpi::image;
use crate::host::Host;

impl Fake {
    pub(super) fn send_blocks(&self, upload: &BlockUpload) -> Result<BlocksSent, BlocksError> {
        let invalid =
            |message: String| BlocksError::Failed(Error { kind: ErrorKind::InvalidRequest, message, sent: false });
        let bytes =
            self.bytes_of(&upload.image).map_err(|error| invalid(format!("the image cannot be sent: {error:?}")))?;
        if upload.block_bytes == 0 {
            return Err(invalid("the size of a block is 0".to_owned()));
        }
        let mut result = BlocksSent { sent: 0, skipped: 0, sha256_of_digests: String::new(), etags: vec![] };
        let mut digests = String::new();
        for (index, block) in (upload.first_index..).zip(bytes.chunks(upload.block_bytes as usize)) {
            if upload.skip_zero_blocks && block.iter().all(|byte| *byte == 0) {
                result.skipped += 1;
                continue;
            }
            let response = self.http_send(&request(upload, index, block)).map_err(BlocksError::Failed)?;
            if !(200..300).contains(&response.status) {
                return Err(BlocksError::Refused(response));
            }
            let etag = response.headers.into_iter().find(|(name, _)| name == "etag");
            result.etags.push(etag.map(|(_, value)| value).unwrap_or_default());
            result.sent += 1;
            digests.push_str(&digest(block));
        }
        result.sha256_of_digests = digest(digests.as_bytes());
        Ok(result)
    }

    fn bytes_of(&self, part: &ImagePart) -> Result<Vec<u8>, image::Error> {
        let state = self.state();
        let whole = state.image()?;
        match part {
            ImagePart::Whole => Ok(whole.to_vec()),
            ImagePart::Member(name) => {
                let found = state.members.iter().find(|(other, _)| other == name);
                found
                    .map(|(_, bytes)| bytes.clone())
                    .ok_or_else(|| image::Error::Invalid(format!("the image has no member `{name}`")))
            }
        }
    }
}

fn request(upload: &BlockUpload, index: u32, block: &[u8]) -> Request {
    let expand = |value: &String| match value.as_str() {
        "{sha256-base64}" => digest(block),
        "{length}" => block.len().to_string(),
        _ => value.clone(),
    };
    Request {
        method: "PUT".to_owned(),
        url: upload.url.replace("{index}", &index.to_string()),
        headers: upload.headers.iter().map(|(name, value)| (name.clone(), expand(value))).collect(),
        body: Body::Bytes(block.to_vec()),
        timeout_ms: upload.timeout_ms,
    }
}
