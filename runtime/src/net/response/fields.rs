//! Blanks fields that carry credentials by their name, in JSON and XML bodies.
//!
//! All texts at any depth below such a field are removed, except seals, also in JSON documents that are strings of the
//! body. A body that starts like JSON or XML, names such a field, and cannot be parsed is withheld from the guest. So
//! is other text that names such a field, if the response is guarded: a guest could ask for YAML, which is not parsed
//! here.

use memchr::memmem;
use serde_json::Value;

use super::charset::is_text;
use super::raw_text::{ESCAPE, without_byte_order_mark, without_escapes, without_percent};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{blank_xml, parse_json};
use wasm_cpi_policy::strict_json::is_affordable;

/// Names in lower case, without `_`, `-` and everything before the last colon.
const NAMES: [&str; 13] = [
    "adminpass",
    "adminpasswd",
    "adminpassword",
    "authpassword",
    "keymaterial",
    "passwd",
    "passphrase",
    "privatekey",
    "rootpass",
    "rootpasswd",
    "rootpassword",
    "sshprivatekey",
    "userdata",
];

/// More names, for responses that are guarded: to a request with credentials, a server may return new ones, or what it
/// was sent and how it computed a signature.
const HANDED_OUT: [&str; 27] = [
    "accesskeyid",
    "accesstoken",
    "apikey",
    "apisecret",
    "apitoken",
    "authkey",
    "authsecret",
    "authtoken",
    "awsaccesskeyid",
    "bearertoken",
    "canonicalrequest",
    "canonicalrequestbytes",
    "clientsecret",
    "idtoken",
    "password",
    "presharedkey",
    "refreshtoken",
    "secret",
    "secretaccesskey",
    "secretkey",
    "securitytoken",
    "sessiontoken",
    "sharedsecret",
    "signatureprovided",
    "stringtosign",
    "stringtosignbytes",
    "token0",
];

/// The size of the parts that are searched, so that a large body is not copied as a whole.
const PIECE: usize = 16 << 10;

/// How often the name of a parameter is decoded: as often as a path.
const MOST_DECODINGS: usize = 4;

type IsOne<'a> = &'a dyn Fn(&str) -> bool;

/// The error for a document that may hold such a field, and cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// The check that refuses to parse it, if one does.
    pub(super) check: Option<Check>,
}

/// Returns the body without such texts, or `None` if it can stay as it is. `guarded` is
/// true for responses that may hold secrets (see `Exposure`).
pub(super) fn blank(body: &[u8], guarded: bool, is_seal: &dyn Fn(&str) -> bool) -> Result<Option<Vec<u8>>, Unreadable> {
    let handed_out = Check::CredentialsHandedOut.choose(guarded, false);
    let is_unwanted = |name: &str| is_one_of(name, &NAMES) || (handed_out && is_one_of(name, &HANDED_OUT));
    let named = |text: &[u8]| names_one_of(text, &NAMES) || (handed_out && names_one_of(text, &HANDED_OUT));
    // Most bodies need no parsing.
    if !named(body) && memmem::find(body, ESCAPE.as_bytes()).is_none() {
        return Ok(None);
    }
    let document = without_byte_order_mark(body);
    let blanked = match document.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'<') => blank_xml(document, &is_unwanted, is_seal).map_err(|_| Unreadable { check: None }),
        Some(b'{' | b'[' | b'"') => blank_json(document, &is_unwanted, is_seal),
        Some(_) if handed_out && is_text(document) => Err(Unreadable { check: None }),
        _ => Ok(None),
    };
    let is_named = || named(without_escapes(&String::from_utf8_lossy(document)).as_bytes());
    blanked.or_else(|unreadable| if is_named() { Err(unreadable) } else { Ok(None) })
}

/// Blanks such fields in what the guest may see of the response to a login. The operator named the value itself.
pub(in crate::net) fn blank_shown(value: &mut Value) {
    let is_unwanted = |name: &str| is_one_of(name, &NAMES) || is_one_of(name, &HANDED_OUT);
    Check::CredentialFields.perform(|| walk(value, false, &is_unwanted, &|_| false));
}

