//! Searches for many byte strings at once.
//!
//! The scanner is rebuilt for every secret that a call captures, and then searches a
//! few lines. So the time to build it matters more than the time to search: it is
//! a sorted list of prefixes behind a filter, not an automaton. The prefixes ignore
//! case and the alphabet of base64; the complete comparison then decides.

use std::ops::{ControlFlow, Range};

use super::needles::{BASE64, CASE, HEX, Needle, standard};

/// The number of bytes of a needle that are looked up. Every needle has at least as many.
pub(super) const PREFIX: usize = 4;

/// The number of bytes that may be compared, per byte of the text and for a short text. A text
/// that needs more was written to slow the search down, and counts as a match.
const EFFORT: usize = 64;
const MIN_EFFORT: usize = 64 * 1024;

pub(super) struct Scanner {
    needles: Vec<Needle>,
    /// Folded prefixes with the indices of their needles, sorted.
    prefixes: Vec<(u32, usize)>,
    /// One bit for each hash of a prefix.
    filter: Filter,
}

impl Needle {
    /// Returns true if the bytes start with the needle, or if the effort is used up.
    fn starts(&self, bytes: &[u8], effort: &mut usize) -> bool {
        let text = self.text();
        let Some(bytes) = bytes.get(..text.len()) else { return false };
        let (head, rest) = bytes.split_at(bytes.len().min(EFFORT));
        let alike = head.iter().zip(text).all(|(one, other)| folded(*one) == folded(*other));
        *effort = effort.saturating_sub(if alike { head.len() + rest.len() } else { head.len() });
        if !alike || *effort == 0 {
            return *effort == 0;
        }
        match self.form {
            HEX => bytes.eq_ignore_ascii_case(text),
            CASE => bytes.eq_ignore_ascii_case(text) && bytes != text,
            BASE64 => bytes.iter().zip(text).all(|(one, other)| standard(*one) == *other),
            _ => bytes == text,
        }
    }
}

impl Scanner {
    pub(super) fn new(needles: Vec<Needle>) -> Self {
        let mut filter = Filter::default();
        let mut prefixes: Vec<(u32, usize)> = needles
            .iter()
            .enumerate()
            .map(|(at, needle)| {
                let prefix = needle.prefix().iter().fold(0, |before, byte| rolled(before, *byte));
                filter.insert(prefix);
                (prefix, at)
            })
            .collect();
        prefixes.sort_unstable();
        Scanner { needles, prefixes, filter }
    }

    /// Visits every occurrence of every needle, overlapping ones too.
    pub(super) fn scan<B>(
        &self,
        bytes: &[u8],
        visit: &mut dyn FnMut(&Needle, Range<usize>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if self.needles.is_empty() {
            return ControlFlow::Continue(());
        }
        let (mut prefix, mut effort) = (0, EFFORT * bytes.len() + MIN_EFFORT);
        for (last, byte) in bytes.iter().enumerate() {
            prefix = rolled(prefix, *byte);
            if last + 1 < PREFIX || !self.filter.may_have(prefix) {
                continue;
            }
            let start = last + 1 - PREFIX;
            let first = self.prefixes.partition_point(|(other, _)| *other < prefix);
            for (_, at) in self.prefixes[first..].iter().take_while(|(other, _)| *other == prefix) {
                let needle = &self.needles[*at];
                if needle.starts(&bytes[start..], &mut effort) {
                    visit(needle, start..start + needle.text().len())?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the last four bytes, folded.
fn rolled(before: u32, byte: u8) -> u32 {
    before << 8 | u32::from(folded(byte))
}

/// Maps bytes that may be equal to the same byte: both cases, and both alphabets of base64.
fn folded(byte: u8) -> u8 {
    standard(byte.to_ascii_lowercase())
}

/// Excludes almost all prefixes that no needle has.
struct Filter(Box<[u64; Filter::WORDS]>);

impl Default for Filter {
    fn default() -> Self {
        Filter(Box::new([0; Filter::WORDS]))
    }
}

impl Filter {
    const WORDS: usize = 256;

    fn insert(&mut self, prefix: u32) {
        let (word, bit) = Filter::place(prefix);
        self.0[word] |= bit;
    }

    fn may_have(&self, prefix: u32) -> bool {
        let (word, bit) = Filter::place(prefix);
        self.0[word] & bit != 0
    }

    /// Returns the word and the bit of a prefix, by the upper bits of a product.
    fn place(prefix: u32) -> (usize, u64) {
        let hash = prefix.wrapping_mul(0x9e37_79b1) >> 18;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }
}
