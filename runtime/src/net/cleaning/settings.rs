//! Recognises agent settings in responses, and replaces them.
//!
//! A later call can read the user-data that an earlier call wrote: many APIs show it. User-data
//! that this host built has a public marker as its first and last key. User-data of other CPIs is
//! recognised by its keys. Both are found in plain text and below base64 at any alignment, however
//! the text is divided into lines. No value is compared with a secret here.

use super::PLACEHOLDER;
use super::documents::{Kind, sniffed};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use memchr::memmem;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{parse_json, replace_xml_texts};

/// The public marker in the first and the last key of user-data. It holds no character that JSON,
/// XML, URLs or shells escape.
pub const MARKER: &str = "wasm-cpi-agent-settings-5e0c7a41d29b";

/// The shortest run of base64 that is decoded: settings are longer.
const MIN_RUN: usize = 64;

/// The marker, and every text that base64 makes of it, up to twice: a guest asks for one, and a
/// server may add another one.
static PATTERNS: LazyLock<Vec<memmem::Finder<'static>>> = LazyLock::new(|| {
    let once = encoded(MARKER);
    let twice: Vec<String> = once.iter().flat_map(|text| encoded(text)).collect();
    let mut all: Vec<String> = [MARKER.to_owned()].into_iter().chain(once).chain(twice).collect();
    all.sort_unstable();
    all.dedup();
    all.iter().map(|text| memmem::Finder::new(text.as_bytes()).into_owned()).collect()
});

/// Returns the characters that base64 makes of the text wherever it stands in longer text: for each
/// alignment those that do not depend on what is around it.
fn encoded(text: &str) -> Vec<String> {
    let at = |offset: usize, engine: &GeneralPurpose| {
        let all = engine.encode([&b"\0\0"[..offset], text.as_bytes()].concat());
        all[(offset * 8).div_ceil(6)..(offset + text.len()) * 8 / 6].to_owned()
    };
    (0..3).flat_map(|offset| [at(offset, &BASE64_STANDARD_NO_PAD), at(offset, &BASE64_URL_SAFE_NO_PAD)]).collect()
}

/// Replaces agent settings in headers and body. Returns false if the body holds some and cannot be
/// written without them.
pub(super) fn replace(headers: &mut [(String, String)], body: &mut Vec<u8>) -> bool {
    for (_, value) in headers.iter_mut().filter(|(_, value)| are_in(value)) {
        PLACEHOLDER.clone_into(value);
    }
    if !may_be_in(body) {
        return true;
    }
    let document = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let changed = match sniffed(document) {
        Kind::Json => parse_json(document)
            .map_err(drop)
            .map(|mut value| replace_in(&mut value).then(|| value.to_string().into_bytes())),
        Kind::Xml => replace_xml_texts(document, &are_in, PLACEHOLDER).map_err(drop),
        Kind::Empty | Kind::Other => Err(()),
    };
    match changed {
        Ok(Some(changed)) => *body = changed,
        Ok(None) => {}
        Err(()) => return !are_in(&without_escapes(&String::from_utf8_lossy(body))),
    }
    // A marker that is divided between values is in none of them.
    Check::SettingsMarker.accepts(!has_divided_marker(body))
}

/// Returns false for most bodies without agent settings, so that they need not be parsed.
fn may_be_in(body: &[u8]) -> bool {
    let has = |text: &str| memmem::find(body, text.as_bytes()).is_some();
    ["agent_id", "registry", "\\u", "&#", "&lt;", "&amp;"].iter().any(|text| has(text))
        || has_long_run(body)
        || has_divided_marker(body)
}

/// Returns true if a body has base64 of the length of settings, even in short lines.
fn has_long_run(body: &[u8]) -> bool {
    let (mut run, mut at) = (0, 0);
    while let Some(byte) = body.get(at) {
        let divider = escape_length(&body[at..]);
        run = match byte {
            _ if divider > 0 => run,
            byte if is_base64(*byte) => run + 1,
            // A backslash may escape another one, which begins the escape of a line break.
            byte if byte.is_ascii_whitespace() || *byte == b'\\' => run,
            _ => 0,
        };
        if run >= MIN_RUN {
            return true;
        }
        at += divider.max(1);
    }
    false
}

/// Replaces agent settings in a value. Returns true if there were any.
fn replace_in(value: &mut Value) -> bool {
    let found = match value {
        Value::String(text) => are_in(text),
        Value::Object(fields) => {
            Check::SettingsMarker.refuses(fields.keys().any(|key| has_marker(key.as_bytes())))
                || Check::SettingsShape.refuses(are_settings(fields))
        }
        _ => false,
    };
    if found {
        *value = Value::String(PLACEHOLDER.to_owned());
        return true;
    }
    match value {
        Value::Array(items) => items.iter_mut().fold(false, |replaced, item| replace_in(item) | replaced),
        Value::Object(fields) => fields.values_mut().fold(false, |replaced, field| replace_in(field) | replaced),
        _ => false,
    }
}

