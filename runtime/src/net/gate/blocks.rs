//! Uploads a part of the image in blocks: one PUT for each block, several at once.
//!
//! Every block passes the same checks as a single request, and every response is screened. The image
//! is read once and in order. Only the blocks that are being sent, and two more, are in memory.

mod attempt;
mod block_request;
mod summary;

use super::bodies::NO_IMAGE;
use super::outgoing_body::invalid_image;
use super::{Gate, GuestResponse, HttpEvent, HttpOutcome};
use crate::image::{BlockContent, BlockCut, ImageBlock, ImageBlocks, ImageError, ImagePart};
use crate::net::error::HttpError;
use crate::net::http_event::{BlockCounts, PendingEvent};
use crate::net::http_record::Outcome;
use attempt::{Attempt, AttemptOutcome};
use futures_util::stream::StreamExt;
use ring::digest::Digest;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use summary::Summary;

/// The most blocks that are sent at once.
pub(super) const MAX_AT_ONCE: u64 = 16;
/// The blocks that are in memory besides those that are sent: one is read, and one waits.
const READ_AHEAD: u64 = 2;
/// The maximum number of times that a block is sent.
const MAX_TRIES: u32 = 3;
/// The pause before a block is sent again, unless the server asks for a longer one; before the third
/// time it is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause that a server can ask for.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The longest `etag` that the guest gets.
const MAX_ETAG: usize = 1024;

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
struct AcceptedBlock {
    sha256: Digest,
    status: u16,
    etag: String,
}

/// An upload that is in progress.
struct Upload<'a> {
    gate: &'a Gate,
    wanted: &'a BlockUpload,
    deadline: Instant,
    /// The event of the whole upload. It is reported even if the upload is abandoned.
    pending: Mutex<PendingEvent<'a>>,
    /// True if any byte of a block may have been sent.
    sent: &'a AtomicBool,
}

impl Gate {
    /// Uploads a part of the image in blocks, if all checks pass. The first block that fails for good
    /// ends the upload. Sets `sent` once any byte of a block may have been sent, also if the upload is
    /// abandoned.
    pub async fn send_blocks(
        &self,
        wanted: &BlockUpload,
        deadline: Instant,
        sent: &AtomicBool,
    ) -> Result<BlocksSent, BlocksError> {
        let report = |event: &HttpEvent| self.report_event(event);
        let pending = Mutex::new(PendingEvent::new(&report));
        let upload = Upload { gate: self, wanted, deadline, pending, sent };
        let result = upload.run().await;
        let mut pending = upload.pending();
        match &result {
            Ok((_, Some(status))) => pending.event.conclude(Ok(*status)),
            Ok((_, None)) => pending.event.outcome = HttpOutcome::NothingToSend,
            Err(BlocksError::Refused(response)) => pending.event.conclude(Ok(response.status)),
            Err(BlocksError::Failed(error)) => pending.event.conclude(Err(error)),
        }
        // Other blocks were sent, even if the one that failed was not.
        pending.event.sent = sent.load(Ordering::Relaxed);
        drop(pending);
        self.record.record_end(match &result {
            Err(BlocksError::Failed(error)) => Some(error),
            Ok(_) | Err(BlocksError::Refused(_)) => None,
        });
        result.map(|(sent, _)| sent)
    }
}

impl<'a> Upload<'a> {
    /// Returns what was sent, and the status of the last block; `None` if all blocks were left out.
    async fn run(&self) -> Result<(BlocksSent, Option<u16>), BlocksError> {
        let (gate, wanted) = (self.gate, self.wanted);
        let at_once = self.blocks_at_once()?;
        self.check_first()?;
        let image = gate.image.as_ref().ok_or_else(|| HttpError::invalid(NO_IMAGE))?;
        let cut = BlockCut { block_bytes: wanted.block_bytes, leaves_out_zeros: wanted.skip_zero_blocks };
        let (length, blocks) = image.blocks(&wanted.image, cut).await.map_err(|error| invalid_image(&error))?;
        let count = length.div_ceil(u64::from(wanted.block_bytes));
        if u64::from(wanted.first_index) + count > u64::from(u32::MAX) {
            let what = format!("{count} blocks from number {} have no number of 32 bits", wanted.first_index);
            return Err(HttpError::invalid(format_args!("{what}; use larger blocks")).into());
        }
        gate.record.expect_room_for_blocks(count, &gate.limits)?;
        let what = format!("{} in {count} blocks", self.pending().event.request());
        let change = gate.record.record_change(what);
        let result = self.send_each(blocks, count, at_once).await;
        let sent = self.sent.load(Ordering::Relaxed);
        // Other blocks were sent, even if the one that failed was not.
        let result = result.map_err(|error| match error {
            BlocksError::Failed(error) => BlocksError::Failed(HttpError { sent, ..error }),
            other => other,
        });
        gate.record.record_outcome(
            change,
            match &result {
                Ok((_, Some(status))) if sent => Outcome::Answered(*status),
                Ok(_) => Outcome::NotSent,
                Err(_) if !sent => Outcome::NotSent,
                Err(_) => Outcome::Incomplete(self.pending().event.blocks.map_or(0, |counts| counts.sent)),
            },
        );
        result
    }

