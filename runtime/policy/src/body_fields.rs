//! `fields` of a grant: what the body, the query and the headers of a request may hold.
//!
//! Methods and paths are not enough where one request can do anything. An entry of `fields` is
//! for a method and a path, and perhaps for one operation. It lists places with a rule for each,
//! and says what becomes of everything else. All entries that are for a request apply to it.
//!
//! A request is judged before its slots are filled, and the host sends its own serialisation of
//! what was judged, so that no server reads another body than this module.

mod field_place;
mod judge;
mod names;
mod pattern;
mod request;
mod rule;
#[cfg(test)]
mod tests;

pub use pattern::{Pattern, PatternError};
pub use request::JudgedRequest;

pub(super) use field_place::FieldKind;
pub(super) use judge::FieldMismatch;
pub(super) use names::{NameError, check_names};

use serde_json::Value;

use super::object_reader::{ObjectReader, printable};
use super::operations;
use super::path::{Base, PathPattern};
use super::slots::{method, path};
use field_place::FieldPlace;
use rule::Rule;
use wasm_cpi_checks::Check;

/// The rules of a grant for the fields of some of its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldRules {
    /// The method of the requests, in upper case.
    pub method: String,
    /// The paths of the requests.
    pub path: PathPattern,
    /// The operation of the requests; `None` for all of them.
    pub operation: Option<String>,
    /// True if a field that no rule lists is refused.
    deny_others: bool,
    rules: Vec<(FieldPlace, Rule)>,
}

impl FieldRules {
    pub(super) fn read_all(parent: &mut ObjectReader<'_>) -> Vec<FieldRules> {
        let list = parent.list("fields");
        list.into_iter().filter_map(|(at, value)| FieldRules::read(value, at, parent)).collect()
    }

    fn read(value: &Value, at: String, parent: &ObjectReader<'_>) -> Option<FieldRules> {
        let problems = parent.problems();
        let mut reader = ObjectReader::open(value, at, problems)?;
        let method =
            reader.required_text("method", "POST").and_then(|text| method(text, &reader.at("method"), problems));
        let path =
            reader.required_text("path", "/v1/servers").and_then(|text| path(text, &reader.at("path"), problems));
        let operation = operations::read_name(&mut reader, "operation");
        let deny_others = match reader.text("others") {
            None | Some("allow") => false,
            Some("deny") => true,
            Some(_) => {
                reader.problem("others", "is an unknown keyword", "write \"allow\" or \"deny\"");
                true
            }
        };
        let mut rules = Vec::new();
        for (at, text, value) in reader.members("places") {
            let place = FieldPlace::parse(text);
            let rule = Rule::read(value, &printable(&at), problems);
            match (place, rule) {
                (Err(what), _) => problems.add(printable(&at), what, field_place::REMEDY),
                (Ok(place), Some(rule)) => match rule.unfit_for(&place) {
                    Some((what, remedy)) => problems.add(printable(&at), what, remedy),
                    None => rules.push((place, rule)),
                },
                (Ok(_), None) => {}
            }
        }
        // In one order, however the file lists them: a denial names the first rule that refuses.
        rules.sort_by_cached_key(|(place, _)| place.to_string());
        let kinds = |kind: FieldKind| rules.iter().any(|(place, _)| place.kind == kind);
        if kinds(FieldKind::Json) && kinds(FieldKind::Form) {
            reader.problem("places", "judges both JSON and a form, and a body is only one of them", "keep one of them");
        }
        if reader.value("places").is_none_or(is_empty) && !deny_others {
            reader.problem(
                "places",
                "is empty, so that the entry has no effect",
                "list a place, or set \"others\": \"deny\"",
            );
        }
        reader.close();
        Some(FieldRules { method: method?, path: path?, operation, deny_others, rules })
    }

    /// Returns the rules with `base` put before their path.
    pub(super) fn below(&self, base: &Base) -> FieldRules {
        FieldRules { path: self.path.below(base), ..self.clone() }
    }

    /// Returns true if the rules are for requests with this method and path.
    pub(super) fn is_for(&self, method: &str, path: &str) -> bool {
        self.is_for_method(method) && self.path.matches(path)
    }

    /// Returns true if the rules are for requests with this operation.
    pub(super) fn is_for_operation(&self, operation: Option<&str>) -> bool {
        self.operation.is_none() || self.operation.as_deref() == operation
    }

    /// Returns true if the rules are for requests with this method. A HEAD asks what a GET asks.
    pub(super) fn is_for_method(&self, method: &str) -> bool {
        self.method == method || (method == "HEAD" && self.method == "GET")
    }

    /// Returns true if both demand the same of their requests, whatever the paths are.
    pub(super) fn demands_the_same(&self, other: &FieldRules) -> bool {
        let demands = |rules: &FieldRules| (rules.operation.clone(), rules.deny_others, rules.rules.clone());
        demands(self) == demands(other)
    }

    /// Returns true if a rule is about this kind of field.
    fn has(&self, kind: FieldKind) -> bool {
        self.rules.iter().any(|(place, _)| place.kind == kind)
    }

    /// Returns true if the query is judged: by rules of its own, or because a server may read its
    /// parameters as fields of the body.
    pub(super) fn judges_query(&self) -> bool {
        self.deny_others || [FieldKind::Query, FieldKind::Form, FieldKind::Json].iter().any(|kind| self.has(*kind))
    }

    /// Returns the check that refuses a field of this kind that no rule lists. A server may read any
    /// query parameter as a field of a form, and one with the name of a judged field as that field.
    fn others<T: AsRef<str>>(&self, kind: FieldKind, path: &[T]) -> Option<Check> {
        let judged = |part: &T| {
            let limited = self.rules.iter().filter(|(place, rule)| place.kind == FieldKind::Json && rule.limits());
            limited.into_iter().any(|(place, _)| place.names(part.as_ref()))
        };
        match kind {
            _ if self.deny_others => Some(Check::FieldOthers),
            FieldKind::Query if self.has(FieldKind::Form) || path.iter().any(judged) => Some(Check::FieldQuery),
            _ => None,
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}
