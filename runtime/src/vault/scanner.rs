//! Searches for many byte strings at once, in time that is linear in the text.
//!
//! A call has many secrets, each is searched for in many encodings, and most of them occur in no
//! text. So an automaton finds the heads of all needles, and only a needle whose head occurs
//! is then encoded and searched for as a whole (Knuth, Morris and Pratt). Both searches compare each byte of
//! the text a bounded number of times, whatever the text and the secrets are, and neither guesses.
//!
//! Most calls search one short text, the result. Building the automaton would cost more than searching
//! such a text for every needle, so it is built only after some comparisons.
//!
//! A server that sends the heads of many needles makes the search read its text once for each of them, which can take
//! minutes. So a search looks between needles whether the call is over, and stops then.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::needles::{HEAD, Needle};

/// The number of bytes, counted for every needle, that are searched without an automaton.
const WITHOUT_AUTOMATON: usize = 100_000;

/// A search may take this long even if the call is over, so that the last error is printed.
const MIN_SEARCH: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(2) };

/// Requests the end of the call if it is due. Returns true if the guest must be stopped.
pub type CheckEnd = Box<dyn Fn() -> bool + Send + Sync>;

/// The call was over before the search was finished, so it is unknown what the text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call was over before the search for secrets was finished")]
pub struct SearchStopped;

/// What a search returns: it goes on to the end, finds what it was for, or is stopped.
pub(super) type Searched<B> = ControlFlow<Result<B, SearchStopped>>;

/// Ends a search that takes long when the call is over.
pub struct SearchDeadline<'a> {
    started: Instant,
    check_end: Option<&'a CheckEnd>,
}

impl<'a> SearchDeadline<'a> {
    pub(super) fn new(check_end: Option<&'a CheckEnd>) -> Self {
        SearchDeadline { started: Instant::now(), check_end }
    }

    /// Returns the deadline of searches that no call waits for: they always reach the end.
    pub fn unlimited() -> Self {
        SearchDeadline::new(None)
    }

    /// Fails if the search has taken long and the call is over.
    pub fn check(&self) -> Result<(), SearchStopped> {
        match self.check_end {
            Some(check_end) if self.started.elapsed() >= MIN_SEARCH && check_end() => Err(SearchStopped),
            _ => Ok(()),
        }
    }

    fn continue_or_stop<B>(&self) -> Searched<B> {
        self.check().map_or_else(|stopped| ControlFlow::Break(Err(stopped)), ControlFlow::Continue)
    }
}

pub(super) struct Scanner {
    needles: Vec<Needle>,
    /// For exact needles, and for those in any case.
    heads: OnceLock<[Heads; 2]>,
    /// The number of bytes that were searched so far, counted for every needle.
    searched: AtomicUsize,
}

/// Finds the heads of some needles.
struct Heads {
    /// Absent if there is no needle.
    automaton: Option<AhoCorasick>,
    /// The needle of each pattern of the automaton.
    owners: Vec<usize>,
}

type Visit<'a, B> = dyn FnMut(&Needle, Range<usize>) -> ControlFlow<B> + 'a;

impl Scanner {
    pub(super) fn new(needles: Vec<Needle>) -> Self {
        Scanner { needles, heads: OnceLock::new(), searched: AtomicUsize::new(0) }
    }

    /// Visits every occurrence of every needle, overlapping ones too. The occurrences of one
    /// needle are visited in their order.
    pub(super) fn scan<B>(&self, bytes: &[u8], deadline: &SearchDeadline<'_>, visit: &mut Visit<'_, B>) -> Searched<B> {
        if self.needles.is_empty() || bytes.is_empty() {
            return ControlFlow::Continue(());
        }
        let work = bytes.len().saturating_mul(self.needles.len());
        if self.heads.get().is_none()
            && self.searched.fetch_add(work, Ordering::Relaxed).saturating_add(work) <= WITHOUT_AUTOMATON
        {
            return self.needles.iter().try_for_each(|needle| find_all(needle, bytes, 0, visit)).map_break(Ok);
        }
        // For each needle that is longer than its head: where the head first occurs.
        let mut candidates: BTreeMap<usize, usize> = BTreeMap::new();
        for heads in self.heads.get_or_init(|| [false, true].map(|any_case| Heads::new(&self.needles, any_case))) {
            let Some(automaton) = &heads.automaton else { continue };
            deadline.continue_or_stop()?;
            for found in automaton.find_overlapping_iter(bytes) {
                let at = heads.owners[found.pattern().as_usize()];
                let needle = &self.needles[at];
                if needle.len() == found.len() {
                    visit(needle, found.range()).map_break(Ok)?;
                } else {
                    let first = candidates.entry(at).or_insert(found.start());
                    *first = found.start().min(*first);
                }
            }
        }
        candidates.into_iter().try_for_each(|(at, start)| {
            deadline.continue_or_stop()?;
            find_all(&self.needles[at], bytes, start, visit).map_break(Ok)
        })
    }

    /// Returns the length of the longest end of the bytes that is the start of a needle, and not
    /// all of it: more bytes could complete the needle. Only needles that `counts` accepts count.
    pub(super) fn unfinished(&self, bytes: &[u8], counts: &dyn Fn(&Needle) -> bool) -> usize {
        let counted = self.needles.iter().filter(|needle| counts(needle));
        counted.map(|needle| unfinished(needle, bytes)).max().unwrap_or_default()
    }
}

