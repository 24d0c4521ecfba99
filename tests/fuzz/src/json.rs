//! The strict JSON parser: it accepts a subset of what serde_json accepts, with the same
//! values, and additionally refuses only duplicate keys and deep nesting.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use wasm_cpi_policy::strict_json;

const DEPTH: usize = 12;

pub(crate) fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lenient = serde_json::from_str::<Value>(text);
    match (strict_json::parse(text, DEPTH), lenient) {
        (Ok(strict), Ok(lenient)) => {
            assert_eq!(strict, lenient);
            assert!(strict_json::depth(&strict) <= DEPTH);
            assert!(!has_duplicate_keys(text), "a duplicate key was accepted");
            assert_eq!(strict_json::parse(&strict.to_string(), DEPTH).ok().as_ref(), Some(&strict));
        }
        (Ok(_), Err(error)) => panic!("text that is not JSON was accepted: {error}"),
        (Err(why), Ok(lenient)) => {
            assert!(
                has_duplicate_keys(text) || strict_json::depth(&lenient) > DEPTH,
                "refused without a reason: {why}"
            );
        }
        (Err(_), Err(_)) => {}
    }
}

fn has_duplicate_keys(text: &str) -> bool {
    serde_json::from_str::<Duplicates>(text).is_ok_and(|duplicates| duplicates.0)
}

/// Holds whether some object has a duplicate key.
struct Duplicates(bool);

impl<'de> Deserialize<'de> for Duplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DuplicateSearch).map(Duplicates)
    }
}

struct DuplicateSearch;

impl<'de> Visitor<'de> for DuplicateSearch {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(Duplicates(inside)) = items.next_element()? {
            found |= inside;
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let (mut found, mut keys) = (false, HashSet::new());
        while let Some(key) = fields.next_key::<String>()? {
            found |= !keys.insert(key);
            if found {
                fields.next_value::<IgnoredAny>()?;
            } else {
                found |= fields.next_value::<Duplicates>()?.0;
            }
        }
        Ok(found)
    }
}
