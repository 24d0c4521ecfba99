//! Fields that carry credentials by their name, in JSON and XML bodies.
//!
//! Their texts go, at any depth below the field; seals stay. Bodies that are
//! neither JSON nor XML are left alone; one that begins like them, names such a
//! field and cannot be read is not for the guest.

use memchr::memmem;
use serde_json::Value;

use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{blank_xml, parse_json};
use wasm_cpi_policy::strict_json::is_affordable;

/// Without case, `_`, `-` and what is before the last colon.
const NAMES: [&str; 4] = ["adminpass", "adminpassword", "privatekey", "userdata"];

/// Where a request was made with credentials, its answer may hand out others.
const HANDED_OUT: [&str; 9] = [
    "accesstoken",
    "clientsecret",
    "idtoken",
    "password",
    "refreshtoken",
    "secret",
    "secretaccesskey",
    "secretkey",
    "sessiontoken",
];

/// Hints that one of the names occurs, so that most bodies need no parsing. An
/// escape may hide any letter.
const HINTS: [&str; 10] = [
    "adminpass",
    "admin_pass",
    "admin-pass",
    "privatekey",
    "private_key",
    "private-key",
    "userdata",
    "user_data",
    "user-data",
    ESCAPE,
];

const HINTS_OF_HANDED_OUT: [&str; 3] = ["password", "secret", "token"];

const ESCAPE: &str = "\\u";

/// What is searched at a time: a body may be large, and a copy of it should not.
const PIECE: usize = 16 << 10;

type IsOne<'a> = &'a dyn Fn(&str) -> bool;

/// A document that may hold such texts, and cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The body without such texts; `None` if it can stay as it is. `with_credentials`:
/// the request was made with some.
pub(super) fn blank(
    body: &[u8],
    with_credentials: bool,
    is_seal: &dyn Fn(&str) -> bool,
) -> Result<Option<Vec<u8>>, Unreadable> {
    let handed_out = with_credentials && Check::CredentialsHandedOut.on();
    let is_unwanted = |name: &str| is_one_of(name, &NAMES) || (handed_out && is_one_of(name, &HANDED_OUT));
    if !(hinted(body, &HINTS) || (handed_out && hinted(body, &HINTS_OF_HANDED_OUT))) {
        return Ok(None);
    }
    let document = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let blanked = match document.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'<') => blank_xml(document, &is_unwanted, is_seal).ok(),
        Some(b'{' | b'[') => blank_json(document, &is_unwanted, is_seal),
        _ => Some(None),
    };
    match blanked {
        Some(blanked) => Ok(blanked),
        None if hinted(&without_escapes(document), &HINTS) => Err(Unreadable),
        None => Ok(None),
    }
}

/// In whatever case. Piece by piece, each with the beginning of the next.
fn hinted(body: &[u8], hints: &[&str]) -> bool {
    let longest = hints.iter().map(|hint| hint.len()).max().unwrap_or_default();
    (0..body.len()).step_by(PIECE).any(|at| {
        let piece = body[at..body.len().min(at + PIECE + longest)].to_ascii_lowercase();
        hints.iter().any(|hint| memmem::find(&piece, hint.as_bytes()).is_some())
    })
}

/// With letters in place of their escapes, and no hint where there is another escape.
fn without_escapes(document: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(document);
    let mut pieces = text.split(ESCAPE);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(code.map_or('\\', char::from));
        plain.push_str(code.map_or(piece, |_| &piece[4..]));
    }
    plain.into_bytes()
}

/// One document, or one after the other as streams have them. None if it is neither.
fn blank_json(document: &[u8], is_unwanted: IsOne<'_>, is_seal: IsOne<'_>) -> Option<Option<Vec<u8>>> {
    let (mut values, ambiguous) = match parse_json(document) {
        Ok(value) => (vec![value], false),
        // Of duplicate keys one is dropped, which may be the one that the guest would read.
        Err(_) if Check::JsonMemory.on() && !is_affordable(document) => return None,
        Err(_) => {
            let all = serde_json::Deserializer::from_slice(document).into_iter().collect::<Result<Vec<Value>, _>>();
            (all.ok()?, true)
        }
    };
    let blanked = values.iter_mut().fold(false, |blanked, value| walk(value, false, is_unwanted, is_seal) | blanked);
    if !blanked && !ambiguous {
        return Some(None);
    }
    let documents: Vec<String> = values.iter().map(Value::to_string).collect();
    Some(Some(documents.join("\n").into_bytes()))
}

/// Says whether something went.
fn walk(value: &mut Value, inside: bool, is_unwanted: IsOne<'_>, is_seal: IsOne<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => {
            items.iter_mut().fold(false, |blanked, item| walk(item, inside, is_unwanted, is_seal) | blanked)
        }
        Value::Object(fields) => {
            let each = |blanked, (name, field): (&String, &mut Value)| {
                walk(field, inside || is_unwanted(name), is_unwanted, is_seal) | blanked
            };
            fields.iter_mut().fold(false, each)
        }
        Value::String(text) if !inside || text.is_empty() || is_seal(text) => false,
        _ if !inside => false,
        leaf => {
            *leaf = Value::Null;
            true
        }
    }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    let local = name.rsplit(':').next().unwrap_or_default();
    let plain: String = local.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
    names.contains(&plain.as_str())
}