impl Heads {
    fn new(needles: &[Needle], any_case: bool) -> Self {
        let here = needles.iter().enumerate().filter(|(_, needle)| needle.is_any_case() == any_case);
        let (mut owners, mut heads) = (Vec::new(), Vec::new());
        for (at, needle) in here {
            for head in needle.heads() {
                debug_assert!(head.len() == needle.len().min(HEAD));
                owners.push(at);
                heads.push(head);
            }
        }
        let automaton = (!heads.is_empty()).then(|| {
            AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::NoncontiguousNFA))
                // A table for the first byte only: tables for more take longer to fill than they save.
                .dense_depth(1)
                .ascii_case_insensitive(any_case)
                .prefilter(false)
                .build(&heads)
                // Only more than two billion states are an error.
                .expect("the heads of a call's secrets fit into an automaton")
        });
        Heads { automaton, owners }
    }
}

/// Visits every occurrence of the needle from `start` on.
fn find_all<B>(needle: &Needle, bytes: &[u8], start: usize, visit: &mut Visit<'_, B>) -> ControlFlow<B> {
    if needle.len() > bytes.len() - start {
        return ControlFlow::Continue(());
    }
    let mut search = Search::new(needle);
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        let matched = search.step(*byte);
        if matched == search.text.len() {
            visit(needle, at + 1 - matched..at + 1)?;
        }
    }
    ControlFlow::Continue(())
}

/// Returns the length of the longest end of the bytes that is the start of the needle, and not
/// all of it.
fn unfinished(needle: &Needle, bytes: &[u8]) -> usize {
    let Some(head) = needle.heads().next() else { return 0 };
    let tail = &bytes[bytes.len().saturating_sub(needle.len() - 1)..];
    let begins = |at: &usize| {
        tail[*at..].iter().zip(head.iter()).all(|(byte, first)| needle.folded(*byte) == needle.folded(*first))
    };
    match (0..tail.len()).find(begins) {
        None => 0,
        // The head was compared as far as the bytes go.
        Some(at) if tail.len() - at <= HEAD => tail.len() - at,
        Some(at) => {
            let mut search = Search::new(needle);
            tail[at..].iter().fold(0, |_, byte| search.step(*byte))
        }
    }
}

/// The search of Knuth, Morris and Pratt for one needle.
struct Search<'a> {
    needle: &'a Needle,
    text: &'a [u8],
    /// The length of the longest proper border of each prefix of the needle.
    borders: Vec<usize>,
    matched: usize,
}

impl<'a> Search<'a> {
    fn new(needle: &'a Needle) -> Self {
        let text = needle.text();
        let mut borders = vec![0; text.len()];
        let mut matched = 0;
        for at in 1..text.len() {
            while matched > 0 && text[at] != text[matched] {
                matched = borders[matched - 1];
            }
            matched += usize::from(text[at] == text[matched]);
            borders[at] = matched;
        }
        Search { needle, text, borders, matched: 0 }
    }

    /// Reads one more byte. Returns how many bytes of the needle end here.
    fn step(&mut self, byte: u8) -> usize {
        let byte = self.needle.folded(byte);
        while self.matched > 0 && (self.matched == self.text.len() || byte != self.text[self.matched]) {
            self.matched = self.borders[self.matched - 1];
        }
        self.matched += usize::from(byte == self.text[self.matched]);
        self.matched
    }
}

#[cfg(test)]
mod tests {
    use super::super::needles;
    use super::*;
    use proptest::prelude::*;
    use wasm_cpi_policy::secret::Secret;

    fn spans(scanner: &Scanner, text: &[u8], form: needles::Form) -> Vec<(usize, Range<usize>)> {
        let mut found = Vec::new();
        let _: Searched<()> = scanner.scan(text, &SearchDeadline::unlimited(), &mut |needle, span| {
            if needle.form == form {
                found.push((needle.owner, span));
            }
            ControlFlow::Continue(())
        });
        found.sort_by_key(|(owner, span)| (*owner, span.start));
        found
    }

    proptest! {
        #[test]
        fn every_occurrence_is_found_as_a_naive_search_finds_it(
            secrets in prop::collection::vec("[ab]{6,40}", 1..5),
            text in "[ab]{0,120}",
            searched in prop_oneof![Just(0), Just(WITHOUT_AUTOMATON)],
        ) {
            let needles = secrets.iter().enumerate().flat_map(|(at, text)| needles::of_secret(at, &Secret::new(text.as_str())));
            let scanner = Scanner::new(needles.collect());
            scanner.searched.store(searched, Ordering::Relaxed);
            let mut expected = Vec::new();
            for (owner, secret) in secrets.iter().enumerate() {
                let starts = (0..text.len()).filter(|start| text[*start..].starts_with(secret.as_str()));
                expected.extend(starts.map(|start| (owner, start..start + secret.len())));
            }
            prop_assert_eq!(spans(&scanner, text.as_bytes(), needles::Form::Plain), expected);
        }

        #[test]
        fn the_longest_start_of_a_needle_at_the_end_is_found_as_a_naive_search_finds_it(
            secrets in prop::collection::vec("[ab]{6,40}", 1..5),
            text in "[ab]{0,120}",
        ) {
            let needles = secrets.iter().enumerate().flat_map(|(at, text)| needles::of_secret(at, &Secret::new(text.as_str())));
            let scanner = Scanner::new(needles.filter(|needle| needle.form == needles::Form::Plain).collect());
            let begins = |length: &usize| {
                let end = &text[text.len() - length..];
                secrets.iter().any(|secret| secret.len() > *length && secret.starts_with(end))
            };
            let expected = (0..=text.len()).rev().find(begins).unwrap_or_default();
            prop_assert_eq!(scanner.unfinished(text.as_bytes(), &|_| true), expected);
        }
    }
}
