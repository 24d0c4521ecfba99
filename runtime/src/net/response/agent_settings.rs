//! The sixth step: recognises agent settings, and replaces them.
//!
//! A later call can read the user-data that an earlier call wrote: many APIs show it. User-data
//! that this host built has a public marker as its first and last key. User-data of other CPIs is
//! recognised by its keys. Both are found in plain text and below base64 at any alignment, however
//! the text is divided into lines. A value that holds settings as a whole is replaced. If a value holds a
//! piece of marked settings, the other pieces are somewhere in the same response, so all of it is withheld.
//! No value is compared with a secret here.

mod marker;
mod shape;

pub use marker::MARKER;

use super::documents::{Kind, sniffed};
use super::raw_text::{without_byte_order_mark, without_escapes};
use super::withheld::{WithheldKind, WithheldResponse};
use super::{ResponseInScreening, keep_status_only};
use crate::vault::{SearchDeadline, SearchStopped};
use marker::{Match, escape_length, is_base64};
use memchr::memmem;
use serde_json::Value;
use shape::{has_keys_in_lines, has_keys_of_settings};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::place::{parse_json, replace_xml_texts};
use wasm_cpi_policy::strict_json::is_affordable;

/// What is in a response in place of agent settings.
pub(super) const PLACEHOLDER: &str = "(withheld: agent settings)";

/// The shortest run of base64 that is decoded: settings are longer.
const MIN_RUN: usize = 64;

/// Replaces agent settings in a response, or withholds it if that is not possible.
pub(super) fn replace_settings(
    response: &mut ResponseInScreening<'_>,
    deadline: &SearchDeadline<'_>,
) -> Result<(), WithheldResponse> {
    match replace_all(response.headers, response.body, deadline) {
        Ok(true) => Ok(()),
        Ok(false) => Check::SettingsWithheld.perform_or(Ok(()), || withhold(response)),
        Err(stopped) => {
            let (method, path, why) = (response.method, response.path, stopped.to_string());
            Err(WithheldResponse::new(method, path, WithheldKind::NotCleaned, &why))
        }
    }
}

/// Withholds a response with agent settings that cannot be removed. It is the same for all of them, whatever else is
/// wrong with the response: what settings hold must not decide which error the guest gets.
pub(super) fn withhold(response: &mut ResponseInScreening<'_>) -> Result<(), WithheldResponse> {
    if response.status >= 400 {
        keep_status_only(response.headers, response.body);
        return Ok(());
    }
    let why = "it holds agent settings in pieces, or is not JSON or XML from which they can be removed; do not ask for \
               it, or list the places that show them under `drop` of the grant";
    let error = WithheldResponse::new(response.method, response.path, WithheldKind::NotCleaned, why);
    Err(error.refused_by(Check::SettingsWithheld))
}

/// Returns true if the response holds agent settings that cannot be removed from it.
pub(super) fn cannot_be_removed(response: &ResponseInScreening<'_>, deadline: &SearchDeadline<'_>) -> bool {
    let (mut headers, mut body) = (response.headers.clone(), response.body.clone());
    Check::SettingsWithheld.refuses(replace_all(&mut headers, &mut body, deadline) == Ok(false))
}

/// Replaces agent settings in a text. Returns false if they cannot be removed.
pub(super) fn replace_in_text(text: &mut Vec<u8>, deadline: &SearchDeadline<'_>) -> bool {
    Check::SettingsWithheld.accepts(replace_all(&mut [], text, deadline) == Ok(true))
}

/// Returns a JSON object without agent settings; an empty one if they cannot be removed. It is for documents that do
/// not come with headers.
pub fn clean_json(text: &str) -> String {
    let mut body = text.as_bytes().to_vec();
    let is_clean = replace_all(&mut [], &mut body, &SearchDeadline::unlimited()) == Ok(true);
    is_clean.then(|| String::from_utf8(body).ok()).flatten().unwrap_or_else(|| "{}".to_owned())
}

/// Returns true if a text holds the marker of agent settings, plain or in base64, whatever divides it.
pub fn holds_marker(text: &str) -> bool {
    marker::contains_divided_marker(text.as_bytes())
}

/// Replaces agent settings in headers and body. Returns false if the response holds some and cannot be
/// written without them, or if it shows pieces of them. Fails if the call ends first.
pub(super) fn replace_all(
    headers: &mut [(String, String)],
    body: &mut Vec<u8>,
    deadline: &SearchDeadline<'_>,
) -> Result<bool, SearchStopped> {
    let mut search = SettingsSearch::new(deadline);
    let is_clean = search.replace_in_message(headers, body);
    search.result.map(|()| is_clean)
}

/// The names of the fields that hold a text, as a hash: a response may have thousands of texts below long names.
#[derive(Clone)]
struct FieldPathHash(DefaultHasher);

impl FieldPathHash {
    /// Returns the path of a document. Every one has another key, so no server can choose names with equal hashes.
    fn top() -> FieldPathHash {
        FieldPathHash(RandomState::new().build_hasher())
    }

    fn below(&self, name: &str) -> FieldPathHash {
        let mut path = self.clone();
        name.hash(&mut path.0);
        path
    }
}

