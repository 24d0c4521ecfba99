//! Cuts a part of the image into blocks of one size, on a thread that reads the part once and in
//! order. The thread also computes the digests, so that the network does not wait for them.

use super::reader::{Stop, StopOnDrop};
use super::stamp::ImageStamp;
use super::{ImageError, unreadable};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use ring::digest::{Digest, SHA256, digest};
use std::io::Read;
use tokio::sync::mpsc;

/// The number of blocks that wait to be sent.
const QUEUED_BLOCKS: usize = 1;

/// One block of a part of the image.
pub struct ImageBlock {
    /// The number of the block, from 0.
    pub position: u64,
    /// What the block holds; `None` if it holds only zeros and is not to be sent.
    pub content: Option<BlockContent>,
}

/// The bytes of a block and their digest.
#[derive(Clone)]
pub struct BlockContent {
    pub bytes: Bytes,
    pub sha256: Digest,
}

impl BlockContent {
    pub fn new(bytes: Vec<u8>) -> BlockContent {
        BlockContent { sha256: digest(&SHA256, &bytes), bytes: bytes.into() }
    }
}

/// The size of blocks, and which of them are left out.
#[derive(Clone, Copy)]
pub struct BlockCut {
    pub block_bytes: u32,
    /// True if blocks of zeros are not to be sent.
    pub leaves_out_zeros: bool,
}

/// The blocks of a part of the image, in their order. Dropping it stops the thread.
pub struct ImageBlocks {
    receiver: mpsc::Receiver<Result<ImageBlock, ImageError>>,
    _stop: StopOnDrop,
}

impl ImageBlocks {
    pub(super) fn start(
        source: impl Read + Send + 'static,
        length: u64,
        cut_into: BlockCut,
        stamp: ImageStamp,
        stop: Stop,
    ) -> Result<ImageBlocks, ImageError> {
        let (sender, receiver) = mpsc::channel(QUEUED_BLOCKS);
        super::stream::spawn(move || cut(source, length, cut_into, &stamp, &sender))?;
        Ok(ImageBlocks { receiver, _stop: StopOnDrop::new(stop) })
    }

    /// Returns the blocks in their order.
    pub fn into_stream(self) -> impl Stream<Item = Result<ImageBlock, ImageError>> + Send + 'static {
        stream::unfold(self, |mut blocks| async move { Some((blocks.receiver.recv().await?, blocks)) })
    }
}

fn cut(
    mut source: impl Read,
    length: u64,
    cut_into: BlockCut,
    stamp: &ImageStamp,
    sender: &mpsc::Sender<Result<ImageBlock, ImageError>>,
) {
    let mut left = length;
    for position in 0.. {
        if left == 0 {
            return;
        }
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(cut_into.block_bytes as usize)];
        left -= bytes.len() as u64;
        let mut read = source.read_exact(&mut bytes);
        if left == 0 {
            // Before the last block is sent, so that an upload of a changed image is not completed.
            read = read.and_then(|()| stamp.check());
        }
        let block = read.map_err(changed_or_unreadable).map(|()| {
            let content = (!cut_into.leaves_out_zeros || !is_zero(&bytes)).then(|| BlockContent::new(bytes));
            ImageBlock { position, content }
        });
        let failed = block.is_err();
        if sender.blocking_send(block).is_err() || failed {
            return;
        }
    }
}

/// Returns the error of the stamp, if it is one, and otherwise that the image cannot be read.
fn changed_or_unreadable(error: std::io::Error) -> ImageError {
    match error.downcast::<ImageError>() {
        Ok(changed) => changed,
        Err(error) => unreadable(&error),
    }
}

/// Returns true if all bytes are zero. It compares many bytes at once.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}
