//! Places in JSON, by RFC 6901 pointers.
//!
//! Documents with duplicate keys are rejected, because servers differ in which one they use. A
//! document with a number that parsing and serialising would change is not edited.

use serde_json::Value;

use super::edit::{Change, Numbered, Numbers};
use super::error::Unparsable;
use super::syntax::check_visible;
use super::{Fault, FaultKind};
use crate::strict_json;
use wasm_cpi_checks::Check;

/// The depth at which serde_json itself stops.
const MAX_DEPTH: usize = 127;

/// Returns the tokens of a JSON pointer with their `~` escapes decoded.
pub(super) fn pointer(text: &str) -> Result<Vec<String>, Unparsable> {
    let tokens = text.strip_prefix('/').ok_or("a JSON pointer starts with `/`; write `body` for the whole body")?;
    check_visible(tokens, "a JSON pointer has no control or invisible characters")?;
    tokens.split('/').map(unescape).collect()
}

fn unescape(token: &str) -> Result<String, Unparsable> {
    let mut text = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '~' => match chars.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return Err("in a JSON pointer, `~` is written `~0` and `/` within a key `~1`".into()),
            },
            c => c,
        });
    }
    Ok(text)
}

pub(super) fn display(tokens: &[String]) -> String {
    tokens.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect()
}

pub(super) fn read(body: &[u8], tokens: &[String]) -> Result<Option<Value>, Fault> {
    let mut document = parse(body)?;
    Ok(document.pointer_mut(&display(tokens)).map(Value::take).filter(|value| !value.is_null()))
}

pub(super) fn edit(
    body: &[u8],
    pointers: &Numbered<'_, Vec<String>>,
    numbers: Numbers,
    change: &mut Change<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    let mut document = parse(body)?;
    let mut changed = false;
    for (number, tokens) in pointers {
        Check::PlaceAlike.ensure(!has_alike(&document, tokens), Fault::ambiguous)?;
        let Some(target) = document.pointer_mut(&display(tokens)) else { continue };
        let text = match target {
            Value::Null => None,
            Value::String(text) => change(*number, text),
            Value::Number(value) => change(*number, &value.to_string()),
            Value::Bool(truth) => change(*number, &truth.to_string()),
            Value::Array(_) | Value::Object(_) => return Err(FaultKind::NotPlain.into()),
        };
        if let Some(text) = text {
            *target = Value::String(text);
            changed = true;
        }
    }
    if !changed {
        return Ok(None);
    }
    Check::JsonExact.ensure(numbers == Numbers::Rounded || is_exact(&document), || {
        Fault::malformed("a number in the JSON is too large to be passed on exactly")
    })?;
    serde_json::to_vec(&document).map(Some).map_err(|_| Fault::unwritable("it cannot be serialised"))
}

/// Returns true if a key of the pointer occurs twice for parsers that ignore case, end a key at a zero byte, or
/// ignore what is around it.
fn has_alike(document: &Value, tokens: &[String]) -> bool {
    let is_around = |c: char| c.is_whitespace() || c.is_control();
    let read = |key: &str| key.split('\0').next().map(|key| key.trim_matches(is_around).to_ascii_lowercase());
    let mut here = Some(document);
    tokens.iter().any(|token| {
        let fields = here.and_then(Value::as_object);
        let count = fields.map_or(0, |fields| fields.keys().filter(|key| read(key) == read(token)).count());
        here = here.and_then(|value| value.pointer(&display(std::slice::from_ref(token))));
        count > 1
    })
}

/// The reason why a body is rejected. It quotes nothing of the body, which may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonBodyError {
    /// The body is not text.
    #[error("the JSON is not UTF-8")]
    NotUtf8,
    /// [`strict_json::parse`] rejects the body.
    #[error("the JSON is malformed, nested too deeply or has a key twice{}", at(.position))]
    Malformed {
        /// The line and column of the error, both counted from 1, if it is at a certain place.
        position: Option<(usize, usize)>,
        /// The check that refuses the body, if it is a named one.
        check: Option<Check>,
    },
}

impl From<JsonBodyError> for Fault {
    fn from(error: JsonBodyError) -> Fault {
        let check = match &error {
            JsonBodyError::NotUtf8 => None,
            JsonBodyError::Malformed { check, .. } => *check,
        };
        Fault { kind: FaultKind::Malformed(error.to_string()), check }
    }
}

fn at(position: &Option<(usize, usize)>) -> String {
    position.map_or(String::new(), |(line, column)| format!(" at line {line} column {column}"))
}

/// Parses a JSON body strictly, with the rules of [`strict_json::parse`].
pub fn parse(body: &[u8]) -> Result<Value, JsonBodyError> {
    let text = std::str::from_utf8(body).map_err(|_| JsonBodyError::NotUtf8)?;
    strict_json::parse(text, MAX_DEPTH)
        .map_err(|error| JsonBodyError::Malformed { position: error.position(), check: error.check() })
}

/// Returns false if an integer beyond 64 bits was parsed as a float and so lost digits.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_none_or(|float| !number.is_f64() || float.abs() < u64::MAX as f64),
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        _ => true,
    }
}
