//! Needles, the byte strings to search for: a secret or a seal in every encoding that
//! changes all of its characters. `views` undoes encodings that change single
//! characters.
//!
//! A call has many secrets, and most of them occur in no text that is searched. So
//! a needle computes its head only, and is encoded completely when a text holds the
//! head.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::fmt;
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

use super::{MIN_REDACTED, MIN_TRIPWIRE};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;

/// The encoding of a needle or a view, or the change that was made. A message about a changed seal
/// names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// Half of a secret or a seal, or a short line of a secret. If a seal is cut in two, one piece holds a complete half.
    Half,
    /// Text that is wrapped in lines.
    Wrapped,
    /// The same letters, some of them in the other case.
    OtherCase,
    /// Base64 in either alphabet.
    Base64,
    /// Hexadecimal digits in any case.
    Hex,
    Json,
    Percent,
    Xml,
    Utf16,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Plain => "plain",
            Form::Half | Form::Wrapped => "splitting",
            Form::OtherCase => "changing its case",
            Form::Base64 => "base64",
            Form::Hex => "hex",
            Form::Json => "JSON escapes",
            Form::Percent => "percent-encoding",
            Form::Xml => "XML entities",
            Form::Utf16 => "UTF-16",
        })
    }
}

/// Lines of at least this length are searched for separately, because texts are often
/// wrapped, indented or quoted line by line.
const MIN_LINE: usize = 32;

/// The number of bytes of a needle that are searched for first.
pub(super) const HEAD: usize = 12;

/// A secret or a seal in one encoding.
pub(super) struct Needle {
    /// The index of the secret or seal.
    pub(super) owner: usize,
    pub(super) form: Form,
    /// The text before encoding.
    plain: Arc<Zeroizing<Vec<u8>>>,
    /// For base64, the number of bytes of a group before the text.
    offset: usize,
    text: OnceLock<Zeroizing<Vec<u8>>>,
}

impl Needle {
    fn new(owner: usize, form: Form, plain: &Arc<Zeroizing<Vec<u8>>>, offset: usize) -> Self {
        Needle { owner, form, plain: Arc::clone(plain), offset, text: OnceLock::new() }
    }

    /// Returns the bytes to search for, as `folded` writes them.
    pub(super) fn text(&self) -> &[u8] {
        match self.form {
            Form::Hex | Form::Base64 => self.text.get_or_init(|| self.encoded(&self.plain)),
            Form::OtherCase => self.text.get_or_init(|| Zeroizing::new(self.plain.to_ascii_lowercase())),
            _ => &self.plain,
        }
    }

    /// Returns the length of `text`, without encoding it.
    pub(super) fn len(&self) -> usize {
        match self.form {
            Form::Hex => 2 * self.plain.len(),
            Form::Base64 => {
                let (start, end) = aligned_span(self.offset + self.plain.len(), self.offset);
                end - start
            }
            _ => self.plain.len(),
        }
    }

    /// Returns true if the case of letters does not matter.
    pub(super) fn is_any_case(&self) -> bool {
        matches!(self.form, Form::Hex | Form::OtherCase)
    }

    /// Returns a byte of a searched text in the form in which it is compared with `text`.
    pub(super) fn folded(&self, byte: u8) -> u8 {
        match self.form {
            Form::Hex | Form::OtherCase => byte.to_ascii_lowercase(),
            Form::Base64 => standard(byte),
            _ => byte,
        }
    }

    /// Returns the first bytes of `text` without encoding all of it: once, or in both alphabets of
    /// base64 if they differ.
    pub(super) fn heads(&self) -> impl Iterator<Item = Zeroizing<Vec<u8>>> {
        let short = &self.plain[..self.plain.len().min(HEAD)];
        let mut head = match self.form {
            Form::Hex | Form::Base64 => self.encoded(short),
            _ => Zeroizing::new(short.to_vec()),
        };
        head.truncate(HEAD);
        let for_urls: Vec<u8> = head.iter().map(|character| url_safe(*character)).collect();
        let differs = self.form == Form::Base64 && for_urls != *head;
        std::iter::once(head).chain(differs.then(|| Zeroizing::new(for_urls)))
    }

