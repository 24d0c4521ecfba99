//! The byte strings to search for: a secret or a seal in every encoding that
//! changes all of its characters. Encodings that change single characters are
//! undone by `views` instead.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

use super::scanner::{BEGINNING, Needle};
use super::{MIN_REDACTED, MIN_TRIPWIRE};
use crate::holes::Check;
use crate::secret::Secret;

pub(super) const PLAIN: &str = "plain";
/// Half of a seal: of a seal cut in two, one piece holds such a half.
pub(super) const SPLIT: &str = "splitting";
/// The same letters, some of them in the other case.
pub(super) const CASE: &str = "changing its case";
const BASE64: &str = "base64";
/// Found whatever the case of its digits.
pub(super) const HEX: &str = "hex";

/// A line this long of a secret with many lines is a secret by itself: texts
/// are often wrapped, indented or quoted line by line.
const MIN_LINE: usize = 32;

/// In every encoding a text becomes longer.
const _: () = assert!(MIN_REDACTED > BEGINNING);

pub(super) fn of_secret(owner: usize, secret: &Secret) -> Vec<Needle> {
    let text = secret.reveal().trim();
    let mut needles = Vec::new();
    if text.len() >= MIN_REDACTED {
        encodings(owner, text.as_bytes(), &mut needles);
        // As it stands in a JSON document that is encoded as a whole.
        let quoted = Zeroizing::new(serde_json::to_string(text).unwrap_or_default());
        if let Some(escaped) = quoted.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"'))
            && escaped != text
            && Check::FormJson.on()
        {
            encodings(owner, escaped.as_bytes(), &mut needles);
        }
    }
    if Check::SecretLines.on() && text.contains('\n') {
        // `-----BEGIN …-----` is in every file of its kind.
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE && !line.starts_with("-----"));
        lines.for_each(|line| encodings(owner, line.as_bytes(), &mut needles));
    }
    // As a host's name is printed, whatever the case of the property that it came from.
    if text.len() >= MIN_TRIPWIRE && text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        needles.push(Needle::new(owner, CASE, text.as_bytes().to_vec()));
    }
    needles
}

pub(super) fn of_seal(owner: usize, seal: &str) -> Vec<Needle> {
    let mut needles = Vec::new();
    encodings(owner, seal.as_bytes(), &mut needles);
    let (head, tail) = seal.split_at(seal.len() / 2);
    for (text, form, check) in
        [(head, SPLIT, Check::SealHalves), (tail, SPLIT, Check::SealHalves), (seal, CASE, Check::SealCase)]
    {
        if check.on() {
            needles.push(Needle::new(owner, form, text.as_bytes().to_vec()));
        }
    }
    needles
}

fn encodings(owner: usize, bytes: &[u8], needles: &mut Vec<Needle>) {
    let mut add = |form, text: Zeroizing<Vec<u8>>| {
        if !needles.iter().rev().take(16).any(|needle| needle.owner == owner && *needle.text == *text) {
            needles.push(Needle { owner, form, text });
        }
    };
    add(PLAIN, Zeroizing::new(bytes.to_vec()));
    if Check::FormHex.on() {
        let pair = |byte: &u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
        add(HEX, Zeroizing::new(bytes.iter().flat_map(pair).collect::<Vec<u8>>()));
    }
    let mut padded = Zeroizing::new(Vec::with_capacity(bytes.len() + 2));
    padded.extend([0, 0]);
    padded.extend_from_slice(bytes);
    for offset in (0..3).filter(|_| Check::FormBase64.on()) {
        let text = aligned(&padded[2 - offset..], offset);
        if text.iter().any(|byte| b"+/".contains(byte)) {
            add(BASE64, for_urls(&text));
        }
        add(BASE64, text);
    }
}

/// Written in the alphabet for URLs.
fn for_urls(base64: &[u8]) -> Zeroizing<Vec<u8>> {
    let other = base64.iter().map(|byte| match byte {
        b'+' => b'-',
        b'/' => b'_',
        same => *same,
    });
    Zeroizing::new(other.collect())
}

/// The base64 characters that depend on the bytes behind the first `offset` alone.
fn aligned(padded: &[u8], offset: usize) -> Zeroizing<Vec<u8>> {
    let mut encoded = Zeroizing::new(STANDARD_NO_PAD.encode(padded).into_bytes());
    let (start, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
    encoded.truncate(end);
    encoded.drain(..start);
    encoded
}
