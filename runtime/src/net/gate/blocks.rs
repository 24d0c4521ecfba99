//! Uploads a part of the image in blocks: one PUT for each block, several at once.
//!
//! Every block passes the same checks as a single request, and every response is screened. The image
//! is read once and in order. Only the blocks that are being sent are in memory.

use super::bodies::NO_IMAGE;
use super::message::Block;
use super::{Gate, GuestBody, GuestRequest, GuestResponse, HttpEvent};
use crate::image::{BlockContent, BlockSize, ImageBlock, ImageBlocks, ImageError, ImagePart};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::http_event::{BlockCounts, PendingEvent};
use crate::net::http_record::Outcome;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{self, StreamExt};
use sha2::{Digest, Sha256};
use std::pin::pin;
use std::time::{Duration, Instant};
use wasm_cpi_policy::destination::Destination;

/// The most blocks that are sent at once.
const MAX_AT_ONCE: u64 = 16;
/// How often a block is sent at most.
const MAX_TRIES: u32 = 3;
/// The pause before a block is sent again; before the third time it is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// What the number of a block replaces in the URL.
const INDEX: &str = "{index}";
/// What the digest of a block replaces, as the whole value of a header.
const SHA256: &str = "{sha256-base64}";
/// What the length of a block replaces, as the whole value of a header.
const LENGTH: &str = "{length}";

/// An upload in blocks, as the guest asks for it.
pub struct BlockUpload {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub image: ImagePart,
    pub block_bytes: u32,
    /// The number of the first block.
    pub first_index: u32,
    pub skip_zero_blocks: bool,
    pub timeout_ms: Option<u32>,
}

/// The result of an upload in blocks.
pub struct BlocksSent {
    pub sent: u32,
    pub skipped: u32,
    /// The SHA-256 digest of the digests of the sent blocks, in base64.
    pub sha256_of_digests: String,
    /// The `etag` of each response, in the order of the blocks.
    pub etags: Vec<String>,
}

/// The reason why an upload was not completed.
pub enum BlocksError {
    /// A block has no response, or the upload was not started.
    Failed(HttpError),
    /// The server answered a block with this response.
    Refused(GuestResponse),
}

impl From<HttpError> for BlocksError {
    fn from(error: HttpError) -> Self {
        BlocksError::Failed(error)
    }
}

/// A block that the server accepted.
struct SentBlock {
    position: u64,
    sha256: [u8; 32],
    etag: String,
}

/// The outcome of one block; a block that was left out has no `SentBlock`.
struct BlockReport {
    outcome: Result<Option<SentBlock>, BlocksError>,
    /// The last try, with the bytes of all tries.
    event: HttpEvent,
    repeated: u64,
}

impl Gate {
    /// Uploads a part of the image in blocks, if all checks pass. The first block that fails for good
    /// ends the upload.
    pub async fn send_blocks(&self, upload: BlockUpload, deadline: Instant) -> Result<BlocksSent, BlocksError> {
        let report = |event: &HttpEvent| self.report_event(event);
        let mut pending = PendingEvent::new(&report);
        let event = &mut pending.event;
        "PUT".clone_into(&mut event.method);
        event.target = target(&upload.url, self.limits.url_bytes);
        event.blocks = Some(BlockCounts::default());
        let result = self.upload(&upload, deadline, event).await;
        match &result {
            Ok(_) => event.conclude(Ok(200)),
            Err(BlocksError::Refused(response)) => event.conclude(Ok(response.status)),
            Err(BlocksError::Failed(error)) => event.conclude(Err(error)),
        }
        let failed = result.as_ref().err().and_then(|error| match error {
            BlocksError::Failed(error) => Some(error),
            BlocksError::Refused(_) => None,
        });
        self.record.record_error(failed);
        result
    }

