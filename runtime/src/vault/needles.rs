//! The byte strings to search for: a secret or a seal in every encoding that
//! changes all of its characters. Encodings that change single characters are
//! undone by `views` instead.
//!
//! A call has many secrets, and most are in no text that it looks at: a needle knows
//! how it begins, and is encoded as a whole when something begins like it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

use super::scanner::BEGINNING;
use super::{MIN_REDACTED, MIN_TRIPWIRE};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;

pub(super) const PLAIN: &str = "plain";
/// Half of a seal: of a seal cut in two, one piece holds such a half.
pub(super) const SPLIT: &str = "splitting";
/// The same letters, some of them in the other case.
pub(super) const CASE: &str = "changing its case";
/// In either alphabet.
pub(super) const BASE64: &str = "base64";
/// Found whatever the case of its digits.
pub(super) const HEX: &str = "hex";

/// A line this long of a secret with many lines is a secret by itself: texts
/// are often wrapped, indented or quoted line by line.
const MIN_LINE: usize = 32;

/// In every encoding a text becomes longer.
const _: () = assert!(MIN_REDACTED > BEGINNING);

/// So many bytes of a text give the beginnings of all of its encodings.
const BEGINS: usize = 8;

pub(super) struct Needle {
    /// Index of what it belongs to.
    pub(super) owner: usize,
    /// What was done to it.
    pub(super) form: &'static str,
    /// What it was done to.
    plain: Arc<Zeroizing<Vec<u8>>>,
    /// Of base64: how many bytes of a group stand before it.
    offset: usize,
    text: OnceLock<Zeroizing<Vec<u8>>>,
}

impl Needle {
    fn new(owner: usize, form: &'static str, plain: &Arc<Zeroizing<Vec<u8>>>, offset: usize) -> Self {
        Needle { owner, form, plain: Arc::clone(plain), offset, text: OnceLock::new() }
    }

    /// What is searched for.
    pub(super) fn text(&self) -> &[u8] {
        match self.form {
            HEX | BASE64 => self.text.get_or_init(|| self.encoded(&self.plain)),
            _ => &self.plain,
        }
    }

    /// How it begins.
    pub(super) fn beginning(&self) -> [u8; BEGINNING] {
        let short = &self.plain[..self.plain.len().min(BEGINS)];
        let encoded = match self.form {
            HEX | BASE64 => self.encoded(short),
            _ => Zeroizing::new(short.to_vec()),
        };
        std::array::from_fn(|at| encoded.get(at).copied().unwrap_or_default())
    }

    fn encoded(&self, plain: &[u8]) -> Zeroizing<Vec<u8>> {
        if self.form == HEX {
            let pair = |byte: &u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
            return Zeroizing::new(plain.iter().flat_map(pair).collect());
        }
        let mut padded = Zeroizing::new(vec![0; self.offset]);
        padded.extend_from_slice(plain);
        aligned(&padded, self.offset)
    }
}

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
        needles.push(Needle::new(owner, CASE, &shared(text), 0));
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
            needles.push(Needle::new(owner, form, &shared(text), 0));
        }
    }
    needles
}

fn encodings(owner: usize, bytes: &[u8], needles: &mut Vec<Needle>) {
    let plain = shared(bytes);
    needles.push(Needle::new(owner, PLAIN, &plain, 0));
    if Check::FormHex.on() {
        needles.push(Needle::new(owner, HEX, &plain, 0));
    }
    if Check::FormBase64.on() {
        needles.extend((0..3).map(|offset| Needle::new(owner, BASE64, &plain, offset)));
    }
}

fn shared(text: impl AsRef<[u8]>) -> Arc<Zeroizing<Vec<u8>>> {
    Arc::new(Zeroizing::new(text.as_ref().to_vec()))
}

/// The base64 characters that depend on the bytes behind the first `offset` alone.
fn aligned(padded: &[u8], offset: usize) -> Zeroizing<Vec<u8>> {
    let mut encoded = Zeroizing::new(STANDARD_NO_PAD.encode(padded).into_bytes());
    let (start, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
    encoded.truncate(end);
    encoded.drain(..start);
    encoded
}

/// A character of base64 in the alphabet that is not for URLs.
pub(super) fn standard(character: u8) -> u8 {
    match character {
        b'-' => b'+',
        b'_' => b'/',
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_begins_as_it_goes_on() {
        let text = "pässwörd/+-_ \"\n with all kinds of characters, and long enough to have lines\nof its own";
        for length in (MIN_REDACTED..text.len()).filter(|length| text.is_char_boundary(*length)) {
            let secret = Secret::new(&text[..length]);
            let needles = [of_secret(0, &secret), of_seal(0, &text[..length].replace(|c: char| !c.is_ascii(), "x"))];
            for needle in needles.iter().flatten().filter(|needle| needle.text().len() >= BEGINNING) {
                let (form, whole) = (needle.form, String::from_utf8_lossy(needle.text()));
                assert!(needle.text().starts_with(&needle.beginning()), "{form}: {whole}");
            }
            let forms = |form| needles[0].iter().filter(|needle| needle.form == form).count();
            assert!(forms(HEX) >= 1 && forms(BASE64) >= 3, "{length}");
        }
    }
}
