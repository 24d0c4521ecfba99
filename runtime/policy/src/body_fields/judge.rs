//! Compares a request with the rules for its fields.

mod beside_query;
mod value;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::field_place::{FieldKind, FieldPlace, Token};
use super::names::{IN_OTHER_SPELLING, NameError, check_names, is_showable, shown};
use super::request::{JudgedBody, JudgedRequest, query_text};
use super::{FieldRules, Rule};
use crate::normalize_header_name;
use crate::place::{JsonBodyError, Message, Place, PlaceError, expect_plain_body, parse_form, parse_json};
use wasm_cpi_checks::{Check, RefusedBy};

/// Headers that every request may have: they do not change what the server does.
const HARMLESS_HEADERS: [&str; 3] = ["accept", "content-type", "user-agent"];
/// The first integer that a parser with floating-point numbers cannot distinguish from the next.
const MAX_INTEGER: u64 = 1 << 53;

/// The reason why the fields of a request are refused. The messages complete the sentence "limits the
/// fields of the request: …" in `wording::explain`.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub(crate) struct FieldMismatch {
    fault: FieldFault,
    check: Option<Check>,
}

#[derive(Debug, thiserror::Error)]
enum FieldFault {
    #[error("`{place}` {rule}")]
    Rule { place: String, rule: String },
    #[error("`{0}` is missing")]
    Missing(String),
    /// Holds the place, if it can be shown.
    #[error("{} is not listed", shown(.0))]
    Other(String),
    #[error("{0}")]
    Name(NameError),
    #[error("the JSON holds a number of 2^53 or more")]
    Number,
    #[error("{0}")]
    Body(&'static str),
    #[error("{0}")]
    Unreadable(PlaceError),
}

impl From<FieldFault> for FieldMismatch {
    fn from(fault: FieldFault) -> FieldMismatch {
        FieldMismatch { fault, check: None }
    }
}

impl From<NameError> for FieldMismatch {
    fn from(error: NameError) -> FieldMismatch {
        FieldMismatch { check: error.check, fault: FieldFault::Name(error) }
    }
}

impl From<PlaceError> for FieldMismatch {
    fn from(error: PlaceError) -> FieldMismatch {
        FieldMismatch { check: error.check(), fault: FieldFault::Unreadable(error) }
    }
}

impl RefusedBy for FieldMismatch {
    fn refused_by(self, check: Check) -> FieldMismatch {
        FieldMismatch { check: self.check.or(Some(check)), ..self }
    }
}

impl FieldMismatch {
    fn body(what: &'static str) -> FieldMismatch {
        FieldFault::Body(what).into()
    }

    /// Returns the check that refused; a body that cannot be parsed is refused as a whole.
    pub(crate) fn check(&self) -> Check {
        self.check.unwrap_or(Check::FieldBody)
    }

    /// Returns the place that the operator could list to allow the request.
    pub(crate) fn unlisted(&self) -> Option<&str> {
        match &self.fault {
            FieldFault::Other(place) if is_showable(place) => Some(place),
            _ => None,
        }
    }
}

/// The rules that have been met by a field of the request.
type Met = Vec<bool>;

impl FieldRules {
    /// Judges a request, and returns what was judged as the host serialises it.
    pub(crate) fn judge(&self, query: Option<&str>, message: &Message<'_>) -> Result<JudgedRequest, FieldMismatch> {
        let mut met: Met = vec![false; self.rules.len()];
        self.judge_headers(message.headers, &mut met)?;
        let query = self.judges_query().then(|| self.judge_query(query, &mut met)).transpose()?;
        let body = self.judge_body(message, &mut met)?;
        let missing = self.rules.iter().zip(&met).find(|((_, rule), met)| rule.required && !**met);
        Check::FieldRequired
            .reject(missing, |((place, _), _)| FieldMismatch::from(FieldFault::Missing(place.to_string())))?;
        Ok(JudgedRequest { query, body })
    }

    fn judge_headers(&self, headers: &[(String, String)], met: &mut Met) -> Result<(), FieldMismatch> {
        if !self.deny_others && !self.has(FieldKind::Header) {
            return Ok(());
        }
        let mut names = HashSet::new();
        for (name, value) in headers {
            let path = [normalize_header_name(name)];
            let ruled = self.of(FieldKind::Header).any(|(_, (place, _))| place.is_at(&path));
            if !ruled && HARMLESS_HEADERS.contains(&path[0].as_str()) {
                continue;
            }
            let once = names.insert(path[0].clone());
            Check::FieldTwice.ensure(once || !ruled, || NameError::new(FieldKind::Header, &path, "occurs twice"))?;
            self.judge_value(FieldKind::Header, &path, &Value::String(value.clone()), met)?;
        }
        Ok(())
    }