/// The search for agent settings in one response.
struct SettingsSearch<'a> {
    deadline: &'a SearchDeadline<'a>,
    /// An error once the call is over. The remaining texts are then not searched.
    result: Result<(), SearchStopped>,
    /// True if a text holds a piece of marked settings.
    found_piece: bool,
    /// The base64 characters of all texts that stay, joined per path of field names, so that settings which a
    /// server splits over several values of one field are found.
    text_by_field: HashMap<u64, Vec<u8>>,
}

impl<'a> SettingsSearch<'a> {
    fn new(deadline: &'a SearchDeadline<'a>) -> Self {
        SettingsSearch { deadline, result: Ok(()), found_piece: false, text_by_field: HashMap::new() }
    }

    /// Replaces settings in headers and body. Returns false if that is not possible.
    fn replace_in_message(&mut self, headers: &mut [(String, String)], body: &mut Vec<u8>) -> bool {
        let top = FieldPathHash::top();
        for (name, value) in headers.iter_mut() {
            self.record_match(marker::classify(name.as_bytes()));
            if self.text_holds_settings(&top, value) {
                PLACEHOLDER.clone_into(value);
            }
        }
        if !may_hold_settings(body) {
            return self.found_no_piece();
        }
        let document = without_byte_order_mark(body);
        let changed = match sniffed(document) {
            Kind::Json => read_json(document).map(|(mut value, exact)| {
                let replaced = self.replace_in_value(&mut value, &top);
                (replaced || !exact).then(|| value.to_string().into_bytes())
            }),
            Kind::Xml => {
                let (search, path) = (RefCell::new(&mut *self), top.below("xml"));
                let holds_settings = |text: &str| search.borrow_mut().text_holds_settings(&path, text);
                replace_xml_texts(document, &holds_settings, PLACEHOLDER).map_err(drop)
            }
            Kind::Empty | Kind::Other => Err(()),
        };
        let Ok(changed) = changed else {
            let text = without_escapes(&String::from_utf8_lossy(body)).replace("\\n", "\n").replace("\\r", "\r");
            return self.found_no_piece() && !holds_settings(&text);
        };
        // A marker that is divided between values is in none of them.
        let left = changed.as_deref().unwrap_or(body);
        let is_clean = self.found_no_piece() && Check::SettingsDivided.accepts(!marker::contains_divided_marker(left));
        if let (true, Some(changed)) = (is_clean, changed) {
            *body = changed;
        }
        is_clean
    }

    /// Replaces agent settings in a value of JSON. Returns true if there were any.
    fn replace_in_value(&mut self, value: &mut Value, path: &FieldPathHash) -> bool {
        let found = match value {
            Value::String(text) => self.text_holds_settings(path, text),
            Value::Object(fields) => {
                let found = marker::classify_keys(fields.keys().take_while(|_| self.may_continue()));
                self.record_match(found);
                Check::SettingsMarker.refuses(found != Match::Nothing)
                    || Check::SettingsShape.refuses(has_keys_of_settings(fields))
            }
            _ => false,
        };
        if found {
            *value = Value::String(PLACEHOLDER.to_owned());
            return true;
        }
        match value {
            Value::Array(items) => {
                items.iter_mut().fold(false, |replaced, item| self.replace_in_value(item, path) | replaced)
            }
            Value::Object(fields) => fields
                .iter_mut()
                .fold(false, |replaced, (name, field)| self.replace_in_value(field, &path.below(name)) | replaced),
            _ => false,
        }
    }

    /// Returns true if a text below these fields holds agent settings, or a piece of them. Remembers texts that stay.
    fn text_holds_settings(&mut self, path: &FieldPathHash, text: &str) -> bool {
        if !self.may_continue() {
            return false;
        }
        let found = marker::classify(text.as_bytes());
        self.record_match(found);
        if Check::SettingsMarker.refuses(found != Match::Nothing) || has_keys_in_lines(text) {
            return true;
        }
        let characters = marker::base64_characters(text.as_bytes(), |_| 0);
        self.text_by_field.entry(path.0.finish()).or_default().extend(characters);
        false
    }

    /// Returns false once the call is over.
    fn may_continue(&mut self) -> bool {
        self.result = self.result.and_then(|()| self.deadline.check());
        self.result.is_ok()
    }

    fn record_match(&mut self, found: Match) {
        self.found_piece |= Check::SettingsDivided.refuses(found == Match::Piece);
    }

    /// Returns true if no text is a piece of settings, and the texts of no field hold a marker together.
    fn found_no_piece(&self) -> bool {
        let together = self.text_by_field.values().any(|text| marker::contains_marker(text));
        !self.found_piece && Check::SettingsDivided.accepts(!together)
    }
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

/// Returns true if a text that is not a document holds agent settings, or a piece of them.
fn holds_settings(text: &str) -> bool {
    Check::SettingsMarker.refuses(marker::classify(text.as_bytes()) != Match::Nothing) || has_keys_in_lines(text)
}

/// Returns false for most bodies without agent settings, so that they need not be parsed.
fn may_hold_settings(body: &[u8]) -> bool {
    let has = |text: &str| memmem::find(body, text.as_bytes()).is_some();
    ["agent_id", "registry", "\\u", "&#", "&lt;", "&amp;", "lowbar", "%5", "%6", "%25"].iter().any(|text| has(text))
        || has_long_run(body)
        || marker::may_contain_marker(body)
        || marker::contains_divided_marker(body)
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
