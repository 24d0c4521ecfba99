//! Fields that carry credentials by their name, in JSON and XML bodies.
//!
//! Their texts go, at any depth below the field; seals stay. Bodies that are
//! neither JSON nor XML are left alone.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde_json::Value;

use crate::place::{blank_xml, parse_json};

/// Without case, `_`, `-` and what is before the last colon.
const NAMES: [&str; 4] = ["adminpass", "adminpassword", "privatekey", "userdata"];

/// Hints that one of the names occurs, so that most bodies need no parsing. An
/// escape may hide any letter.
static HINTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let hints = ["adminpass", "admin_pass", "admin-pass", "privatekey", "private_key", "private-key"];
    let hints = hints.into_iter().chain(["userdata", "user_data", "user-data", "\\u"]);
    AhoCorasick::builder().ascii_case_insensitive(true).build(hints).ok()
});

/// The body without such texts; `None` if it can stay as it is.
pub(super) fn blank(body: &[u8], is_seal: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
    if HINTS.as_ref().is_some_and(|hints| !hints.is_match(body)) {
        return None;
    }
    let document = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match document.iter().find(|byte| !byte.is_ascii_whitespace())? {
        b'<' => blank_xml(document, &is_unwanted, is_seal),
        b'{' | b'[' => blank_json(document, is_seal),
        _ => None,
    }
}

fn blank_json(document: &[u8], is_seal: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
    let (mut value, ambiguous) = match parse_json(document) {
        Ok(value) => (value, false),
        // Of duplicate keys one is dropped, which may be the one that the guest would read.
        Err(_) => (serde_json::from_slice(document).ok()?, true),
    };
    let blanked = walk(&mut value, false, is_seal);
    if blanked || ambiguous { serde_json::to_vec(&value).ok() } else { None }
}

/// Says whether something went.
fn walk(value: &mut Value, inside: bool, is_seal: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter_mut().fold(false, |blanked, item| walk(item, inside, is_seal) | blanked),
        Value::Object(fields) => {
            let each = |blanked, (name, field): (&String, &mut Value)| {
                walk(field, inside || is_unwanted(name), is_seal) | blanked
            };
            fields.iter_mut().fold(false, each)
        }
        Value::String(text) if !inside || is_seal(text) => false,
        _ if !inside => false,
        leaf => {
            *leaf = Value::Null;
            true
        }
    }
}

fn is_unwanted(name: &str) -> bool {
    let local = name.rsplit(':').next().unwrap_or_default();
    let plain: String = local.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.contains(&plain.as_str())
}
