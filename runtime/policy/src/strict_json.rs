//! A strict JSON parser: it rejects duplicate keys, deep nesting and documents with too many
//! values.
//!
//! Two parsers must never read one document differently, so every document on which a decision
//! depends (requests, policies, bodies with slots) is parsed here. Parsed values take many times
//! the memory of their text, so documents with too many values are rejected before parsing. That
//! does not depend on the content of strings.

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;
use wasm_cpi_checks::Check;

/// The memory that a parsed document may take, in bytes; the estimate is rough.
const MAX_MEMORY: usize = 64 * 1024 * 1024;

/// The reason why a document is rejected.
#[derive(Debug, thiserror::Error)]
pub enum StrictJsonError {
    /// [`is_affordable`] rejects the document, so it was not parsed.
    #[error("it has more values than fit into the memory for one document")]
    TooManyValues,
    /// The document is not JSON, has a duplicate key, is nested too deeply, or has a number out
    /// of range. The message may quote keys of the document.
    #[error("{error}")]
    Malformed {
        /// The error of the parser.
        #[source]
        error: serde_json::Error,
        /// The check that refuses the document, if it is a named one.
        check: Option<Check>,
    },
}

impl StrictJsonError {
    /// Returns the line and column of the error, both counted from 1, if it is at a certain place.
    pub fn position(&self) -> Option<(usize, usize)> {
        match self {
            StrictJsonError::Malformed { error, .. } if error.line() > 0 => Some((error.line(), error.column())),
            _ => None,
        }
    }

    /// Returns the check that refuses the document, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        match self {
            StrictJsonError::TooManyValues => Some(Check::JsonMemory),
            StrictJsonError::Malformed { check, .. } => *check,
        }
    }
}

/// Parses exactly one JSON document, with whitespace around it at most.
///
/// Rejects duplicate keys, arrays and objects that are nested deeper than `max_depth`, numbers
/// out of range, and documents that [`is_affordable`] rejects.
///
/// ```
/// use wasm_cpi_policy::strict_json::parse;
///
/// assert!(parse(r#"{"a": [1, 2]}"#, 2).is_ok());
/// assert!(parse(r#"{"a": 1, "a": 2}"#, 2).is_err());
/// assert!(parse("[[[1]]]", 2).is_err());
/// ```
pub fn parse(text: &str, max_depth: usize) -> Result<Value, StrictJsonError> {
    if Check::JsonMemory.refuses(!is_affordable(text.as_bytes())) {
        return Err(StrictJsonError::TooManyValues);
    }
    let refused = Cell::new(None);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { depth_left: max_depth, refused: &refused }
        .deserialize(&mut deserializer)
        .map_err(|error| StrictJsonError::Malformed { error, check: refused.get() })?;
    match deserializer.end() {
        Err(error) if Check::JsonTrailing.refuses(true) => {
            Err(StrictJsonError::Malformed { error, check: Some(Check::JsonTrailing) })
        }
        _ => Ok(value),
    }
}

/// Returns true if the values of a document will take about 64 MiB of memory at most, beside the
/// bytes of its strings, which are as many as those of the document. Characters within strings do
/// not count: they may be a secret, and a guest could measure it by adding values of its own.
pub fn is_affordable(document: &[u8]) -> bool {
    structure(document) <= MAX_MEMORY
}

/// Estimates the memory of a document's values, without the bytes of strings: counts where values
/// begin outside of strings. Agrees with the parser up to the first error in the document.
fn structure(document: &[u8]) -> usize {
    let mut cost = 0usize;
    let mut bytes = document.iter();
    // True within a number or a word, of which only the first character counts.
    let mut inside = false;
    while let Some(byte) = bytes.next() {
        let begins = !std::mem::replace(&mut inside, false);
        match byte {
            b'{' => cost += 256,
            b'[' => cost += 64,
            b'"' => {
                cost += 64;
                skip_string(&mut bytes);
            }
            b']' | b'}' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                cost += if begins { 64 } else { 0 };
                inside = true;
            }
        }
    }
    cost
}

/// Skips the rest of a string, with its closing quote.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

/// Returns the value as a whole number that is not negative. Accepts `2.0`, which some clients send.
#[must_use]
pub fn whole_number(value: &Value) -> Option<u64> {
    let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(is_whole).map(|number| number as u64))
}