    async fn upload(
        &self,
        upload: &BlockUpload,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<BlocksSent, BlocksError> {
        let at_once = self.blocks_at_once(upload)?;
        let image = self.image.as_ref().ok_or_else(|| HttpError::invalid(NO_IMAGE))?;
        let size = BlockSize { bytes: upload.block_bytes, skips_zeros: upload.skip_zero_blocks };
        let (length, blocks) = image.blocks(&upload.image, size).await.map_err(|error| invalid_image(&error))?;
        let count = length.div_ceil(u64::from(upload.block_bytes));
        if u64::from(upload.first_index) + count > u64::from(u32::MAX) {
            let what = format!("{count} blocks from number {} have no number of 32 bits", upload.first_index);
            return Err(HttpError::invalid(format_args!("{what}; use larger blocks")).into());
        }
        self.record.start_blocks(count, &self.limits)?;
        let change = self.record.record_change(format!("PUT {} in {count} blocks", event.target));
        let result = self.send_each(upload, blocks, at_once, deadline, event).await;
        let outcome = match (&result, event.sent) {
            (Ok(_), _) => Outcome::Answered(200),
            (Err(_), true) => Outcome::Unanswered,
            (Err(_), false) => Outcome::NotSent,
        };
        self.record.record_outcome(change, outcome);
        result
    }

    /// Returns how many blocks are sent at once. Rejects an upload that cannot be made.
    fn blocks_at_once(&self, upload: &BlockUpload) -> Result<usize, HttpError> {
        if !upload.url.contains(INDEX) {
            return Err(HttpError::invalid(format_args!(
                "the URL of the blocks has no `{INDEX}`, so all blocks would be one; add it"
            )));
        }
        if upload.block_bytes == 0 {
            return Err(HttpError::invalid("the size of a block is 0; set the size that the server expects"));
        }
        let room = self.limits.http_blocks_mib.saturating_mul(1024 * 1024) / u64::from(upload.block_bytes);
        if room == 0 {
            return Err(HttpError::limit("http_blocks_mib", self.limits.http_blocks_mib, "the size of a block"));
        }
        Ok(usize::try_from(room.min(MAX_AT_ONCE)).unwrap_or(1))
    }

    async fn send_each(
        &self,
        upload: &BlockUpload,
        blocks: ImageBlocks,
        at_once: usize,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<BlocksSent, BlocksError> {
        let blocks = stream::unfold(blocks, async |mut blocks| blocks.next().await.map(|block| (block, blocks)));
        let reports = blocks.map(|block| self.send_block(upload, block, deadline)).buffer_unordered(at_once);
        let mut reports = pin!(reports);
        let (mut sent, mut counts) = (Vec::new(), BlockCounts::default());
        while let Some(report) = reports.next().await {
            event.add(report.event);
            counts.repeated += report.repeated;
            let outcome = report.outcome.map_err(|error| match error {
                BlocksError::Failed(error) => {
                    BlocksError::Failed(HttpError { sent: error.sent || event.sent, ..error })
                }
                refused => refused,
            });
            let ended = match outcome {
                Ok(Some(block)) => {
                    sent.push(block);
                    counts.sent += 1;
                    None
                }
                Ok(None) => {
                    counts.skipped += 1;
                    None
                }
                Err(error) => Some(error),
            };
            event.blocks = Some(counts);
            if let Some(error) = ended {
                return Err(error);
            }
        }
        Ok(summary(sent, counts))
    }

    /// Sends one block, and again if it fails in a way that may pass.
    async fn send_block(
        &self,
        upload: &BlockUpload,
        block: Result<ImageBlock, ImageError>,
        deadline: Instant,
    ) -> BlockReport {
        let mut report = BlockReport { outcome: Ok(None), event: HttpEvent::new(), repeated: 0 };
        let (position, content) = match block {
            Ok(ImageBlock { content: None, .. }) => return report,
            Ok(ImageBlock { position, content: Some(content) }) => (position, content),
            Err(error) => {
                report.outcome = Err(invalid_image(&error).into());
                return report;
            }
        };
        for tries in 1..=MAX_TRIES {
            let request = request(upload, position, &content);
            let result = self.try_block(request, deadline, &mut report.event).await;
            let transient = match &result {
                Ok(response) => matches!(response.status, 429 | 500..=599),
                Err(error) => is_transient(error.kind),
            };
            report.outcome = match result {
                Ok(response) if (200..300).contains(&response.status) => {
                    let etag = self.counted_etag(response);
                    etag.map(|etag| Some(SentBlock { position, sha256: content.sha256, etag }))
                        .map_err(BlocksError::from)
                }
                Ok(response) => Err(BlocksError::Refused(response)),
                Err(error) => Err(BlocksError::Failed(error)),
            };
            if !transient || tries == MAX_TRIES {
                break;
            }
            report.repeated += 1;
            tokio::time::sleep(PAUSE * tries).await;
        }
        report
    }

    async fn try_block(
        &self,
        request: GuestRequest,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<GuestResponse, HttpError> {
        let checked = self.check_uncounted(request, deadline, event)?;
        let received = self.send_with_token(&checked, event).await?;
        self.finish(&checked, received, event)
    }

    /// Returns the response's `etag`, which counts like a body, because the etags of all blocks are kept.
    fn counted_etag(&self, response: GuestResponse) -> Result<String, HttpError> {
        let etag = response.headers.into_iter().find(|(name, _)| name == "etag");
        let etag = etag.map(|(_, value)| value).unwrap_or_default();
        self.bounded_bytes(etag.len() as u64, etag.len() as u64).map(|()| etag).map_err(HttpError::after_sending)
    }
}

impl HttpEvent {
    /// Adds what is known of a block to the event of the upload.
    fn add(&mut self, block: HttpEvent) {
        self.grant = block.grant.or(self.grant.take());
        self.address = block.address.or(self.address);
        self.refused_address = block.refused_address.or(self.refused_address);
        self.leaked = block.leaked.or(self.leaked.take());
        self.sent |= block.sent;
        self.bytes_sent += block.bytes_sent;
        self.bytes_received += block.bytes_received;
    }
}

/// Returns origin and path of the blocks for logs; empty if the URL is not valid.
fn target(url: &str, max_bytes: u64) -> String {
    let template = Destination::from_guest(url, max_bytes).map(|template| template.to_string());
    template.unwrap_or_default().replace("%7Bindex%7D", INDEX)
}

fn invalid_image(error: &ImageError) -> HttpError {
    HttpError { check: error.check(), ..HttpError::invalid(error) }
}

/// Returns true if the same request may succeed later.
fn is_transient(kind: HttpErrorKind) -> bool {
    matches!(
        kind,
        HttpErrorKind::Dns
            | HttpErrorKind::Connect
            | HttpErrorKind::Timeout
            | HttpErrorKind::Protocol
            | HttpErrorKind::Truncated
    )
}

/// Returns the request of one block.
fn request(upload: &BlockUpload, position: u64, content: &BlockContent) -> GuestRequest {
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

fn summary(mut sent: Vec<SentBlock>, counts: BlockCounts) -> BlocksSent {
    sent.sort_by_key(|block| block.position);
    let mut digest = Sha256::new();
    sent.iter().for_each(|block| digest.update(block.sha256));
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    BlocksSent {
        sent: number(counts.sent),
        skipped: number(counts.skipped),
        sha256_of_digests: STANDARD.encode(digest.finalize()),
        etags: sent.into_iter().map(|block| block.etag).collect(),
    }
}
