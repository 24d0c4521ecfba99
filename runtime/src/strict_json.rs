//! JSON without ambiguity: duplicate keys are errors, depth and size are bounded.
//!
//! Two readers of one document must never see two things, so whatever decides
//! (requests, policies, bodies with slots) is read through here. A value takes
//! many times the memory of its text, so a document of too many is not read.

use crate::holes::Check;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// What a document may take in memory, about.
const MAX_MEMORY: usize = 64 * 1024 * 1024;

/// One JSON document, whitespace around it allowed.
pub fn parse(text: &str, max_depth: usize) -> Result<Value, String> {
    if Check::JsonMemory.on() && !is_affordable(text.as_bytes()) {
        return Err("it has more values than memory is spent on".to_owned());
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { depth_left: max_depth }.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    if Check::JsonTrailing.on() {
        deserializer.end().map_err(|error| error.to_string())?;
    }
    Ok(value)
}

/// Whether the values of a document will find room, judged by the characters that
/// begin one: those in strings count as well, which is far from what anybody sends.
pub fn is_affordable(document: &[u8]) -> bool {
    let cost = |byte: &u8| match byte {
        b'{' => 256,
        b'[' | b',' | b':' => 64,
        _ => 1,
    };
    document.iter().map(cost).sum::<usize>() <= MAX_MEMORY
}

/// How deep arrays and objects are nested in a value.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// How many values there are in a value that are no arrays or objects.
pub fn leaves<'a>(values: impl IntoIterator<Item = &'a Value>) -> usize {
    let count = |value: &'a Value| match value {
        Value::Array(items) => leaves(items),
        Value::Object(fields) => leaves(fields.values()),
        _ => 1,
    };
    values.into_iter().map(count).sum()
}

#[derive(Clone, Copy)]
struct Strict {
    depth_left: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Strict, E> {
        match self.depth_left.checked_sub(1) {
            Some(depth_left) => Ok(Strict { depth_left }),
            None if Check::JsonDepth.on() => Err(E::custom("nested too deeply")),
            None => Ok(self),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
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
            if Check::JsonDuplicateKey.on() && object.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key `{key}` stands there twice")));
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
        assert!(parse(r#"{"a":{"b":1,"b":2}}"#, 10).unwrap_err().contains("`b` stands there twice"));
        assert!(parse(r#"{"a":1,"\u0061":2}"#, 10).unwrap_err().contains("twice"));
        assert!(parse("[[[1]]]", 2).unwrap_err().contains("too deeply"));
        assert!(parse("[[1]]", 2).is_ok());
        assert!(parse("{} x", 10).is_err());
        assert!(parse("NaN", 10).is_err());
    }

    #[test]
    fn a_document_of_too_many_values_is_not_read() {
        for unit in ["{}", "[]", "0", "{\"\":0}", "\"\""] {
            let document = |count: usize| format!("[{}]", vec![unit; count].join(","));
            assert!(parse(&document(10_000), 10).is_ok(), "{unit}");
            assert!(parse(&document(2_000_000), 10).is_err_and(|why| why.contains("more values")), "{unit}");
        }
        assert!(parse(&json!("x".repeat(16 << 20)).to_string(), 10).is_ok());
    }

    #[test]
    fn depth_counts_containers() {
        for (value, expected) in [(json!(1), 0), (json!([]), 1), (json!({"a": [1]}), 2)] {
            assert_eq!(depth(&value), expected);
        }
    }

    #[test]
    fn leaves_are_what_is_no_container() {
        for (value, expected) in [(json!(1), 1), (json!([]), 0), (json!({"a": [1, null, {"b": "c"}], "d": 2}), 4)] {
            assert_eq!(leaves([&value]), expected);
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_serde_json_writes(text in "\\PC{0,30}", number in any::<i64>(), float in any::<f64>()) {
            let value = json!({"a": [text, number, null, true], "b": {"c": float}});
            prop_assert_eq!(parse(&value.to_string(), 10).unwrap(), value);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,80}") {
            let _ = parse(&text, 10);
        }
    }
}
