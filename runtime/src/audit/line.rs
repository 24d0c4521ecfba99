//! One line: a JSON object whose fields have names and types of their own.
//!
//! There is no way to put in anything but a number, a flag, a word of the
//! runtime's own or a text that was made harmless: redacted, escaped and cut.
//! So a guest can forge no field, no line, and hide none.

use crate::log::Log;
use serde_json::{Map, Value};

/// Of a line, its end included.
pub(super) const LINE_MAX: usize = 4096;

/// What a line that is too long can do without, in this order.
const EXPENDABLE: [&str; 10] = [
    "seals",
    "why",
    "target",
    "secret",
    "login",
    "director_uuid",
    "request_id",
    "guest_version",
    "guest_name",
    "method",
];

pub(super) struct Line<'a> {
    fields: Map<String, Value>,
    log: &'a Log,
}

impl<'a> Line<'a> {
    pub(super) fn new(log: &'a Log) -> Self {
        Line { fields: Map::new(), log }
    }

    /// A word of the runtime's own.
    pub(super) fn word(&mut self, name: &str, word: impl Into<String>) -> &mut Self {
        self.fields.insert(name.to_owned(), Value::String(word.into()));
        self
    }

    /// A text of anybody's; an empty one is left out.
    pub(super) fn text(&mut self, name: &str, text: &str, max: usize) -> &mut Self {
        if !text.is_empty() {
            let text = self.log.field(text, max);
            self.fields.insert(name.to_owned(), Value::String(text));
        }
        self
    }

    pub(super) fn texts(&mut self, name: &str, texts: &[String], most: usize, max: usize) -> &mut Self {
        if !texts.is_empty() {
            let texts = texts.iter().take(most).map(|text| Value::String(self.log.field(text, max))).collect();
            self.fields.insert(name.to_owned(), Value::Array(texts));
        }
        self
    }

    pub(super) fn number(&mut self, name: &str, number: u64) -> &mut Self {
        self.fields.insert(name.to_owned(), number.into());
        self
    }

    pub(super) fn flag(&mut self, name: &str, flag: bool) -> &mut Self {
        self.fields.insert(name.to_owned(), flag.into());
        self
    }

    /// The bytes to write.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let written = |fields: &Map<String, Value>| serde_json::to_vec(fields).unwrap_or_default();
        let mut line = written(&self.fields);
        for name in EXPENDABLE {
            if line.len() < LINE_MAX {
                break;
            }
            if self.fields.shift_remove(name).is_some() {
                self.flag("cut", true);
                line = written(&self.fields);
            }
        }
        line.push(b'\n');
        line
    }
}