    fn encoded(&self, plain: &[u8]) -> Zeroizing<Vec<u8>> {
        if self.form == Form::Hex {
            let pair = |byte: &u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
            return Zeroizing::new(plain.iter().flat_map(pair).collect());
        }
        let mut padded = Zeroizing::new(vec![0; self.offset]);
        padded.extend_from_slice(plain);
        aligned(&padded, self.offset)
    }
}

/// Returns the length of the shortest needle that a secret can have.
pub(super) fn shortest(secret: &Secret) -> usize {
    let text = secret.reveal().trim();
    match text.len() {
        length if text.contains('\n') => length.min(MIN_REDACTED),
        length if length >= 2 * MIN_TRIPWIRE => length / 2,
        length => length,
    }
}

/// Returns the needles of a secret.
pub(super) fn of_secret(owner: usize, secret: &Secret) -> Vec<Needle> {
    let text = secret.reveal().trim();
    let mut needles = Vec::new();
    if text.len() >= MIN_REDACTED {
        encodings(owner, text.as_bytes(), &mut needles);
        // The form of the secret in a JSON document that is encoded as a whole.
        let quoted = Zeroizing::new(serde_json::to_string(text).unwrap_or_default());
        if let Some(escaped) = quoted.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"'))
            && escaped != text
        {
            Check::FormJson.perform(|| encodings(owner, escaped.as_bytes(), &mut needles));
        }
        if !text.is_ascii() {
            // Some programs write JSON in ASCII, such as Python's `json`.
            let ascii = Zeroizing::new(
                quoted
                    .get(1..quoted.len().saturating_sub(1))
                    .unwrap_or_default()
                    .chars()
                    .map(in_ascii)
                    .collect::<String>(),
            );
            Check::FormJson.perform(|| encodings(owner, ascii.as_bytes(), &mut needles));
        }
    }
    if Check::SecretLines.choose(text.contains('\n'), false) {
        // `-----BEGIN …-----` occurs in every PEM file.
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE && !line.starts_with("-----"));
        lines.for_each(|line| drop(plain_and_base64(owner, line.as_bytes(), &mut needles)));
        // Shorter lines are redacted only: a guest could guess them.
        let short = text.lines().map(str::trim).filter(|line| (MIN_REDACTED..MIN_LINE).contains(&line.len()));
        let short = short.filter(|line| !line.starts_with("-----"));
        needles.extend(short.map(|line| Needle::new(owner, Form::Half, &shared(line), 0)));
        add_other_lines(owner, text, &mut needles);
    }
    // A server that quotes a part of a request cuts it anywhere, so one half of a long secret is redacted alone.
    if text.len() >= 2 * MIN_TRIPWIRE && text.is_ascii() && !text.contains('\n') {
        let (head, tail) = text.split_at(text.len() / 2);
        needles.extend([head, tail].map(|half| Needle::new(owner, Form::Half, &shared(half), 0)));
    }
    // The name of a host is printed in lower case, whatever the case of its property.
    if text.len() >= MIN_TRIPWIRE && text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        needles.push(Needle::new(owner, Form::OtherCase, &shared(text), 0));
    }
    needles
}

/// Adds the forms of a secret of several lines in which its lines end in another way, or are indented.
fn add_other_lines(owner: usize, text: &str, needles: &mut Vec<Needle>) {
    let lines: Vec<&str> = text.lines().collect();
    // The view without line ends has no white space around them, either.
    let joined = Zeroizing::new(lines.iter().map(|line| line.trim()).collect::<String>());
    let form = if joined.len() < MIN_TRIPWIRE { Form::Half } else { Form::Wrapped };
    if joined.len() >= MIN_REDACTED {
        needles.push(Needle::new(owner, form, &shared(joined.as_bytes()), 0));
    }
    for end in ["\n", "\r\n"] {
        let other = Zeroizing::new(lines.join(end));
        if other.as_str() != text && other.len() >= MIN_REDACTED {
            encodings(owner, other.as_bytes(), needles);
        }
    }
}

