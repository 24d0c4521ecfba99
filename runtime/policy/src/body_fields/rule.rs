//! The rule for one place of `fields`.

use std::fmt;

use serde_json::Value;

use super::field_place::{FieldKind, FieldPlace};
use super::pattern::Pattern;
use crate::object_reader::{ObjectReader, kind, printable};
use crate::problem::Problems;

/// What a place may hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub(super) allowed: Allowed,
    /// True if the place must be in the request.
    pub(super) required: bool,
}

/// The values that a place may have.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Allowed {
    /// Neither the place nor anything below it may be there.
    Nothing,
    /// Every value, and everything below it.
    Anything,
    /// One of these values.
    OneOf(Vec<Value>),
    /// A text that begins with this one.
    Prefix(String),
    /// A text that the pattern describes.
    Pattern(Pattern),
}

const REMEDY: &str = "write \"absent\", \"any\", {\"is\": VALUE}, {\"one_of\": [VALUE, …]}, {\"prefix\": \"TEXT\"} or \
                      {\"pattern\": \"PATTERN\"}";

impl Rule {
    /// Reads the rule at the path `at`; anything else is a problem.
    pub(super) fn read(value: &Value, at: &str, problems: &Problems) -> Option<Rule> {
        match value {
            Value::String(word) if word == "absent" => Some(Rule { allowed: Allowed::Nothing, required: false }),
            Value::String(word) if word == "any" => Some(Rule { allowed: Allowed::Anything, required: false }),
            Value::Object(map) => {
                let mut reader = ObjectReader::open(value, at, problems)?;
                let mut found = Vec::new();
                found.extend(reader.value("is").map(|value| Allowed::OneOf(vec![value.clone()])));
                if reader.value("one_of").is_some() {
                    let list: Vec<Value> = reader.list("one_of").into_iter().map(|(_, value)| value.clone()).collect();
                    if list.is_empty() {
                        reader.problem(
                            "one_of",
                            "is empty, so that nothing could match",
                            "list the values that are allowed",
                        );
                    }
                    found.push(Allowed::OneOf(list));
                }
                found.extend(reader.text("prefix").map(|text| Allowed::Prefix(text.to_owned())));
                if let Some(text) = reader.text("pattern") {
                    match Pattern::parse(text) {
                        Ok(pattern) => found.push(Allowed::Pattern(pattern)),
                        Err(error) => {
                            reader.problem(
                                "pattern",
                                error.to_string(),
                                "write it like `vm-[0-9a-f]{8}`, or use another rule",
                            );
                            return None;
                        }
                    }
                }
                let required = reader.flag("required");
                reader.close();
                let only_required = found.is_empty() && required;
                if found.len() > 1 || (found.is_empty() && !only_required) || map.is_empty() {
                    problems.add(at, "does not have exactly one rule", REMEDY);
                    return None;
                }
                Some(Rule { allowed: found.pop().unwrap_or(Allowed::Anything), required })
            }
            other => {
                let what =
                    if other.is_string() { "is an unknown keyword".to_owned() } else { format!("is {}", kind(other)) };
                problems.add(at, what, REMEDY);
                None
            }
        }
    }

    /// Returns why the rule cannot be for this place, and the remedy.
    pub(super) fn unfit_for(&self, place: &FieldPlace) -> Option<(&'static str, &'static str)> {
        if self.required && place.has_star() {
            return Some(("is required, and has a `*`", "name the place that must be there"));
        }
        match &self.allowed {
            Allowed::OneOf(values) if place.kind != FieldKind::Json && !values.iter().all(Value::is_string) => {
                Some(("has a value that is not a string, and only JSON has such values", "write strings"))
            }
            Allowed::Prefix(text) if text.is_empty() => {
                Some(("has an empty prefix, which allows everything", "write \"any\""))
            }
            _ => None,
        }
    }

    /// Returns true if the rule does not allow everything.
    pub(super) fn limits(&self) -> bool {
        self.allowed != Allowed::Anything
    }

    /// Returns true if the rule allows this value.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match &self.allowed {
            Allowed::Nothing => false,
            Allowed::Anything => true,
            Allowed::OneOf(values) => values.contains(value),
            Allowed::Prefix(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix.as_str())),
            Allowed::Pattern(pattern) => value.as_str().is_some_and(|text| pattern.matches(text)),
        }
    }
}

/// Says what the rule demands, as a phrase that follows the place.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.allowed {
            Allowed::Nothing => f.write_str("must be absent"),
            Allowed::Anything => f.write_str("may be anything"),
            Allowed::OneOf(values) => match values.as_slice() {
                [value] => write!(f, "must be {value}"),
                values => {
                    let each: Vec<String> = values.iter().take(8).map(ToString::to_string).collect();
                    write!(f, "must be one of {}", each.join(", "))
                }
            },
            Allowed::Prefix(prefix) => write!(f, "must begin with \"{}\"", printable(prefix)),
            Allowed::Pattern(pattern) => write!(f, "must match the pattern \"{pattern}\""),
        }
    }
}
