//! Recognises agent settings in responses, and replaces them.
//!
//! A later call can read the user-data that an earlier call wrote: many APIs show it. User-data
//! that this host built has a public marker as its first and last key. User-data of other CPIs is
//! recognised by its keys. Both are found in plain text and below base64 at any alignment, however
//! the text is divided into lines. A value that holds settings as a whole is replaced. If a value holds a
//! piece of marked settings, the other pieces are somewhere in the same response, so all of it is withheld.
//! No value is compared with a secret here.

mod marker;

pub use marker::MARKER;

use super::PLACEHOLDER;
use super::documents::{Kind, sniffed};
use crate::net::raw_text::{without_byte_order_mark, without_escapes};
use crate::vault::{Patience, SearchStopped};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use marker::{Found, escape_length, is_base64};
use memchr::memmem;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{parse_json, replace_xml_texts};
use wasm_cpi_policy::strict_json::is_affordable;

/// The shortest run of base64 that is decoded: settings are longer.
const MIN_RUN: usize = 64;

/// Replaces agent settings in headers and body. Returns false if the response holds some and cannot be
/// written without them, or if it shows pieces of them. Fails if the call ends first.
pub(super) fn replace(
    headers: &mut [(String, String)],
    body: &mut Vec<u8>,
    patience: &Patience<'_>,
) -> Result<bool, SearchStopped> {
    let mut pieces = Pieces::new(patience);
    let is_clean = replace_all(headers, body, &mut pieces);
    pieces.searched.map(|()| is_clean)
}

fn replace_all(headers: &mut [(String, String)], body: &mut Vec<u8>, pieces: &mut Pieces<'_>) -> bool {
    let top = FieldPath::top();
    for (name, value) in headers.iter_mut() {
        pieces.note(marker::find(name.as_bytes()));
        if pieces.are_in(&top, value) {
            PLACEHOLDER.clone_into(value);
        }
    }
    if !may_be_in(body) {
        return pieces.are_absent();
    }
    let document = without_byte_order_mark(body);
    let changed = match sniffed(document) {
        Kind::Json => read_json(document).map(|(mut value, exact)| {
            (replace_in(&mut value, &top, pieces) || !exact).then(|| value.to_string().into_bytes())
        }),
        Kind::Xml => {
            let (texts, path) = (RefCell::new(&mut *pieces), top.below("xml"));
            let are_in = |text: &str| texts.borrow_mut().are_in(&path, text);
            replace_xml_texts(document, &are_in, PLACEHOLDER).map_err(drop)
        }
        Kind::Empty | Kind::Other => Err(()),
    };
    let Ok(changed) = changed else {
        let text = without_escapes(&String::from_utf8_lossy(body)).replace("\\n", "\n").replace("\\r", "\r");
        return pieces.are_absent() && !are_in(&text);
    };
    // A marker that is divided between values is in none of them.
    let left = changed.as_deref().unwrap_or(body);
    let is_clean = pieces.are_absent() && Check::SettingsDivided.accepts(!marker::is_divided_in(left));
    if let (true, Some(changed)) = (is_clean, changed) {
        *body = changed;
    }
    is_clean
}

/// Returns a JSON document, and false if it has a key twice. Such a document is written anew, so that the guest gets
/// what was read here.
fn read_json(document: &[u8]) -> Result<(Value, bool), ()> {
    if let Ok(value) = parse_json(document) {
        return Ok((value, true));
    }
    let is_affordable = Check::JsonMemory.accepts(is_affordable(document));
    if is_affordable { serde_json::from_slice(document).map(|value| (value, false)).map_err(drop) } else { Err(()) }
}

/// Returns true if a text holds the marker of agent settings, plain or in base64, whatever divides it.
pub fn holds_marker(text: &str) -> bool {
    marker::is_divided_in(text.as_bytes())
}

/// The names of the fields that hold a text, as a hash: an answer may have thousands of texts below long names.
#[derive(Clone)]
struct FieldPath(DefaultHasher);

