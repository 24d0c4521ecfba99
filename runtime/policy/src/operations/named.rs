//! The operation that a request names.

use serde_json::Value;

use super::single::{check_query, is_alike, is_named_in};
use super::{OperationPlace, Operations, quoted};
use crate::body_fields::NameError;
use crate::destination::Destination;
use crate::place::{self, FormError, Message, Place, PlaceError, UnclearQuery, parse_form, soap_names};
use wasm_cpi_checks::{Check, RefusedBy};

pub(super) const SOAP_ACTION: &str = "soapaction";

/// The reason why a request does not name one of the operations. The messages follow the list of
/// the allowed operations.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OperationMismatch {
    /// The query has a parameter with the name of the field in the body. A server that takes
    /// parameters from the query as well would act on that one.
    #[error("the query names `{field}` as well")]
    InQuery { field: String },
    /// The operation is in a form, and servers read the parameters of the query as fields of it.
    #[error("and the request has a query beside the form")]
    QueryBesideForm,
    /// The operation is in a form that is not properly urlencoded.
    #[error("and {0}")]
    Form(#[source] FormError),
    /// The form has a field whose name servers read in different ways.
    #[error("and {0}")]
    FieldName(#[source] NameError),
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
    pub(crate) fn check(&self) -> Option<Check> {
        match self {
            OperationMismatch::InQuery { .. }
            | OperationMismatch::UnclearQuery(_)
            | OperationMismatch::QueryBesideForm => Some(Check::OperationInQuery),
            OperationMismatch::Form(error) => Some(error.check),
            OperationMismatch::FieldName(error) => error.check,
            OperationMismatch::NotListed(_) | OperationMismatch::Absent(_) | OperationMismatch::UnknownBody => None,
            OperationMismatch::Several { check, .. } => Some(*check),
            OperationMismatch::Unreadable(error) => error.check(),
        }
    }
}

impl Operations {
    /// Returns the operation of a request if it is one of these.
    pub(crate) fn allows(&self, destination: &Destination, message: &Message<'_>) -> Result<String, OperationMismatch> {
        let operation = self.find(destination, message)?;
        if !self.allow.contains(&operation) {
            return Err(OperationMismatch::NotListed(operation));
        }
        self.expect_single(destination, message)?;
        Ok(operation)
    }

    /// Returns the operation of a request if it is one of these, and `None` if it is certain that the
    /// request names none of them. An error is for a request that a server could read differently.
    pub(crate) fn identify(
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

    /// Returns the only operation that the request names.
    fn find(&self, destination: &Destination, message: &Message<'_>) -> Result<String, OperationMismatch> {
        let absent = || OperationMismatch::Absent(self.place.clone());
        match &self.place {
            OperationPlace::JsonKey => json_key(message)?.ok_or_else(absent),
            OperationPlace::Soap => soap_operation(message)?.ok_or_else(absent),
            OperationPlace::At(place) => {
                Check::OperationInQuery.perform(|| check_query(destination, place)).transpose()?;
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