    /// Returns how many blocks are sent at once. Rejects an upload that cannot be made.
    fn blocks_at_once(&self) -> Result<usize, HttpError> {
        let (limits, wanted) = (&self.gate.limits, self.wanted);
        block_request::expect_index(&wanted.url, limits.url_bytes)?;
        if wanted.block_bytes == 0 {
            return Err(HttpError::invalid("the size of a block is 0; set the size that the server expects"));
        }
        let blocks_in_memory = limits.http_blocks_mib.saturating_mul(1024 * 1024) / u64::from(wanted.block_bytes);
        let at_once = blocks_in_memory.saturating_sub(READ_AHEAD);
        if at_once == 0 {
            let what = format!("the memory for {} blocks", READ_AHEAD + 1);
            return Err(HttpError::limit("http_blocks_mib", limits.http_blocks_mib, what));
        }
        Ok(usize::try_from(at_once.min(MAX_AT_ONCE)).unwrap_or(1))
    }

    /// Makes the checks of the first block before the image is read.
    fn check_first(&self) -> Result<(), HttpError> {
        let mut event = HttpEvent::new();
        let content = BlockContent::new(Vec::new());
        let request = block_request::request(self.wanted, 0, &content);
        let checked = self.gate.check_uncounted(request, self.deadline, &mut event);
        let pending = &mut self.pending().event;
        pending.method = event.method;
        pending.target = block_request::target(&self.wanted.url, self.gate.limits.url_bytes);
        pending.operation = event.operation;
        pending.grant = event.grant;
        pending.blocks = Some(BlockCounts::default());
        checked.map(drop)
    }

    async fn send_each(
        &self,
        blocks: ImageBlocks,
        count: u64,
        at_once: usize,
    ) -> Result<(BlocksSent, Option<u16>), BlocksError> {
        let mut outcomes = pin!(blocks.into_stream().map(|block| self.send_block(block)).buffer_unordered(at_once));
        let mut summary = Summary::new();
        while let Some(outcome) = outcomes.next().await {
            let (position, sent) = outcome?;
            summary.add(position, sent);
        }
        if summary.blocks() != count {
            let early = ImageError::Io("the thread that reads the image ended early".to_owned());
            return Err(invalid_image(&early).into());
        }
        Ok(summary.finish())
    }

    /// Sends one block, and again if it fails in a way that may pass. Returns its place in the image, and `None` if it
    /// is left out.
    async fn send_block(
        &self,
        block: Result<ImageBlock, ImageError>,
    ) -> Result<(u64, Option<AcceptedBlock>), BlocksError> {
        let ImageBlock { position, content } = block.map_err(|error| invalid_image(&error))?;
        let Some(content) = content else {
            self.count(|counts| counts.skipped += 1);
            return Ok((position, None));
        };
        let mut tries = 1;
        let result = loop {
            match Attempt::new(self, tries == 1).send(position, &content).await {
                AttemptOutcome::Transient(result) if tries < MAX_TRIES => {
                    self.count(|counts| counts.repeated += 1);
                    tokio::time::sleep(pause(tries, &result)).await;
                    tries += 1;
                }
                AttemptOutcome::Done(result) | AttemptOutcome::Transient(result) => break result,
            }
        };
        let index = u64::from(self.wanted.first_index) + position;
        let response =
            result.map_err(|error| HttpError { detail: format!("block {index}: {}", error.detail), ..error })?;
        if !(200..300).contains(&response.status) {
            self.pending().event.detail = format!("block {index} was answered with HTTP {}", response.status);
            let received = response.body.len() as u64;
            return Err(BlocksError::Refused(self.gate.count_response(response, received)?));
        }
        self.count(|counts| counts.sent += 1);
        let (sha256, status) = (content.sha256, response.status);
        Ok((position, Some(AcceptedBlock { sha256, status, etag: self.counted_etag(response)? })))
    }

    /// Returns the response's `etag`, which counts like a body, because the etags of all blocks are kept.
    fn counted_etag(&self, response: GuestResponse) -> Result<String, HttpError> {
        let etag = response.headers.into_iter().find(|(name, value)| name == "etag" && value.len() <= MAX_ETAG);
        let etag = etag.map(|(_, value)| value).unwrap_or_default();
        self.gate.count_shown_bytes(etag.len() as u64, etag.len() as u64).map(|()| etag)
    }

    fn count(&self, change: impl FnOnce(&mut BlockCounts)) {
        if let Some(counts) = &mut self.pending().event.blocks {
            change(counts);
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingEvent<'a>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how long to wait after this number of attempts: as long as the server asks for, and differently for
/// each block, so that blocks that were refused together do not come back together.
fn pause(tries: u32, result: &Result<GuestResponse, HttpError>) -> Duration {
    let headers = result.as_ref().map_or(&[][..], |response| &response.headers);
    let asked = headers.iter().find(|(name, _)| name == "retry-after").and_then(|(_, value)| value.trim().parse().ok());
    let asked = Duration::from_secs(asked.unwrap_or_default()).min(MAX_PAUSE);
    let share = getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX));
    (PAUSE * tries).max(asked) + PAUSE.mul_f64(share)
}
