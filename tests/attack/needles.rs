//! Searches bytes for many secrets at once, each in every encoding in which it
//! could leak.
//!
//! It looks for the start, the middle and the end of each encoded secret, so that
//! it also finds a part of one. It shares no code with the runtime, which searches
//! for the same secrets.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

/// The length of a needle, unless the encoded secret is shorter.
const WINDOW: usize = 16;
/// The length of the prefix by which needles are indexed. No needle is shorter.
const KEY: usize = 8;
/// The number of levels of JSON in JSON that are unescaped.
const NESTED: usize = 3;

struct Needle {
    name: String,
    form: &'static str,
    /// True if the encoded secret starts with this needle.
    first: bool,
    bytes: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Needles {
    all: Vec<Needle>,
    by_key: HashMap<[u8; KEY], Vec<usize>>,
}

impl Needles {
    /// Returns the needles of one secret.
    pub(crate) fn of(name: &str, secret: &str) -> Needles {
        let mut needles = Needles::default();
        needles.add(name, secret);
        needles
    }

    /// Adds the needles of a secret. Panics if it is too short.
    pub(crate) fn add(&mut self, name: &str, secret: &str) {
        for (form, bytes) in forms(secret) {
            let last = bytes.len().saturating_sub(WINDOW);
            for start in [0, last / 2, last] {
                let window = bytes[start..bytes.len().min(start + WINDOW)].to_vec();
                let Some(key) = window.first_chunk() else { panic!("the secret {name} is too short to search for") };
                let same = self.by_key.entry(*key).or_default();
                if !same.iter().any(|at| self.all[*at].name == name && self.all[*at].bytes == window) {
                    same.push(self.all.len());
                    self.all.push(Needle { name: name.to_owned(), form, first: start == 0, bytes: window });
                }
            }
        }
    }

    /// Returns the names of the secrets in the bytes, each with its form: `password (base64)`.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Vec<String> {
        self.hits(bytes).iter().map(|(name, form)| format!("{name} ({form})")).collect()
    }

    /// Returns the names of the secrets in the bytes.
    pub(crate) fn names_in(&self, bytes: &[u8]) -> BTreeSet<String> {
        self.hits(bytes).into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    fn hits(&self, bytes: &[u8]) -> BTreeSet<(&str, &'static str)> {
        let mut hits = BTreeSet::new();
        let mut view = bytes.to_vec();
        for _ in 0..=NESTED {
            for (at, key) in view.windows(KEY).enumerate() {
                let needles = key.try_into().ok().and_then(|key: [u8; KEY]| self.by_key.get(&key));
                let here = needles.into_iter().flatten().map(|index| &self.all[*index]);
                hits.extend(
                    here.filter(|one| view[at..].starts_with(&one.bytes)).map(|one| (one.name.as_str(), one.form)),
                );
            }
            match unescaped(&view) {
                Some(next) => view = next,
                None => break,
            }
        }
        hits
    }

    /// Returns operations of the probe that search the guest's memory for the starts
    /// of the secrets. The operations themselves do not hold them. Without `all`, only
    /// the plain and the JSON forms are searched for.
    pub(crate) fn search_operations(&self, all: bool) -> Vec<Value> {
        let wanted = |needle: &&Needle| needle.first && (all || ["plain", "JSON"].contains(&needle.form));
        self.all.iter().filter(wanted).map(|needle| search_operation(&needle.bytes)).collect()
    }
}

fn search_operation(needle: &[u8]) -> Value {
    match std::str::from_utf8(needle) {
        Ok(text) if text.is_ascii() => json!({"op": "find", "reversed": text.chars().rev().collect::<String>()}),
        _ => {
            // In mixed case, as the hex forms in upper and in lower case are needles, too.
            let mut upper = false;
            let hex: String = hex(needle)
                .chars()
                .map(|digit| {
                    upper ^= digit.is_ascii_alphabetic();
                    if upper { digit.to_ascii_uppercase() } else { digit }
                })
                .collect();
            let has = |test: fn(&char) -> bool| hex.chars().any(|digit| test(&digit));
            assert!(has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase), "{hex} has fewer than two letters");
            json!({"op": "find", "hex": hex})
        }
    }
}