/// Returns true if a text holds agent settings.
fn are_in(text: &str) -> bool {
    Check::SettingsMarker.refuses(has_divided_marker(text.as_bytes()))
        || Check::SettingsShape.refuses(has_shape(text, 2) || has_shape(&joined_lines(text), 2))
}

/// Returns true if text holds the marker, whatever divides it. A tag may divide the marker, or hold it.
fn has_divided_marker(text: &[u8]) -> bool {
    let all = letters(text, |_| 0);
    let undivided = letters(text, escape_length);
    has_marker(&all) || (undivided != all && has_marker(&undivided))
}

/// Returns true if text holds the marker.
fn has_marker(text: &[u8]) -> bool {
    text.len() >= MARKER.len() && PATTERNS.iter().any(|pattern| pattern.find(text).is_some())
}

/// Returns the characters that the marker and base64 consist of, without everything that may divide
/// them: white space, indentation, quotes, the zeros of UTF-16, and what `divider` returns the length of.
fn letters(text: &[u8], divider: fn(&[u8]) -> usize) -> Vec<u8> {
    let mut letters = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let length = divider(&text[at..]);
        if length == 0 && is_base64(*byte) {
            letters.push(*byte);
        }
        at += length.max(1);
    }
    letters
}

/// Returns the length of an escape of white space or a tag at the start of the text; 0 if there is none.
fn escape_length(text: &[u8]) -> usize {
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

/// Returns the text without what may divide base64: white space, its escapes, and tags.
fn joined_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let divider = escape_length(rest.as_bytes());
        if divider == 0 && !c.is_whitespace() {
            joined.push(c);
        }
        rest = &rest[if divider == 0 { c.len_utf8() } else { divider }..];
    }
    joined
}

/// The keys of settings beside `agent_id`, of which at least two are there.
const PARTS: [&str; 7] = ["blobstore", "disks", "env", "mbus", "networks", "ntp", "vm"];

/// Returns true if an object has the keys of settings, or of user-data that refers to the registry.
fn are_settings(fields: &Map<String, Value>) -> bool {
    let parts = PARTS.iter().filter(|part| fields.contains_key(**part)).count();
    let full = fields.get("agent_id").is_some_and(Value::is_string) && parts >= 2;
    let endpoint = fields.get("registry").and_then(|registry| registry.get("endpoint"));
    let around = ["dns", "networks", "server", "vm"].iter().any(|key| fields.contains_key(*key));
    full || (endpoint.is_some_and(Value::is_string) && around)
}

/// Returns true if a text holds the keys of settings, plain, within JSON strings, or below base64
/// that was applied up to `depth` times.
fn has_shape(text: &str, depth: usize) -> bool {
    let parts = || PARTS.iter().filter(|part| has_key(text, part)).count();
    let refers = || has_key(text, "endpoint") && has_key(text, "server");
    if (has_key(text, "agent_id") && parts() >= 2) || (has_key(text, "registry") && refers()) {
        return true;
    }
    depth > 0
        && text
            .split(|c: char| !c.is_ascii() || !is_base64(c as u8))
            .filter(|run| run.len() >= MIN_RUN)
            .filter_map(decoded)
            .any(|inner| has_shape(&inner, depth - 1))
}

/// Returns true if the text holds a key of JSON, even if its quotes are escaped, or of YAML.
fn has_key(text: &str, key: &str) -> bool {
    text.match_indices(key).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + key.len()..]);
        let is_word = before.ends_with(|c: char| c.is_alphanumeric() || "_-.".contains(c));
        (before.ends_with('"') && after.trim_start_matches('\\').starts_with('"'))
            || (!is_word && after.starts_with(':'))
    })
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// Returns what a run of base64 stands for, as far as it is text.
fn decoded(run: &str) -> Option<String> {
    const ANY_PADDING: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
    // A single character at the end stands for nothing.
    let whole = if run.len() % 4 == 1 { &run[..run.len() - 1] } else { run };
    let bytes = ENGINE.decode(whole.replace('-', "+").replace('_', "/")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces the escapes of JSON by their letters, in a text that cannot be parsed.
fn without_escapes(text: &str) -> String {
    let mut pieces = text.split("\\u");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(code.map_or('\\', char::from));
        plain.push_str(code.map_or(piece, |_| &piece[4..]));
    }
    plain.replace("\\n", "\n").replace("\\r", "\r")
}