    fn judge_query(&self, query: Option<&str>, met: &mut Met) -> Result<String, FieldMismatch> {
        let unreadable = |_| FieldMismatch::body("the query is not properly urlencoded");
        let pairs = parse_form(query.unwrap_or_default().as_bytes()).map_err(unreadable)?;
        self.judge_pairs(FieldKind::Query, &pairs, met)?;
        Ok(query_text(&pairs))
    }

    fn judge_body(&self, message: &Message<'_>, met: &mut Met) -> Result<Option<JudgedBody>, FieldMismatch> {
        let body = message.body;
        let (json, form) = (self.has(FieldKind::Json), self.has(FieldKind::Form));
        self.judge_body_beside_query(message)?;
        if body.is_empty() || !(json || form || self.deny_others) {
            return Ok(None);
        }
        Check::FieldBody.ensure(json || form, || FieldMismatch::body("a body is not allowed"))?;
        expect_plain_body(message.headers)?;
        if form {
            let unreadable = |_| FieldMismatch::body("the body is not a properly urlencoded form");
            let pairs = parse_form(body).map_err(unreadable)?;
            self.judge_pairs(FieldKind::Form, &pairs, met)?;
            return Ok(Some(JudgedBody::form(&pairs, self.deny_others)));
        }
        let document = parse_json(body).map_err(unreadable_json)?;
        Check::FieldBody.ensure(document.is_object(), || FieldMismatch::body("the body is not a JSON object"))?;
        self.judge_json(&mut Vec::new(), &document, met)?;
        Ok(Some(JudgedBody::json(&document, self.deny_others)))
    }

    /// Judges the fields of a form or query.
    fn judge_pairs(&self, kind: FieldKind, pairs: &[(String, String)], met: &mut Met) -> Result<(), FieldMismatch> {
        check_names(kind, pairs)?;
        for (name, value) in pairs {
            let path: Vec<&str> = name.split('.').collect();
            let variant = (0..path.len()).any(|at| self.is_variant(kind, &path[..at], path[at]))
                || self.is_variant_of_name(kind, &path, name)
                || (kind == FieldKind::Form && self.is_reached_by_words(&path, name));
            Check::FieldAlike.ensure(!variant, || NameError::new(kind, &path, IN_OTHER_SPELLING))?;
            self.judge_value(kind, &path, &Value::String(value.clone()), met)?;
        }
        Ok(())
    }

    /// Judges a value of JSON and everything below it.
    fn judge_json<'a>(
        &self,
        path: &mut Vec<PathPart<'a>>,
        value: &'a Value,
        met: &mut Met,
    ) -> Result<(), FieldMismatch> {
        self.judge_value(FieldKind::Json, path, value, met)?;
        match value {
            Value::Object(object) => {
                self.judge_keys(path, object)?;
                self.judge_element(path, object)?;
                for (key, value) in object {
                    path.push(PathPart::Key(key));
                    self.judge_json(path, value, met)?;
                    path.pop();
                }
            }
            Value::Array(list) => {
                self.judge_list(path)?;
                for (index, value) in list.iter().enumerate() {
                    path.push(PathPart::Index(index.to_string()));
                    self.judge_json(path, value, met)?;
                    path.pop();
                }
            }
            Value::Number(number) => {
                self.judge_plain(path)?;
                let small = number.as_f64().is_some_and(|number| number.abs() < MAX_INTEGER as f64);
                Check::FieldNumber.ensure(small, || FieldMismatch::from(FieldFault::Number))?;
            }
            Value::Null => {}
            _ => self.judge_plain(path)?,
        }
        Ok(())
    }

