//! The operations of APIs that have one path for all of them.
//!
//! A request names exactly one operation. If it could name a second one, a server might carry
//! out the one that was not judged.

use std::fmt;

use serde_json::{Value, json};

use super::object_reader::{ObjectReader, printable};
use crate::destination::Destination;
use crate::place::{self, Message, Place, PlaceError, UnclearQuery, parse_form, query_names, soap_names};
use crate::{normalize_parameter_name, request_head};
use wasm_cpi_checks::{Check, RefusedBy};

/// The operations that a grant allows, or that a guest declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Where the request names its operation.
    pub place: OperationPlace,
    /// The names of the operations, which must match exactly.
    pub allow: Vec<String>,
}

/// Where a request names its operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationPlace {
    /// The value at a place. A JSON body then has one top-level key.
    At(Place),
    /// `json`: the only top-level key of the JSON body, as in `{"resize": {…}}`.
    JsonKey,
    /// `soap`: the only child of the SOAP body. A SOAPAction, if there is one, ends in its name.
    Soap,
}

const SOAP_ACTION: &str = "soapaction";

/// The reason why a request does not name one of the operations. The messages follow the list of
/// the allowed operations.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperationMismatch {
    /// The query has a parameter with the name of the field in the body. A server that takes
    /// parameters from the query as well would act on that one.
    #[error("the query names `{field}` as well")]
    InQuery { field: String },
    /// A server could find such a parameter in the query.
    #[error("and {0}")]
    UnclearQuery(#[source] UnclearQuery),
    /// The operation is not listed.
    #[error("not {}", quoted(.0))]
    NotListed(String),
    /// The request does not name an operation.
    #[error("and the request has none in `{0}`")]
    Absent(OperationPlace),
    /// The request may name more than one operation. Holds how, and the check.
    #[error("and the request {why}")]
    Several { why: &'static str, check: Check },
    /// The body holds an image, so the operation cannot be known.
    #[error("and the body of the request holds an image, which cannot be judged")]
    UnknownBody,
    /// The place of the operation cannot be read.
    #[error("and the request's cannot be read: {0}")]
    Unreadable(#[source] PlaceError),
}

impl RefusedBy for OperationMismatch {
    fn refused_by(self, _: Check) -> OperationMismatch {
        self
    }
}

impl From<PlaceError> for OperationMismatch {
    fn from(error: PlaceError) -> OperationMismatch {
        OperationMismatch::Unreadable(error)
    }
}

impl OperationMismatch {
    /// Returns the check that refuses the operation, if it is another one than that of the stage.
    pub(super) fn check(&self) -> Option<Check> {
        match self {
            OperationMismatch::InQuery { .. } | OperationMismatch::UnclearQuery(_) => Some(Check::OperationInQuery),
            OperationMismatch::NotListed(_) | OperationMismatch::Absent(_) | OperationMismatch::UnknownBody => None,
            OperationMismatch::Several { check, .. } => Some(*check),
            OperationMismatch::Unreadable(error) => error.check(),
        }
    }
}

impl Operations {
    pub(super) fn read(parent: &mut ObjectReader<'_>) -> Option<Operations> {
        let value = parent.value("operations")?;
        let mut reader = ObjectReader::open(value, parent.at("operations"), parent.problems())?;
        let place = place(&mut reader);
        let mut allow = Vec::new();
        for (at, name) in reader.required_texts("allow", "CreateServer") {
            if name.is_empty() || name.chars().count() > 128 || printable(name) != name {
                let remedy = "write 1 to 128 characters, without control and invisible ones";
                reader.problems().add(at, "is not a valid name of an operation", remedy);
            } else {
                allow.push(name.to_owned());
            }
        }
        reader.close();
        Some(Operations { place: place?, allow })
    }

    /// Returns the operation of a request if it is one of these.
    pub(super) fn allows(&self, destination: &Destination, message: &Message<'_>) -> Result<String, OperationMismatch> {
        let operation = self.find(destination, message)?;
        if self.allow.contains(&operation) { Ok(operation) } else { Err(OperationMismatch::NotListed(operation)) }
    }

    /// Returns the operation of a request if it is one of these, and `None` if it is certain that the
    /// request names none of them. An error is for a request that a server could read differently.
    pub(super) fn identify(
        &self,
        destination: &Destination,
        message: &Message<'_>,
    ) -> Result<Option<String>, OperationMismatch> {
        match self.allows(destination, message) {
            Ok(operation) => Ok(Some(operation)),
            Err(OperationMismatch::NotListed(name)) if !self.allow.iter().any(|one| is_alike(one, &name)) => Ok(None),
            Err(OperationMismatch::Absent(_)) if self.is_unnamed(message) => Ok(None),
            Err(mismatch) => Err(mismatch),
        }
    }

    /// Returns true if no server finds an operation in a request without one at the place itself.
    fn is_unnamed(&self, message: &Message<'_>) -> bool {
        match &self.place {
            _ if message.body.is_empty() => true,
            OperationPlace::At(Place::Header(_) | Place::Cookie(_)) => true,
            // The one key of the body is another one than that of the operation.
            OperationPlace::At(Place::Json(tokens)) => {
                let (key, first) = (json_key(message), tokens.first());
                key.is_ok_and(|key| key.zip(first).is_some_and(|(key, first)| !is_alike(first, &key)))
            }
            OperationPlace::At(Place::Form(field)) => {
                let names = parse_form(message.body);
                names.is_ok_and(|pairs| !pairs.iter().any(|(name, _)| is_named_in(name, field)))
            }
            OperationPlace::At(_) | OperationPlace::JsonKey | OperationPlace::Soap => false,
        }
    }

    /// Returns true if the operation is a key of the body. A server that adds the parameters of the
    /// query to the body would find another key there.
    pub(super) fn is_json_key(&self) -> bool {
        self.place == OperationPlace::JsonKey
    }

    /// Returns the only operation that the request names.
    fn find(&self, destination: &Destination, message: &Message<'_>) -> Result<String, OperationMismatch> {
        let absent = || OperationMismatch::Absent(self.place.clone());
        match &self.place {
            OperationPlace::JsonKey => json_key(message)?.ok_or_else(absent),
            OperationPlace::Soap => soap_operation(message)?.ok_or_else(absent),
            OperationPlace::At(place) => {
                Check::OperationInQuery.perform(|| check_query(destination, &field_names(place))).transpose()?;
                let found = place.read_plainly(message)?.ok_or_else(absent)?;
                match place {
                    Place::Json(_) => drop(json_key(message)?),
                    // A server may take the operation from the body and ignore the header.
                    Place::Header(name) if name == SOAP_ACTION => drop(soap_operation(message)?),
                    _ => {}
                }
                Ok(found)
            }
        }
    }

    /// Returns true if these are all operations of `other`, at the same place.
    pub(super) fn covers(&self, other: &Operations) -> bool {
        self.place == other.place && other.allow.iter().all(|name| self.allow.contains(name))
    }

    /// Returns the operations as they are written in a file.
    pub(super) fn to_json(&self) -> Value {
        json!({"in": self.place.to_string(), "allow": self.allow})
    }
}

/// Returns the only top-level key of a JSON body.
fn json_key(message: &Message<'_>) -> Result<Option<String>, OperationMismatch> {
    let Some(Value::Object(object)) = place::json_document(message)? else { return Ok(None) };
    Check::OperationSingle.ensure(object.len() <= 1, || OperationMismatch::Several {
        why: "has more than one top-level key in its JSON",
        check: Check::OperationSingle,
    })?;
    Ok(object.into_iter().next().map(|(key, _)| key))
}

/// Returns the only child of the SOAP body. It is also the operation that the headers name.
fn soap_operation(message: &Message<'_>) -> Result<Option<String>, OperationMismatch> {
    let several = |why| move || OperationMismatch::Several { why, check: Check::OperationSoap };
    let names = soap_names(message)?;
    let children = names.children;
    Check::OperationSoap.ensure(children.len() <= 1, several("has more than one operation in its SOAP body"))?;
    let child = children.into_iter().next();
    let header = Place::Header(SOAP_ACTION.to_owned()).read(message)?;
    let parameter = place::content_type_parameter(message, "action")?;
    for action in [header, parameter].into_iter().flatten().chain(names.actions) {
        let action = action.trim().trim_matches('"');
        let name = action.rsplit(['/', '#', ':']).next().unwrap_or_default();
        let same = action.is_empty() || child.as_deref() == Some(name);
        Check::OperationSoap
            .ensure(same, several("names another operation in its SOAPAction or SOAP header than in its SOAP body"))?;
    }
    Ok(child)
}

/// Rejects a query in which a server could find one of the fields that name the operation in the body.
fn check_query(destination: &Destination, fields: &[&str]) -> Result<(), OperationMismatch> {
    if fields.is_empty() {
        return Ok(());
    }
    let names = query_names(destination.query().unwrap_or_default()).map_err(OperationMismatch::UnclearQuery)?;
    match fields.iter().find(|field| names.iter().any(|name| is_named_in(name, field))) {
        Some(field) => Err(OperationMismatch::InQuery { field: (*field).to_owned() }),
        None => Ok(()),
    }
}

/// Returns the names of the fields that lead to a place in a body.
fn field_names(place: &Place) -> Vec<&str> {
    match place {
        Place::Json(tokens) => tokens.iter().map(String::as_str).collect(),
        Place::Form(name) | Place::Part(name) => vec![name],
        Place::Xml(path) => path.split('/').filter(|name| !name.is_empty()).collect(),
        Place::Header(_) | Place::Cookie(_) | Place::Body => Vec::new(),
    }
}

/// Returns true if a server may read a parameter with this name as the field, or as a part of it.
fn is_named_in(parameter: &str, field: &str) -> bool {
    std::iter::once(parameter).chain(parameter.split(['.', '[', ']'])).any(|part| is_alike(part, field))
}

/// Returns true if servers could take two names for the same.
fn is_alike(one: &str, other: &str) -> bool {
    request_head::is_alike(&normalize_parameter_name(one), &normalize_parameter_name(other))
}

/// Quotes the name of an operation only if it looks like one: the guest may have put a seal there.
pub(super) fn quoted(operation: &str) -> String {
    if is_plain(operation) { format!("`{operation}`") } else { "what the request asks for".to_owned() }
}

/// Returns true if a text looks like the name of an operation.
pub(super) fn is_plain(operation: &str) -> bool {
    (1..=64).contains(&operation.len()) && operation.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}

fn place(reader: &mut ObjectReader<'_>) -> Option<OperationPlace> {
    match reader.required_text("in", "form:Action")? {
        "json" => Some(OperationPlace::JsonKey),
        "soap" => Some(OperationPlace::Soap),
        text => match text.parse::<Place>() {
            Ok(place) => Some(OperationPlace::At(place)),
            Err(error) => {
                let remedy = "write `json` for the only key of a JSON body, `soap` for the child of a SOAP body, or a \
                              place like `form:F`";
                let what = format!("is not a place: {}", printable(&error.to_string()));
                reader.refused(error.check(), "in", what, remedy);
                None
            }
        },
    }
}

impl fmt::Display for OperationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationPlace::At(place) => write!(f, "{place}"),
            OperationPlace::JsonKey => f.write_str("json"),
            OperationPlace::Soap => f.write_str("soap"),
        }
    }
}