/// Returns a secret in plain text and in every encoding, each with the name of the form.
pub(crate) fn forms(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = secret.as_bytes();
    let quoted = json!(secret).to_string();
    let escaped = &quoted[1..quoted.len() - 1];
    let mut forms = vec![
        ("plain", bytes.to_vec()),
        ("JSON", escaped.as_bytes().to_vec()),
        ("JSON in ASCII", ascii(escaped).into_bytes()),
        ("XML", xml(secret).into_bytes()),
        ("hex", hex(bytes).into_bytes()),
        ("HEX", hex(bytes).to_uppercase().into_bytes()),
    ];
    for (form, reserved) in [("percent", false), ("percent of all", true)] {
        let upper = percent(bytes, reserved);
        forms.push((form, lower_escapes(&upper).into_bytes()));
        forms.push(("form", upper.replace("%20", "+").into_bytes()));
        forms.push((form, upper.into_bytes()));
    }
    for text in [secret, escaped, &ascii(escaped)] {
        for offset in 0..3 {
            forms.push(("base64", aligned(&STANDARD_NO_PAD, text, offset)));
            forms.push(("base64url", aligned(&URL_SAFE_NO_PAD, text, offset)));
        }
    }
    let mut distinct: Vec<(&'static str, Vec<u8>)> = Vec::new();
    for form in forms {
        if !distinct.iter().any(|(_, known)| *known == form.1) {
            distinct.push(form);
        }
    }
    distinct
}

/// Returns the base64 characters of a text that do not depend on what is before and after it.
fn aligned(engine: &impl base64::Engine, text: &str, offset: usize) -> Vec<u8> {
    let padded = [&vec![b'x'; offset][..], text.as_bytes()].concat();
    let encoded = engine.encode(&padded).into_bytes();
    encoded[(offset * 8).div_ceil(6)..padded.len() * 8 / 6].to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn percent(bytes: &[u8], all: bool) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let _ = if plain && !all { write!(text, "{}", char::from(*byte)) } else { write!(text, "%{byte:02X}") };
        text
    })
}

/// Returns `%2f` for `%2F`, and leaves other letters unchanged.
fn lower_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "%" + &part[..2].to_lowercase() + &part[2..])
}

fn ascii(text: &str) -> String {
    text.chars().fold(String::new(), |mut ascii, c| {
        let mut units = [0; 2];
        if c.is_ascii() {
            ascii.push(c);
        } else {
            c.encode_utf16(&mut units).iter().for_each(|unit| {
                let _ = write!(ascii, "\\u{unit:04x}");
            });
        }
        ascii
    })
}

fn xml(text: &str) -> String {
    let entities = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&apos;")];
    entities.iter().fold(text.to_owned(), |text, (c, entity)| text.replace(*c, entity))
}

/// Undoes one level of the escapes of JSON and of our logs. Returns None if there are none.
fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(bytes.len());
    let (mut at, mut changed) = (0, false);
    while at < bytes.len() {
        let (unit, length) = escape(&bytes[at..]).unwrap_or((None, 1));
        changed |= unit.is_some();
        match unit {
            Some(c) => plain.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            None => plain.push(bytes[at]),
        }
        at += length;
    }
    changed.then_some(plain)
}

/// Returns the character of an escape at the start of the bytes, and the escape's length.
fn escape(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    let digits = |from: usize, to: usize| u32::from_str_radix(std::str::from_utf8(bytes.get(from..to)?).ok()?, 16).ok();
    if bytes.first() != Some(&b'\\') {
        return None;
    }
    let c = match bytes.get(1)? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        c @ (b'"' | b'\\' | b'/' | b'\'') => char::from(*c),
        b'u' if bytes.get(2) == Some(&b'{') => {
            let end = bytes.iter().take(12).position(|byte| *byte == b'}')?;
            return Some((Some(char::from_u32(digits(3, end)?)?), end + 1));
        }
        b'u' => {
            let first = digits(2, 6)?;
            if let Some(c) = char::from_u32(first) {
                return Some((Some(c), 6));
            }
            let units = [u16::try_from(first).ok()?, u16::try_from(digits(8, 12)?).ok()?];
            return Some((Some(char::decode_utf16(units).next()?.ok()?), 12));
        }
        _ => return None,
    };
    Some((Some(c), 2))
}