    /// Rejects an object in place of a list whose elements have a limited key: some servers take one element for a list.
    /// The object may have keys of its own, but none that is read as the key of an element.
    fn judge_element(&self, path: &[PathPart<'_>], object: &Map<String, Value>) -> Result<(), FieldMismatch> {
        let is_element = |place: &FieldPlace| match place.next_two_after(path) {
            Some((first, Some(key))) if *first == Token::Any || first.is_index() => {
                key.is_key() && object.keys().any(|given| key.may_begin(given))
            }
            _ => false,
        };
        let mut rules = self.of(FieldKind::Json).filter(|(_, (_, rule))| rule.limits());
        // The body itself is never a list.
        Check::FieldList.ensure(path.is_empty() || !rules.any(|(_, (place, _))| is_element(place)), || {
            let what = "is an object, and the elements of the list that should be there are limited";
            NameError::new(FieldKind::Json, path, what)
        })?;
        Ok(())
    }

    /// Rejects a plain value where a rule limits what is in a list: some servers take it for a list of one element.
    fn judge_plain(&self, path: &[PathPart<'_>]) -> Result<(), FieldMismatch> {
        let leads =
            |place: &FieldPlace| place.next_after(path).is_some_and(|token| *token == Token::Any || token.is_index());
        let mut rules = self.of(FieldKind::Json).filter(|(_, (_, rule))| rule.limits());
        Check::FieldList.ensure(!rules.any(|(_, (place, _))| leads(place)), || {
            let what = "is one value, and the elements of the list that should be there are limited";
            NameError::new(FieldKind::Json, path, what)
        })?;
        Ok(())
    }

    /// Judges the keys of an object that a rule leads into. Others are not compared with anything.
    fn judge_keys(&self, path: &[PathPart<'_>], object: &Map<String, Value>) -> Result<(), FieldMismatch> {
        if !self.of(FieldKind::Json).any(|(_, (place, _))| place.next_after(path).is_some()) {
            return Ok(());
        }
        let mut folded = HashSet::new();
        for key in object.keys() {
            let alone = folded.insert(key.to_ascii_lowercase());
            let mut rules = self.of(FieldKind::Json);
            let is_joined = rules.any(|(_, (place, rule))| place.is_reached_by_joined(path, key, rule.limits()));
            let plain = is_plain(key) && alone && !is_joined && !self.is_variant(FieldKind::Json, path, key);
            Check::FieldAlike.ensure(plain, || {
                let here: Vec<&str> = path.iter().map(AsRef::as_ref).chain([key.as_str()]).collect();
                NameError::new(
                    FieldKind::Json,
                    &here,
                    "is another key in another spelling, or not printable ASCII without blanks around it",
                )
            })?;
        }
        Ok(())
    }

    /// Rejects a list where a rule limits a key of an object: some servers take a list of one element for it.
    fn judge_list(&self, path: &[PathPart<'_>]) -> Result<(), FieldMismatch> {
        let limits_key =
            |(place, rule): &(FieldPlace, Rule)| rule.limits() && place.next_after(path).is_some_and(Token::is_key);
        Check::FieldList.ensure(!self.of(FieldKind::Json).any(|(_, one)| limits_key(one)), || {
            let what = "is a list, and a key of the object that should be there is limited";
            NameError::new(FieldKind::Json, path, what)
        })?;
        Ok(())
    }

    /// Returns true if a server that ignores separators between the parts of a name reads it as one that a rule names.
    fn is_variant_of_name<T: AsRef<str>>(&self, kind: FieldKind, path: &[T], name: &str) -> bool {
        let places = || self.of(kind).map(|(_, (place, _))| place);
        !places().any(|place| place.is_at(path)) && places().any(|place| place.is_variant_of_name(name))
    }

    /// Returns true if a server could read the name as a limited one, or as something below it, and no rule lists it.
    fn is_reached_by_words<T: AsRef<str>>(&self, path: &[T], name: &str) -> bool {
        let places = || self.of(FieldKind::Form).map(|(_, one)| one);
        let is_listed = places().any(|(place, _)| place.is_above(path));
        !is_listed && places().any(|(place, rule)| rule.limits() && place.is_reached_by_words(name))
    }

    /// Returns true if a server could read the name as another one that a rule names.
    fn is_variant<T: AsRef<str>>(&self, kind: FieldKind, path: &[T], name: &str) -> bool {
        let next: Vec<&Token> = self.of(kind).filter_map(|(_, (place, _))| place.next_after(path)).collect();
        let named = |token: &&Token| **token != Token::Any && token.matches(name);
        !next.iter().any(named) && next.iter().any(|token| token.is_variant(name))
    }

    /// Returns the rules for fields of this kind, with their numbers.
    fn of(&self, kind: FieldKind) -> impl Iterator<Item = (usize, &(FieldPlace, Rule))> {
        self.rules.iter().enumerate().filter(move |(_, (place, _))| place.kind == kind)
    }
}

fn unreadable_json(error: JsonBodyError) -> PlaceError {
    PlaceError { place: Place::Body.to_string(), fault: error.into() }
}

/// Returns true for keys that all parsers read alike: some end a key at a zero byte, or ignore blanks around it.
fn is_plain(key: &str) -> bool {
    key.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && key.trim() == key
}

/// A key or an index on the path to a value of JSON.
enum PathPart<'a> {
    Key(&'a str),
    Index(String),
}

impl AsRef<str> for PathPart<'_> {
    fn as_ref(&self) -> &str {
        match self {
            PathPart::Key(key) => key,
            PathPart::Index(index) => index,
        }
    }
}