/// Returns true if the name of a guest's parameter holds the name of a field that is blanked in responses, as lenient
/// servers read it: decoded several times, in any case, and with anything else between the letters.
pub(in crate::net) fn names_hidden_field(name: &str, guarded: bool) -> bool {
    let mut name = name.to_owned();
    for _ in 0..MOST_DECODINGS {
        let decoded = without_escapes(&name.replace("%u", ESCAPE).replace("%U", ESCAPE));
        name = without_percent(&decoded);
    }
    let letters: String = name.chars().flat_map(folded).filter(char::is_ascii_alphanumeric).collect();
    let handed_out = Check::CredentialsHandedOut.choose(guarded, false);
    names_one_of(letters.as_bytes(), &NAMES) || (handed_out && names_one_of(letters.as_bytes(), &HANDED_OUT))
}

/// Returns the letters that servers compare in place of this one. To upper case and back, the long s becomes an s and
/// ligatures become letters; letters of full width become plain ones.
fn folded(letter: char) -> impl Iterator<Item = char> {
    let plain = match u32::from(letter) {
        code @ 0xff01..=0xff5e => char::from_u32(code - 0xfee0).unwrap_or(letter),
        _ => letter,
    };
    plain.to_uppercase().flat_map(char::to_lowercase)
}

/// Returns true if the text holds one of the names, in any case and with any `_` and `-` in it.
fn names_one_of(text: &[u8], names: &[&str]) -> bool {
    let longest = names.iter().map(|name| name.len()).max().unwrap_or_default();
    let mut plain: Vec<u8> = Vec::with_capacity(PIECE + longest);
    text.chunks(PIECE).any(|piece| {
        // The end of the last piece may be the start of a name.
        plain.drain(..plain.len().saturating_sub(longest));
        plain.extend(piece.iter().filter(|byte| !b"_-".contains(byte)).map(u8::to_ascii_lowercase));
        names.iter().any(|name| memmem::find(&plain, name.as_bytes()).is_some())
    })
}

/// Blanks one JSON document, or several documents in a row.
fn blank_json(document: &[u8], is_unwanted: IsOne<'_>, is_seal: IsOne<'_>) -> Result<Option<Vec<u8>>, Unreadable> {
    let (mut values, ambiguous) = match parse_json(document) {
        Ok(value) => (vec![value], false),
        Err(_) if Check::JsonMemory.refuses(!is_affordable(document)) => {
            return Err(Unreadable { check: Some(Check::JsonMemory) });
        }
        // Of duplicate keys, the parser keeps one, and a guest may read the other one. So the
        // document is written anew even if nothing in it was blanked.
        Err(_) => {
            let all = serde_json::Deserializer::from_slice(document).into_iter().collect::<Result<Vec<Value>, _>>();
            (all.map_err(|_| Unreadable { check: None })?, true)
        }
    };
    let blanked = values.iter_mut().fold(false, |blanked, value| walk(value, false, is_unwanted, is_seal) | blanked);
    if !blanked && !ambiguous {
        return Ok(None);
    }
    let documents: Vec<String> = values.iter().map(Value::to_string).collect();
    Ok(Some(documents.join("\n").into_bytes()))
}

/// Blanks texts below unwanted fields, and returns true if there were any.
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
        Value::String(text) if !inside => blank_nested(text, is_unwanted, is_seal),
        Value::String(text) if is_seal(text) => false,
        _ if !inside => false,
        leaf => {
            *leaf = Value::Null;
            true
        }
    }
}

/// Blanks fields of a JSON document within a string: some servers keep documents as texts.
fn blank_nested(text: &mut String, is_unwanted: IsOne<'_>, is_seal: IsOne<'_>) -> bool {
    if !text.trim_start().starts_with(['{', '[']) {
        return false;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return false };
    let blanked = walk(&mut value, false, is_unwanted, is_seal);
    if blanked {
        *text = value.to_string();
    }
    blanked
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    let local = name.rsplit(':').next().unwrap_or_default();
    let plain: String = local.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
    names.contains(&plain.as_str())
}
