//! What an upload in blocks returns. An image has thousands of blocks, so digests are added up in the order of the blocks,
//! and only those of blocks that overtook others are kept.

use super::{AcceptedBlock, BlocksSent};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Context, SHA256};
use std::collections::BTreeMap;

pub(super) struct Summary {
    /// The digest of the digests of all sent blocks before `next`.
    digest: Context,
    /// The place of the first block that is not in the digest.
    next: u64,
    /// The blocks that overtook others.
    waiting: BTreeMap<u64, Option<AcceptedBlock>>,
    sent: u64,
    skipped: u64,
    etags: Vec<String>,
    /// The status of the block that was answered last; `None` if all blocks were left out.
    status: Option<u16>,
}

impl Summary {
    pub(super) fn new() -> Summary {
        Summary {
            digest: Context::new(&SHA256),
            next: 0,
            waiting: BTreeMap::new(),
            sent: 0,
            skipped: 0,
            etags: Vec::new(),
            status: None,
        }
    }

    /// Adds the block at a place of the image; `None` was left out.
    pub(super) fn add(&mut self, position: u64, block: Option<AcceptedBlock>) {
        match &block {
            Some(block) => {
                self.sent += 1;
                self.status = Some(block.status);
            }
            None => self.skipped += 1,
        }
        self.waiting.insert(position, block);
        while let Some(block) = self.waiting.remove(&self.next) {
            self.next += 1;
            if let Some(block) = block {
                self.digest.update(block.sha256.as_ref());
                self.etags.push(block.etag);
            }
        }
    }

    /// Returns the number of blocks that were added.
    pub(super) fn blocks(&self) -> u64 {
        self.sent + self.skipped
    }

    /// Returns the result, and the status of the last response, if there was one. All blocks were added.
    pub(super) fn finish(self) -> (BlocksSent, Option<u16>) {
        // There are fewer blocks than numbers of 32 bits.
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let sent = BlocksSent {
            sent: number(self.sent),
            skipped: number(self.skipped),
            sha256_of_digests: STANDARD.encode(self.digest.finish()),
            etags: self.etags,
        };
        (sent, self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::digest::digest;

    #[test]
    fn blocks_that_overtake_others_are_put_in_order() {
        let block = |text: &str| {
            Some(AcceptedBlock { sha256: digest(&SHA256, text.as_bytes()), status: 200, etag: text.to_owned() })
        };
        let mut expected = Context::new(&SHA256);
        ["a", "b", "d"].iter().for_each(|text| expected.update(digest(&SHA256, text.as_bytes()).as_ref()));
        let expected = STANDARD.encode(expected.finish());
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mut summary = Summary::new();
            for position in order {
                let block = [block("a"), block("b"), None, block("d")].into_iter().nth(position).flatten();
                summary.add(position as u64, block);
            }
            assert!(summary.blocks() == 4 && summary.waiting.is_empty());
            let (sent, status) = summary.finish();
            assert_eq!((sent.sent, sent.skipped, status), (3, 1, Some(200)));
            assert_eq!((sent.sha256_of_digests, sent.etags.concat()), (expected.clone(), "abd".to_owned()));
        }
    }
}
