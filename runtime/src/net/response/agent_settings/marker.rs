//! Finds the public marker of agent settings, plain and below base64, and decides whether a text holds
//! settings as a whole.
//!
//! A server may show settings in pieces: lines of a console, pairs of keys and values, several headers. The
//! pieces without a marker look like any other text. So a text is harmless alone only if it holds the first
//! and the last marker; a text with one of them, or with a part of one, is a piece of something that is shown
//! elsewhere, too.

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use memchr::memmem;
use std::sync::LazyLock;

/// The public marker in the first and the last key of user-data. It holds no character that JSON,
/// XML, URLs or shells escape. The first key has `_` before it, the last one `__`.
pub const MARKER: &str = "wasm-cpi-agent-settings-5e0c7a41d29b";

/// The shortest start or end of a marker that counts if a text consists of it, ends with it or starts with it.
/// Of a marker that is divided in two, one part is longer.
const MIN_PART: usize = 16;

/// The size of the parts that are searched for first: a line of at least 7 characters within a marker holds one.
const GRAM: usize = 4;

/// The marker, and every text that base64 makes of it, up to twice: a guest asks for one, and a
/// server may add another one.
static FORMS: LazyLock<Vec<String>> = LazyLock::new(|| forms(MARKER));

/// What finds these forms. Few responses need it, and it takes long to build.
static PATTERNS: LazyLock<Vec<memmem::Finder<'static>>> = LazyLock::new(|| finders(&FORMS));

/// The same for the forms of the last marker.
static LAST: LazyLock<Vec<memmem::Finder<'static>>> = LazyLock::new(|| finders(&forms(&format!("__{MARKER}"))));

/// Short parts of all forms. Most responses hold none.
static GRAMS: LazyLock<Grams> = LazyLock::new(|| Grams::of(&FORMS));

/// A set of texts of `GRAM` bytes. Every call with a response builds it, so it must not take long; a general
/// automaton took a sixth of such a call.
struct Grams {
    /// A bit for the hash of each text, which decides for nearly all others.
    hashes: Vec<u64>,
    sorted: Vec<u32>,
}

impl Grams {
    const HASH_BITS: u32 = 16;

    fn of(forms: &[String]) -> Grams {
        let all = forms.iter().flat_map(|form| form.as_bytes().as_chunks::<GRAM>().0);
        let mut sorted: Vec<u32> = all.map(|gram| u32::from_ne_bytes(*gram)).collect();
        sorted.sort_unstable();
        let mut hashes = vec![0; (1 << Grams::HASH_BITS) / 64];
        for gram in &sorted {
            let hash = Grams::hash(*gram);
            hashes[hash / 64] |= 1 << (hash % 64);
        }
        Grams { hashes, sorted }
    }

    /// Returns true if a part of the text is in the set.
    fn occur_in(&self, text: &[u8]) -> bool {
        text.array_windows::<GRAM>().any(|window| self.contains(u32::from_ne_bytes(*window)))
    }

    fn contains(&self, gram: u32) -> bool {
        let hash = Grams::hash(gram);
        self.hashes[hash / 64] & 1 << (hash % 64) != 0 && self.sorted.binary_search(&gram).is_ok()
    }

    /// Returns a number below `1 << HASH_BITS`, from a multiplication that mixes all bits.
    fn hash(gram: u32) -> usize {
        (gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - Grams::HASH_BITS)) as usize
    }
}

fn forms(marker: &str) -> Vec<String> {
    let once = encoded(marker);
    let twice: Vec<String> = once.iter().flat_map(|text| encoded(text)).collect();
    let mut all: Vec<String> = [marker.to_owned()].into_iter().chain(once).chain(twice).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn finders(forms: &[String]) -> Vec<memmem::Finder<'static>> {
    forms.iter().map(|text| memmem::Finder::new(text.as_bytes()).into_owned()).collect()
}

/// Returns the characters that base64 makes of the text wherever it is in longer text: for each
/// alignment those that do not depend on what is around it.
fn encoded(text: &str) -> Vec<String> {
    let at = |offset: usize, engine: &GeneralPurpose| {
        let all = engine.encode([&b"\0\0"[..offset], text.as_bytes()].concat());
        all[(offset * 8).div_ceil(6)..(offset + text.len()) * 8 / 6].to_owned()
    };
    (0..3).flat_map(|offset| [at(offset, &BASE64_STANDARD_NO_PAD), at(offset, &BASE64_URL_SAFE_NO_PAD)]).collect()
}

/// What a text holds of marked settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Nothing,
    /// Everything from the first to the last marker.
    Whole,
    /// One marker, or a part of one. The rest is elsewhere, or was cut off.
    Piece,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    First,
    Last,
}

