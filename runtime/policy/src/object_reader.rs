//! Reads JSON objects key by key and reports everything that is wrong with them.
//!
//! Every key that a reader asks for is known, and `close` reports all other keys. So each
//! key is named in one place, and one pass finds all problems; a derived deserializer
//! would stop at the first one.

use serde_json::{Map, Value};

use super::problem::{PolicyProblem, Problems};
use crate::invisible::is_invisible;
use wasm_cpi_checks::Check;

/// One JSON object that is being read.
pub(super) struct ObjectReader<'a> {
    at: String,
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
    problems: &'a Problems,
}

impl<'a> ObjectReader<'a> {
    /// Returns a reader for the object at the path `at`; any other value is a problem.
    pub(super) fn open(value: &'a Value, at: impl Into<String>, problems: &'a Problems) -> Option<Self> {
        let at = at.into();
        match value {
            Value::Object(map) => Some(ObjectReader { at, map, known: Vec::new(), problems }),
            other => {
                problems.add(at, format!("is {}", kind(other)), "write an object: {\"key\": …}");
                None
            }
        }
    }

    /// Returns the full path of a key of this object.
    pub(super) fn at(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    pub(super) fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// Reports a problem with one key of this object.
    pub(super) fn problem(&self, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.add(self.at(key), what, remedy);
    }

    /// Reports a problem with one key of this object, and the check that refuses it.
    pub(super) fn refused(&self, check: Option<Check>, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(PolicyProblem { check, ..PolicyProblem::new(self.at(key), what, remedy) });
    }

    /// Reports a problem with one key unless the condition holds, or the check is turned off.
    /// `problem` returns what is wrong and the remedy. Returns true if there is no problem.
    pub(super) fn ensure<W: Into<String>, R: Into<String>>(
        &self,
        check: Check,
        holds: bool,
        key: &str,
        problem: impl FnOnce() -> (W, R),
    ) -> bool {
        self.problems.ensure(check, holds, || {
            let (what, remedy) = problem();
            PolicyProblem::new(self.at(key), what, remedy)
        })
    }

    /// Returns the value of a key, which is a known key from now on.
    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.map.get(key)
    }

    /// Returns the string at a key; any other value is a problem.
    pub(super) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            other => {
                self.problem(key, format!("is {}", kind(other)), "write a string");
                None
            }
        }
    }

    /// Returns the string at a key; a missing key is a problem, too.
    pub(super) fn required_text(&mut self, key: &'static str, example: &str) -> Option<&'a str> {
        if !self.map.contains_key(key) {
            self.problem(key, "is missing", format!("add it, like \"{key}\": \"{example}\""));
        }
        self.text(key)
    }

    /// Returns the boolean at a key; an absent key means false.
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

    /// Returns the elements of a list with their paths; an absent key means an empty list.
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

    /// Returns the strings of a list with their paths; an absent key means an empty list.
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

    /// Returns the strings of a list; a missing key or an empty list is a problem.
    pub(super) fn required_texts(&mut self, key: &'static str, example: &str) -> Vec<(String, &'a str)> {
        let remedy = || format!("list at least one, like \"{key}\": [\"{example}\"]");
        match self.map.get(key) {
            None => self.problem(key, "is missing", remedy()),
            Some(Value::Array(list)) => {
                let problem = || ("is empty, so that nothing could match", remedy());
                self.ensure(Check::EmptyList, !list.is_empty(), key, problem);
            }
            Some(_) => {}
        }
        self.texts(key)
    }

    /// Returns the path, name and value of each member of an object whose names the author of
    /// the file chooses; an absent key means an empty object.
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

    /// Accepts the key `$schema`, with which editors find the JSON Schema of the file. Its value
    /// has no effect; anything but a string is a problem.
    pub(super) fn accept_schema(&mut self) {
        self.text("$schema");
    }

    /// Reports every key that the reader has not asked for.
    pub(super) fn close(self) {
        for key in self.map.keys() {
            self.ensure(Check::UnknownKey, self.known.contains(&key.as_str()), &printable(key), || {
                (
                    "is an unknown key",
                    format!("remove it or correct its spelling; known here: {}", self.known.join(", ")),
                )
            });
        }
    }
}

/// Returns the JSON type of a value as messages name it.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Cuts foreign text to 200 characters and replaces control and invisible characters by `?`.
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

/// Returns true if the text can name a grant, need, login or capture.
pub(super) fn is_ident(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// The remedy for a text that `is_ident` rejects.
pub(super) const IDENT: &str = "use 1 to 64 letters, digits, `.`, `_`, `-`";