/// Returns how deep arrays and objects are nested in a value: 0 for a string, 1 for `[]`.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the number of strings, numbers, booleans and nulls in the values, at any depth.
pub fn leaves<'a>(values: impl IntoIterator<Item = &'a Value>) -> usize {
    let count = |value: &'a Value| match value {
        Value::Array(items) => leaves(items),
        Value::Object(fields) => leaves(fields.values()),
        _ => 1,
    };
    values.into_iter().map(count).sum()
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    depth_left: usize,
    /// The check that refused: an error of serde holds a text only.
    refused: &'a Cell<Option<Check>>,
}

impl Strict<'_> {
    fn refuse<E: de::Error>(self, check: Check, what: impl fmt::Display) -> E {
        self.refused.set(Some(check));
        E::custom(what)
    }

    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if Check::JsonDepth.refuses(self.depth_left == 0) {
            return Err(self.refuse(Check::JsonDepth, "nested too deeply"));
        }
        Ok(Strict { depth_left: self.depth_left.saturating_sub(1), ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if Check::JsonDuplicateKey.refuses(object.contains_key(&key)) {
                return Err(self.refuse(Check::JsonDuplicateKey, format_args!("the key `{key}` occurs twice")));
            }
            let value = fields.next_value_seed(inner)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn duplicate_keys_depth_and_trailing_text_are_errors() {
        let why = |text: &str, max_depth| parse(text, max_depth).unwrap_err().to_string();
        assert!(why(r#"{"a":{"b":1,"b":2}}"#, 10).contains("`b` occurs twice"));
        assert!(why(r#"{"a":1,"\u0061":2}"#, 10).contains("twice"));
        assert!(why("[[[1]]]", 2).contains("too deeply"));
        assert!(parse("[[1]]", 2).is_ok());
        assert!(parse("{} x", 10).is_err());
        assert!(parse("NaN", 10).is_err());
    }

    #[test]
    fn a_document_of_too_many_values_is_not_read() {
        for unit in ["{}", "[]", "0", "{\"\":0}", "\"\""] {
            let document = |count: usize| format!("[{}]", vec![unit; count].join(","));
            assert!(parse(&document(10_000), 10).is_ok(), "{unit}");
            assert!(matches!(parse(&document(2_000_000), 10), Err(StrictJsonError::TooManyValues)), "{unit}");
        }
        assert!(parse(&json!("x".repeat(16 << 20)).to_string(), 10).is_ok());
    }

    #[test]
    fn values_in_a_row_are_not_read_either() {
        for unit in ["0 ", "null\n", "[]", "\"\"", "{}"] {
            assert!(!is_affordable(unit.repeat(2_000_000).as_bytes()), "{unit}");
        }
    }

    #[test]
    fn the_content_of_strings_costs_nothing() {
        let document = |text: &str| json!({"id": "vm-1", text: [text, 7, true]}).to_string();
        let expected = structure(document("").as_bytes());
        for text in ["{{{{[[[[,,,,::::", r#""\"{\\"#, "\u{0}\n", "1 2 3", "ä", &"{".repeat(1 << 20)] {
            assert_eq!(structure(document(text).as_bytes()), expected, "{text:.20}");
        }
        assert!(parse(&document(&"{,".repeat(1 << 20)), 10).is_ok());
    }

    #[test]
    fn errors_hold_their_position() {
        let position = |text: &str| parse(text, 10).unwrap_err().position();
        assert_eq!(position("{\n \"a\": x}"), Some((2, 7)));
        assert_eq!(position("{\"a\":1,\n\"a\":2}"), Some((2, 3)));
        assert_eq!(position(&"[".repeat(2_000_000)), None);
    }

    #[test]
    fn depth_counts_containers() {
        for (value, expected) in [(json!(1), 0), (json!([]), 1), (json!({"a": [1]}), 2)] {
            assert_eq!(depth(&value), expected);
        }
    }

    #[test]
    fn leaves_are_values_other_than_containers() {
        for (value, expected) in [(json!(1), 1), (json!([]), 0), (json!({"a": [1, null, {"b": "c"}], "d": 2}), 4)] {
            assert_eq!(leaves([&value]), expected);
        }
    }

    proptest! {
        #[test]
        fn documents_written_by_serde_json_are_parsed(text in "\\PC{0,30}", number in any::<i64>(), float in any::<f64>()) {
            let value = json!({"a": [text, number, null, true], "b": {"c": float}});
            prop_assert_eq!(parse(&value.to_string(), 10).unwrap(), value);
        }

        #[test]
        fn parsing_never_panics(text in "\\PC{0,80}") {
            let _ = parse(&text, 10);
        }
    }
}
