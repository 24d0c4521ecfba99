//! A search for many byte strings at once.
//!
//! The automaton holds beginnings only, so that long secrets (keys, settings)
//! do not make it large; the rest is compared where a beginning was found. It
//! knows no case: what counts as the same is decided by comparing.

use std::ops::{ControlFlow, Range};

use aho_corasick::{AhoCorasick, MatchKind};
use zeroize::Zeroizing;

use super::needles::{CASE, HEX};

const BEGINNING: usize = 12;

pub(super) struct Needle {
    /// Index of what it belongs to.
    pub(super) owner: usize,
    /// What was done to it.
    pub(super) form: &'static str,
    pub(super) text: Zeroizing<Vec<u8>>,
}

pub(super) struct Scanner {
    needles: Vec<Needle>,
    automaton: Option<AhoCorasick>,
}

impl Needle {
    pub(super) fn new(owner: usize, form: &'static str, text: Vec<u8>) -> Self {
        Needle { owner, form, text: Zeroizing::new(text) }
    }

    /// Whether the bytes begin with it.
    fn begins(&self, bytes: &[u8]) -> bool {
        let Some(bytes) = bytes.get(..self.text.len()) else { return false };
        match self.form {
            HEX => bytes.eq_ignore_ascii_case(&self.text),
            CASE => bytes.eq_ignore_ascii_case(&self.text) && *bytes != **self.text,
            _ => *bytes == **self.text,
        }
    }
}

impl Scanner {
    pub(super) fn new(needles: Vec<Needle>) -> Self {
        let beginnings = needles.iter().map(|needle| &needle.text[..needle.text.len().min(BEGINNING)]);
        let automaton =
            AhoCorasick::builder().match_kind(MatchKind::Standard).ascii_case_insensitive(true).build(beginnings).ok();
        Scanner { needles, automaton }
    }

    /// Visits every occurrence of every needle, overlapping ones too.
    pub(super) fn scan<B>(
        &self,
        bytes: &[u8],
        visit: &mut dyn FnMut(&Needle, Range<usize>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Some(automaton) = &self.automaton else {
            // Too much to search for: whatever it is, it counts as found.
            return self.needles.iter().try_for_each(|needle| visit(needle, 0..bytes.len()));
        };
        if self.needles.is_empty() {
            return ControlFlow::Continue(());
        }
        for found in automaton.find_overlapping_iter(bytes) {
            let needle = &self.needles[found.pattern().as_usize()];
            if needle.begins(&bytes[found.start()..]) {
                visit(needle, found.start()..found.start() + needle.text.len())?;
            }
        }
        ControlFlow::Continue(())
    }
}