/// Returns what a text holds of marked settings, whatever divides it into lines. A tag may divide a marker,
/// or hold it.
pub(super) fn classify(text: &[u8]) -> Match {
    let all = base64_characters(text, |_| 0);
    let undivided = base64_characters(text, escape_length);
    let streams = [&all, &undivided];
    let marks = streams.map(|stream| marks(stream));
    let is_whole = |marks: &Vec<Mark>| {
        let (pairs, rest) = marks.as_chunks::<2>();
        !pairs.is_empty() && rest.is_empty() && pairs.iter().all(|pair| *pair == [Mark::First, Mark::Last])
    };
    match (marks.iter().all(Vec::is_empty), marks.iter().any(is_whole)) {
        (_, true) => Match::Whole,
        (false, false) => Match::Piece,
        (true, false) if streams.iter().any(|stream| contains_marker_part(stream)) => Match::Piece,
        (true, false) => Match::Nothing,
    }
}

/// Returns what an object with these keys is. Servers may change the order of keys.
pub(super) fn classify_keys<'a>(keys: impl Iterator<Item = &'a String>) -> Match {
    let (mut found, mut first, mut last) = (Match::Nothing, false, false);
    for key in keys.filter(|key| may_contain_marker(key.as_bytes())) {
        let marks = marks(&base64_characters(key.as_bytes(), |_| 0));
        (first, last) = (first || marks.contains(&Mark::First), last || marks.contains(&Mark::Last));
        found = if classify(key.as_bytes()) == Match::Nothing { found } else { Match::Piece };
    }
    if first && last { Match::Whole } else { found }
}

/// Returns true if text holds the marker, whatever divides it.
pub(super) fn contains_divided_marker(text: &[u8]) -> bool {
    let all = base64_characters(text, |_| 0);
    let undivided = base64_characters(text, escape_length);
    contains_marker(&all) || (undivided != all && contains_marker(&undivided))
}

/// Returns true if text holds the marker.
pub(super) fn contains_marker(text: &[u8]) -> bool {
    text.len() >= MARKER.len()
        && may_contain_marker(text)
        && PATTERNS.iter().any(|pattern| pattern.find(text).is_some())
}

/// Returns false for most texts that hold no part of a marker.
pub(super) fn may_contain_marker(text: &[u8]) -> bool {
    GRAMS.occur_in(text)
}

/// Returns the markers in a text, in their order.
fn marks(text: &[u8]) -> Vec<Mark> {
    if !contains_marker(text) {
        return Vec::new();
    }
    // Both kinds end in the same way, and so do their forms.
    let ends = |patterns: &[memmem::Finder<'static>]| {
        let each = patterns.iter().flat_map(|one| one.find_iter(text).map(|at| at + one.needle().len()));
        let mut ends: Vec<usize> = each.collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    };
    let last = ends(&LAST);
    let mark = |end: &usize| if last.binary_search(end).is_ok() { Mark::Last } else { Mark::First };
    ends(&PATTERNS).iter().map(mark).collect()
}

/// Returns true if a text consists of a part of a marker, ends with the start of one, or starts with the end.
fn contains_marker_part(text: &[u8]) -> bool {
    let is_at_an_end = |pattern: &[u8]| {
        (MIN_PART..pattern.len().min(text.len() + 1))
            .any(|length| text.ends_with(&pattern[..length]) || text.starts_with(&pattern[pattern.len() - length..]))
            || (text.len() >= MIN_PART && memmem::find(pattern, text).is_some())
    };
    may_contain_marker(text) && PATTERNS.iter().any(|pattern| is_at_an_end(pattern.needle()))
}

/// Returns the characters that the marker and base64 consist of, without everything that may divide
/// them: white space, indentation, quotes, the zeros of UTF-16, and what `divider` returns the length of.
pub(super) fn base64_characters(text: &[u8], divider: fn(&[u8]) -> usize) -> Vec<u8> {
    let mut found = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let length = divider(&text[at..]);
        if length == 0 && is_base64(*byte) {
            found.push(*byte);
        }
        at += length.max(1);
    }
    found
}

/// Returns the length of an escape of white space or a tag at the start of the text; 0 if there is none.
pub(super) fn escape_length(text: &[u8]) -> usize {
    /// The longest tag that divides lines, such as `<br class="…" />`.
    const MAX_TAG: usize = 64;
    let enclosed = |end: u8| text.iter().take(MAX_TAG).position(|byte| *byte == end).map_or(0, |at| at + 1);
    match text {
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        [b'%', b'2', b'0', ..] | [b'%', b'0', b'9' | b'A' | b'a' | b'D' | b'd', ..] => 3,
        [b'&', b'#', ..] => enclosed(b';'),
        [b'<', b'a'..=b'z' | b'A'..=b'Z' | b'/', ..] => enclosed(b'>'),
        _ => 0,
    }
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}
