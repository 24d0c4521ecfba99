//! One line of the audit log: a JSON object.
//!
//! A field is a number, a flag, a text of the runtime, or a foreign text that is redacted, escaped
//! and cut. So a guest cannot forge or hide a field or a line. Values that a server chose are redacted in
//! no field: a server could otherwise return `DELETE`, or the ID of the request, where a value is captured,
//! and so hide what the guest asks for.

use crate::log::Log;
use serde_json::{Map, Value};
use wasm_cpi_checks::Check;

/// The most bytes of a line, including its end.
pub(super) const LINE_MAX: usize = 4096;

/// The fields that are removed from a line that is too long, in this order.
const EXPENDABLE: [&str; 11] = [
    "seals",
    "why",
    "target",
    "secret",
    "login",
    "credentials",
    "director_uuid",
    "request_id",
    "guest_version",
    "guest_name",
    "method",
];

/// A line that is being built.
pub(super) struct Line<'a> {
    fields: Map<String, Value>,
    log: &'a Log,
}

impl<'a> Line<'a> {
    pub(super) fn new(log: &'a Log) -> Self {
        Line { fields: Map::new(), log }
    }

    /// Adds a text that the runtime itself chose.
    pub(super) fn own_text(&mut self, name: &str, text: impl Into<String>) -> &mut Self {
        self.fields.insert(name.to_owned(), Value::String(text.into()));
        self
    }

    /// Adds the code of the check that refused, if one did.
    pub(super) fn code(&mut self, check: Option<Check>) -> &mut Self {
        if let Some(check) = check {
            self.own_text("code", check.code());
        }
        self
    }

    /// Adds a foreign text of at most `max` bytes, unless it is empty.
    pub(super) fn text(&mut self, name: &str, text: &str, max: usize) -> &mut Self {
        if !text.is_empty() {
            let text = self.log.clean_audit_field(text, max);
            self.fields.insert(name.to_owned(), Value::String(text));
        }
        self
    }

    pub(super) fn texts(&mut self, name: &str, texts: &[String], most: usize, max: usize) -> &mut Self {
        if !texts.is_empty() {
            let texts =
                texts.iter().take(most).map(|text| Value::String(self.log.clean_audit_field(text, max))).collect();
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

    /// Returns the bytes to write.
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
