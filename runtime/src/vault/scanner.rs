//! A search for many byte strings at once.
//!
//! It is built anew with every secret that a call learns, and then searches a few
//! lines: what it costs to build counts more than how fast it searches, so it is
//! a sorted list of beginnings behind a filter, and no automaton. It knows no
//! case, nor which alphabet base64 is in: what counts as the same is decided by comparing.

use std::ops::{ControlFlow, Range};

use super::needles::{BASE64, CASE, HEX, Needle, standard};

/// Bytes of a needle that are looked up; every needle has as many.
pub(super) const BEGINNING: usize = 4;

/// Bytes to compare for each byte that is searched, and for a short text.
/// Whoever wrote a text that takes more wrote it to take long.
const EFFORT: usize = 64;
const LEAST_EFFORT: usize = 64 * 1024;

pub(super) struct Scanner {
    needles: Vec<Needle>,
    /// Beginnings, folded, with the needles that have them, sorted.
    beginnings: Vec<(u32, usize)>,
    /// One bit for each hash of a beginning that occurs.
    filter: Filter,
}

impl Needle {
    /// Whether the bytes begin with it, or look like that and the effort is spent.
    fn begins(&self, bytes: &[u8], effort: &mut usize) -> bool {
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
        let mut beginnings: Vec<(u32, usize)> = needles
            .iter()
            .enumerate()
            .map(|(at, needle)| {
                let beginning = needle.beginning().iter().fold(0, |before, byte| rolled(before, *byte));
                filter.insert(beginning);
                (beginning, at)
            })
            .collect();
        beginnings.sort_unstable();
        Scanner { needles, beginnings, filter }
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
        let (mut beginning, mut effort) = (0, EFFORT * bytes.len() + LEAST_EFFORT);
        for (last, byte) in bytes.iter().enumerate() {
            beginning = rolled(beginning, *byte);
            if last + 1 < BEGINNING || !self.filter.may_have(beginning) {
                continue;
            }
            let start = last + 1 - BEGINNING;
            let first = self.beginnings.partition_point(|(other, _)| *other < beginning);
            for (_, at) in self.beginnings[first..].iter().take_while(|(other, _)| *other == beginning) {
                let needle = &self.needles[*at];
                if needle.begins(&bytes[start..], &mut effort) {
                    visit(needle, start..start + needle.text().len())?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The last four bytes, folded.
fn rolled(before: u32, byte: u8) -> u32 {
    before << 8 | u32::from(folded(byte))
}

/// What may count as the same becomes the same: case, and alphabets of base64.
fn folded(byte: u8) -> u8 {
    standard(byte.to_ascii_lowercase())
}

/// Says no to almost all beginnings that no needle has.
struct Filter(Box<[u64; Filter::WORDS]>);

impl Default for Filter {
    fn default() -> Self {
        Filter(Box::new([0; Filter::WORDS]))
    }
}

impl Filter {
    const WORDS: usize = 256;

    fn insert(&mut self, beginning: u32) {
        let (word, bit) = Filter::place(beginning);
        self.0[word] |= bit;
    }

    fn may_have(&self, beginning: u32) -> bool {
        let (word, bit) = Filter::place(beginning);
        self.0[word] & bit != 0
    }

    /// Its word, and its bit in there, by the upper bits of a product.
    fn place(beginning: u32) -> (usize, u64) {
        let hash = beginning.wrapping_mul(0x9e37_79b1) >> 18;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }
}
