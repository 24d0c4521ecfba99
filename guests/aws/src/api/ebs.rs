//! EBS direct: snapshots that are written block by block. It is a JSON API, with the codes of its errors in a header.

mod exchange;

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use wasm_cpi_sdk::http::{self, BlocksSent, Cause, RequestError, segment};
use wasm_cpi_sdk::log;
use wasm_cpi_sdk::retry::{Repeat, Retry};

use super::ApiError;
use exchange::send;

/// The time in which the blocks are sent again from the first one.
const BLOCKS_BUDGET: Duration = Duration::from_secs(3 * 60);

/// The text of answers to too many requests.
const RATE_EXCEEDED: &str = "Rate exceeded";

/// The operations of EBS direct.
pub(crate) struct Ebs {
    url: String,
}

/// A snapshot that can be written.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Started {
    #[serde(rename = "SnapshotId")]
    pub(crate) id: String,
    #[serde(rename = "BlockSize")]
    pub(crate) block_bytes: u32,
}

impl Ebs {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    /// Starts a snapshot. The body has a `ClientToken`.
    pub(crate) fn start_snapshot(&self, body: &Value) -> Result<Started, ApiError> {
        let request = http::post(format!("{}/snapshots", self.url)).json(body);
        let started: Started =
            send("StartSnapshot", &request, |response| response.json()).map_err(|failure| failure.error)?;
        log::info(format_args!("started snapshot {}", started.id));
        Ok(started)
    }

    /// Writes a file of the stemcell image into a snapshot, and leaves out blocks of zeros. All blocks are sent again if
    /// that fails soon: EBS may not know the snapshot everywhere yet.
    pub(crate) fn put_blocks(&self, snapshot: &Started, member: &str) -> Result<BlocksSent, ApiError> {
        let url = format!("{}/snapshots/{}/blocks/{{index}}", self.url, segment(&snapshot.id));
        let upload = http::put_blocks(url, snapshot.block_bytes)
            .header("x-amz-data-length", "{length}")
            .header("x-amz-checksum", "{sha256-base64}")
            .header("x-amz-checksum-algorithm", "SHA256")
            .member(member)
            .skip_zero_blocks();
        let decide = |error: &RequestError| match &error.cause {
            Cause::Status { status: 429, .. } => Repeat::Throttled,
            Cause::Status { status: 400, body, .. } if is_throttled(body) => Repeat::Throttled,
            Cause::Status { status: 404 | 500.., .. } | Cause::Transport { .. } => Repeat::Later,
            _ => Repeat::Never,
        };
        let sent = Retry::for_at_most(BLOCKS_BUDGET).run(decide, || upload.clone().send());
        if let Ok(sent) = &sent {
            log::info(format_args!("wrote {} blocks into snapshot {}", sent.sent, snapshot.id));
        }
        sent.map_err(|error| {
            // The error of an upload has no headers, one of which has the code. The same credentials started the snapshot, so
            // what they lack is this right.
            let code = (error.status() == Some(403)).then_some("AccessDeniedException");
            ApiError::of_json("PutSnapshotBlock", error, code, None)
        })
    }

    /// Completes a snapshot with these blocks. EBS compares their number and their digests.
    pub(crate) fn complete_snapshot(&self, id: &str, blocks: &BlocksSent) -> Result<(), ApiError> {
        let mut request = http::post(format!("{}/snapshots/completion/{}", self.url, segment(id)))
            .header("x-amz-changedblockscount", blocks.sent.to_string());
        if blocks.sent > 0 {
            request = request
                .header("x-amz-checksum", blocks.sha256_of_digests.as_str())
                .header("x-amz-checksum-algorithm", "SHA256")
                .header("x-amz-checksum-aggregation-method", "LINEAR");
        }
        match send("CompleteSnapshot", &request, |_| Ok(())) {
            // After a lost answer, EBS may refuse the repetition. The status of the snapshot decides.
            Err(failure) if failure.is_unclear && failure.error.status() == Some(400) => Ok(()),
            outcome => outcome.map_err(|failure| failure.error),
        }
        .inspect(|()| log::info(format_args!("completed snapshot {id}")))
    }
}

/// Returns true if the answer to a block says that there were too many requests. EBS says that with status 400, after
/// which the host does not repeat a block.
fn is_throttled(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let has = |name: &str, part: &str| body[name].as_str().is_some_and(|text| text.contains(part));
    has("Reason", "THROTTLE") || has("Message", RATE_EXCEEDED)
}
