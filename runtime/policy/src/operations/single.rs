//! Rejects requests in which a server could find a second operation, beside the one that was judged.
//!
//! Many servers accept several protocols at one path, and choose among them by a header or by the
//! Content-Type. Others merge the parameters of the query and of the body, or find names that are
//! written in other ways.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::named::{OperationMismatch, SOAP_ACTION};
use super::{OperationPlace, Operations};
use crate::body_fields::{FieldKind, check_names};
use crate::destination::Destination;
use crate::place::{self, Message, Place, parse_form, query_names};
use crate::{normalize_header_name, normalize_parameter_name, request_head};
use wasm_cpi_checks::Check;

/// Headers by which servers choose the protocol of a request, or its operation.
const OPERATION_HEADERS: [&str; 3] = ["smithy-protocol", SOAP_ACTION, "x-amz-target"];

impl Operations {
    /// Rejects a request that names an operation in another place as well.
    pub(super) fn expect_single(
        &self,
        destination: &Destination,
        message: &Message<'_>,
    ) -> Result<(), OperationMismatch> {
        self.expect_no_other_header(message)?;
        let OperationPlace::At(place) = &self.place else { return Ok(()) };
        match place {
            Place::Header(_) | Place::Cookie(_) => Ok(place::expect_document_type(message)?),
            Place::Form(_) => check_form(destination, message).and_then(|()| check_names_beside(place, message)),
            Place::Json(tokens) => check_keys(tokens, message),
            Place::Xml(_) | Place::Part(_) => check_names_beside(place, message),
            Place::Body => Ok(()),
        }
    }

    /// Rejects a header in which a server looks for the operation. A SOAPAction beside a SOAP body is compared with it.
    fn expect_no_other_header(&self, message: &Message<'_>) -> Result<(), OperationMismatch> {
        let own = match &self.place {
            OperationPlace::At(Place::Header(name)) => normalize_header_name(name),
            OperationPlace::Soap => SOAP_ACTION.to_owned(),
            OperationPlace::At(_) | OperationPlace::JsonKey => String::new(),
        };
        let is_other = |name: &str| {
            let name = normalize_header_name(name);
            name != own && OPERATION_HEADERS.contains(&name.as_str())
        };
        Check::OperationSingle.ensure(!message.headers.iter().any(|(name, _)| is_other(name)), || {
            OperationMismatch::Several { why: "names an operation in another header", check: Check::OperationSingle }
        })
    }
}

/// Rejects a form that servers could read in different ways, and a query beside it.
fn check_form(destination: &Destination, message: &Message<'_>) -> Result<(), OperationMismatch> {
    let has_query = destination.query().is_some_and(|query| !query.is_empty());
    Check::OperationInQuery.ensure(!has_query, || OperationMismatch::QueryBesideForm)?;
    let pairs = parse_form(message.body).map_err(OperationMismatch::Form)?;
    check_names(FieldKind::Form, &pairs).map_err(OperationMismatch::FieldName)
}

/// Rejects a body with a field, a part or an element that a server could read as the one with the operation, or as a
/// part of it.
fn check_names_beside(place: &Place, message: &Message<'_>) -> Result<(), OperationMismatch> {
    let wanted = field_names(place).pop().unwrap_or_default();
    let is_read_so = |name: &String| {
        let decoded = percent_decode_str(name).decode_utf8_lossy();
        // The names of elements may have hyphens, and servers do not split them.
        let begins_so = !matches!(place, Place::Xml(_)) && request_head::begins_alike(&decoded, wanted);
        name != wanted && (begins_so || is_alike(&decoded, wanted))
    };
    let names = place::names_in_body(place, message)?;
    Check::PlaceAlike.ensure(!names.iter().any(is_read_so), in_other_spelling)
}

/// Rejects JSON with a key that a server could read as one on the way to the operation, or as several of them.
fn check_keys(tokens: &[String], message: &Message<'_>) -> Result<(), OperationMismatch> {
    let Some(document) = place::json_document(message)? else { return Ok(()) };
    let mut here = Some(&document);
    for (at, token) in tokens.iter().enumerate() {
        let rest = tokens[at..].concat();
        let object = here.and_then(Value::as_object);
        let mut keys = object.into_iter().flat_map(serde_json::Map::keys);
        let is_read_so = keys.any(|key| key != token && (is_alike(key, token) || is_alike(key, &rest)));
        Check::PlaceAlike.ensure(!is_read_so, in_other_spelling)?;
        here = object.and_then(|object| object.get(token));
    }
    Ok(())
}

fn in_other_spelling() -> OperationMismatch {
    OperationMismatch::Several { why: "names the operation in another spelling as well", check: Check::PlaceAlike }
}

/// Rejects a query in which a server could find one of the fields that name the operation in the body.
pub(super) fn check_query(destination: &Destination, place: &Place) -> Result<(), OperationMismatch> {
    let fields = field_names(place);
    if fields.is_empty() {
        return Ok(());
    }
    let names = query_names(destination.query().unwrap_or_default()).map_err(OperationMismatch::UnclearQuery)?;
    let joined = fields.concat();
    match fields.iter().chain([&joined.as_str()]).find(|field| names.iter().any(|name| is_named_in(name, field))) {
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
pub(super) fn is_named_in(parameter: &str, field: &str) -> bool {
    std::iter::once(parameter).chain(parameter.split(['.', '[', ']'])).any(|part| is_alike(part, field))
}

/// Returns true if servers could take two names for the same.
pub(super) fn is_alike(one: &str, other: &str) -> bool {
    request_head::is_alike(&normalize_parameter_name(one), &normalize_parameter_name(other))
}
