//! Recognises agent settings of other CPIs by their keys, plain, below base64, and below escapes of XML and of URLs.

use super::MIN_RUN;
use super::marker::{escape_length, is_base64};
use crate::net::response::raw_text::decode_escapes;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use wasm_cpi_checks::Check;

/// How often escapes of XML and of URLs are decoded: servers put a document into another one, and that into a URL.
const MOST_DECODINGS: usize = 3;

/// Returns true if a text, or its lines together, have the keys of settings, also if the text is escaped for XML or for
/// a URL.
pub(super) fn has_keys_in_lines(text: &str) -> bool {
    let has_keys = |text: &str| has_keys_in_text(text, 2) || has_keys_in_text(&joined_lines(text), 2);
    let mut decoded =
        std::iter::successors(decode_escapes(text), |decoded| decode_escapes(decoded)).take(MOST_DECODINGS);
    Check::SettingsShape.refuses(has_keys(text) || decoded.any(|decoded| has_keys(&decoded)))
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
pub(super) fn has_keys_of_settings(fields: &Map<String, Value>) -> bool {
    let parts = PARTS.iter().filter(|part| fields.contains_key(**part)).count();
    let full = fields.get("agent_id").is_some_and(Value::is_string) && parts >= 2;
    let endpoint = fields.get("registry").and_then(|registry| registry.get("endpoint"));
    let around = ["dns", "networks", "server", "vm"].iter().any(|key| fields.contains_key(*key));
    full || (endpoint.is_some_and(Value::is_string) && around)
}

/// Returns true if a text holds the keys of settings, plain, within JSON strings, or below base64
/// that was applied up to `depth` times.
fn has_keys_in_text(text: &str, depth: usize) -> bool {
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
            .any(|inner| has_keys_in_text(&inner, depth - 1))
}

/// Returns true if the text holds a key of JSON, even if its quotes are escaped or single ones, or of YAML.
fn has_key(text: &str, key: &str) -> bool {
    text.match_indices(key).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + key.len()..]);
        let is_word = before.ends_with(|c: char| c.is_alphanumeric() || "_-.".contains(c));
        let is_between = |quote| before.ends_with(quote) && after.trim_start_matches('\\').starts_with(quote);
        is_between('"') || is_between('\'') || (!is_word && after.starts_with(':'))
    })
}

/// Returns the text that a run of base64 encodes.
fn decoded(run: &str) -> Option<String> {
    const ANY_PADDING: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
    // A single character at the end encodes nothing.
    let whole = if run.len() % 4 == 1 { &run[..run.len() - 1] } else { run };
    let bytes = ENGINE.decode(whole.replace('-', "+").replace('_', "/")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