impl FieldPath {
    /// Returns the path of a document. Every one has another key, so no server can choose names with equal hashes.
    fn top() -> FieldPath {
        FieldPath(RandomState::new().build_hasher())
    }

    fn below(&self, name: &str) -> FieldPath {
        let mut path = self.clone();
        name.hash(&mut path.0);
        path
    }
}

/// What the texts of a response hold of agent settings that a server shows in pieces.
struct Pieces<'a> {
    patience: &'a Patience<'a>,
    /// An error once the call is over. The remaining texts are then not searched.
    searched: Result<(), SearchStopped>,
    is_shown: bool,
    /// The letters of all texts that stay, by the hashes of their paths: other fields may stand between two lines.
    columns: HashMap<u64, Vec<u8>>,
}

impl<'a> Pieces<'a> {
    fn new(patience: &'a Patience<'a>) -> Self {
        Pieces { patience, searched: Ok(()), is_shown: false, columns: HashMap::new() }
    }

    /// Returns false once the call is over.
    fn go_on(&mut self) -> bool {
        self.searched = self.searched.and_then(|()| self.patience.go_on());
        self.searched.is_ok()
    }

    fn note(&mut self, found: Found) {
        self.is_shown |= Check::SettingsDivided.refuses(found == Found::Piece);
    }

    /// Returns true if a text below these fields holds agent settings, or a piece of them.
    fn are_in(&mut self, path: &FieldPath, text: &str) -> bool {
        if !self.go_on() {
            return false;
        }
        let found = marker::find(text.as_bytes());
        self.note(found);
        if Check::SettingsMarker.refuses(found != Found::Nothing) || has_shape_in_lines(text) {
            return true;
        }
        self.columns.entry(path.0.finish()).or_default().extend(marker::letters(text.as_bytes(), |_| 0));
        false
    }

    /// Returns true if no text is a piece, and no texts of one column hold a marker together.
    fn are_absent(&self) -> bool {
        let together = self.columns.values().any(|letters| marker::is_in(letters));
        !self.is_shown && Check::SettingsDivided.accepts(!together)
    }
}

/// Returns false for most bodies without agent settings, so that they need not be parsed.
fn may_be_in(body: &[u8]) -> bool {
    let has = |text: &str| memmem::find(body, text.as_bytes()).is_some();
    ["agent_id", "registry", "\\u", "&#", "&lt;", "&amp;"].iter().any(|text| has(text))
        || has_long_run(body)
        || marker::may_be_in(body)
        || marker::is_divided_in(body)
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
fn replace_in(value: &mut Value, path: &FieldPath, pieces: &mut Pieces<'_>) -> bool {
    let found = match value {
        Value::String(text) => pieces.are_in(path, text),
        Value::Object(fields) => {
            let found = marker::find_in_keys(fields.keys().take_while(|_| pieces.go_on()));
            pieces.note(found);
            Check::SettingsMarker.refuses(found != Found::Nothing) || Check::SettingsShape.refuses(are_settings(fields))
        }
        _ => false,
    };
    if found {
        *value = Value::String(PLACEHOLDER.to_owned());
        return true;
    }
    match value {
        Value::Array(items) => items.iter_mut().fold(false, |replaced, item| replace_in(item, path, pieces) | replaced),
        Value::Object(fields) => fields
            .iter_mut()
            .fold(false, |replaced, (name, field)| replace_in(field, &path.below(name), pieces) | replaced),
        _ => false,
    }
}

/// Returns true if a text that is not a document holds agent settings, or a piece of them.
fn are_in(text: &str) -> bool {
    Check::SettingsMarker.refuses(marker::find(text.as_bytes()) != Found::Nothing) || has_shape_in_lines(text)
}

/// Returns true if a text, or its lines together, have the keys of settings.
fn has_shape_in_lines(text: &str) -> bool {
    Check::SettingsShape.refuses(has_shape(text, 2) || has_shape(&joined_lines(text), 2))
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