/// Returns a character as JSON in ASCII writes it.
fn in_ascii(c: char) -> String {
    let escape = |unit: &u16| format!("\\u{unit:04x}");
    if c.is_ascii() { c.to_string() } else { c.encode_utf16(&mut [0; 2]).iter().map(escape).collect() }
}

/// Returns the needles of a seal.
pub(super) fn of_seal(owner: usize, seal: &str) -> Vec<Needle> {
    let mut needles = Vec::new();
    encodings(owner, seal.as_bytes(), &mut needles);
    let (head, tail) = seal.split_at(seal.len() / 2);
    for (text, form, check) in [
        (head, Form::Half, Check::SealHalves),
        (tail, Form::Half, Check::SealHalves),
        (seal, Form::OtherCase, Check::SealCase),
    ] {
        check.perform(|| needles.push(Needle::new(owner, form, &shared(text), 0)));
    }
    needles
}

fn encodings(owner: usize, bytes: &[u8], needles: &mut Vec<Needle>) {
    let plain = plain_and_base64(owner, bytes, needles);
    Check::FormHex.perform(|| needles.push(Needle::new(owner, Form::Hex, &plain, 0)));
}

/// Adds the forms in which texts quote single lines of a secret.
fn plain_and_base64(owner: usize, bytes: &[u8], needles: &mut Vec<Needle>) -> Arc<Zeroizing<Vec<u8>>> {
    let plain = shared(bytes);
    needles.push(Needle::new(owner, Form::Plain, &plain, 0));
    Check::FormBase64.perform(|| needles.extend((0..3).map(|offset| Needle::new(owner, Form::Base64, &plain, offset))));
    plain
}

fn shared(text: impl AsRef<[u8]>) -> Arc<Zeroizing<Vec<u8>>> {
    Arc::new(Zeroizing::new(text.as_ref().to_vec()))
}

/// Returns the base64 characters that depend only on the bytes after the first `offset`.
fn aligned(padded: &[u8], offset: usize) -> Zeroizing<Vec<u8>> {
    let mut encoded = Zeroizing::new(STANDARD_NO_PAD.encode(padded).into_bytes());
    let (start, end) = aligned_span(padded.len(), offset);
    encoded.truncate(end);
    encoded.drain(..start);
    encoded
}

/// Returns the start and end of those characters, for a text of `length` bytes.
fn aligned_span(length: usize, offset: usize) -> (usize, usize) {
    ((offset * 8).div_ceil(6), length * 8 / 6)
}

/// Converts a character of the base64 alphabet for URLs to the standard alphabet.
fn standard(character: u8) -> u8 {
    match character {
        b'-' => b'+',
        b'_' => b'/',
        same => same,
    }
}

fn url_safe(character: u8) -> u8 {
    match character {
        b'+' => b'-',
        b'/' => b'_',
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_needle_is_the_start_of_its_text() {
        let text = "pässwörd/+-_ \"\n with all kinds of characters, and long enough to have lines\nof its own";
        for length in (MIN_REDACTED..text.len()).filter(|length| text.is_char_boundary(*length)) {
            let secret = Secret::new(&text[..length]);
            let needles = [of_secret(0, &secret), of_seal(0, &text[..length].replace(|c: char| !c.is_ascii(), "x"))];
            for needle in needles.iter().flatten() {
                let (form, whole) = (needle.form, String::from_utf8_lossy(needle.text()));
                assert_eq!(needle.len(), needle.text().len(), "{form}: {whole}");
                for head in needle.heads() {
                    let folded: Vec<u8> = head.iter().map(|byte| needle.folded(*byte)).collect();
                    assert!(
                        head.len() == needle.len().min(HEAD) && needle.text().starts_with(&folded),
                        "{form}: {whole}"
                    );
                }
            }
            let forms = |form| needles[0].iter().filter(|needle| needle.form == form).count();
            assert!(forms(Form::Hex) >= 1 && forms(Form::Base64) >= 3, "{length}");
        }
    }
}
