//! Reads JSON objects key by key and reports everything that is wrong with them.
//!
//! Every key that a reader asks for is known; what is left when it closes is an
//! unknown key. So the grammar stands in one place, and one pass finds all
//! problems, which a derived deserializer would not.

use serde_json::{Map, Value};

use super::problem::Problems;
use crate::holes::Check;
use crate::invisible::is_invisible;

pub(super) struct Fields<'a> {
    at: String,
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
    problems: &'a Problems,
}

impl<'a> Fields<'a> {
    pub(super) fn open(value: &'a Value, at: impl Into<String>, problems: &'a Problems) -> Option<Self> {
        let at = at.into();
        match value {
            Value::Object(map) => Some(Fields { at, map, known: Vec::new(), problems }),
            other => {
                problems.add(at, format!("is {}", kind(other)), "write an object: {\"key\": …}");
                None
            }
        }
    }

    /// The full path of one of the keys.
    pub(super) fn at(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    pub(super) fn problems(&self) -> &'a Problems {
        self.problems
    }

    pub(super) fn problem(&self, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.add(self.at(key), what, remedy);
    }

    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.map.get(key)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            other => {
                self.problem(key, format!("is {}", kind(other)), "write a string");
                None
            }
        }
    }

    pub(super) fn required_text(&mut self, key: &'static str, example: &str) -> Option<&'a str> {
        if !self.map.contains_key(key) {
            self.problem(key, "is missing", format!("add it, like \"{key}\": \"{example}\""));
        }
        self.text(key)
    }

    /// Absent means false.
    pub(super) fn flag(&mut self, key: &'static str) -> bool {
        match self.value(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.problem(key, format!("is {}", kind(other)), "write true or false");
                false
            }
        }
    }

    /// The elements with their paths; absent means none.
    pub(super) fn list(&mut self, key: &'static str) -> Vec<(String, &'a Value)> {
        match self.value(key) {
            None => Vec::new(),
            Some(Value::Array(list)) => {
                list.iter().enumerate().map(|(index, value)| (format!("{}[{index}]", self.at(key)), value)).collect()
            }
            Some(other) => {
                self.problem(key, format!("is {}", kind(other)), "write a list: [ … ]");
                Vec::new()
            }
        }
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Vec<(String, &'a str)> {
        let mut texts = Vec::new();
        for (at, value) in self.list(key) {
            match value {
                Value::String(text) => texts.push((at, text.as_str())),
                other => self.problems.add(at, format!("is {}", kind(other)), "write a string"),
            }
        }
        texts
    }

    /// A list of strings that must be there and not be empty.
    pub(super) fn required_texts(&mut self, key: &'static str, example: &str) -> Vec<(String, &'a str)> {
        let missing = match self.map.get(key) {
            None => Some("is missing"),
            Some(Value::Array(list)) if list.is_empty() && Check::EmptyList.on() => {
                Some("is empty, so that nothing could match")
            }
            Some(_) => None,
        };
        if let Some(what) = missing {
            self.problem(key, what, format!("list at least one, like \"{key}\": [\"{example}\"]"));
        }
        self.texts(key)
    }

    /// The members of an object of free names, with their paths; absent means none.
    pub(super) fn members(&mut self, key: &'static str) -> Vec<(String, &'a String, &'a Value)> {
        match self.value(key) {
            None => Vec::new(),
            Some(Value::Object(map)) => {
                map.iter().map(|(name, value)| (format!("{}.{name}", self.at(key)), name, value)).collect()
            }
            Some(other) => {
                self.problem(key, format!("is {}", kind(other)), "write an object: {\"name\": …}");
                Vec::new()
            }
        }
    }

    /// Reports the keys that nobody asked for.
    pub(super) fn close(self) {
        for key in self.map.keys().filter(|key| Check::UnknownKey.on() && !self.known.contains(&key.as_str())) {
            self.problem(
                &printable(key),
                "is an unknown key",
                format!("remove it; known here: {}", self.known.join(", ")),
            );
        }
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Text of unknown origin, short and without characters that steer a terminal.
pub(super) fn printable(text: &str) -> String {
    let mut short: String = text.chars().take(200).map(|c| if is_harmless(c) { c } else { '?' }).collect();
    if text.chars().nth(200).is_some() {
        short.push('…');
    }
    short
}

fn is_harmless(c: char) -> bool {
    !c.is_control() && !is_invisible(c)
}

/// Names of grants, logins and captures.
pub(super) fn is_ident(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

pub(super) const IDENT: &str = "use 1 to 64 letters, digits, `.`, `_`, `-`";
