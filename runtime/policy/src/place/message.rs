//! A message in which places are looked up, and what concerns it as a whole: its charset, its encoding,
//! its boundary, and the document in its body.

use serde_json::Value;

use super::error::PlaceError;
use super::media_type::Format;
use super::soap::{self, SoapNames};
use super::{Place, form, headers, json, media_type, multipart, xml};
use crate::normalize_header_name;
use wasm_cpi_checks::Check;

/// The message in which a place is looked up. Its Content-Type says how the body is parsed.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The names and values of all headers; names are compared without regard to case.
    pub headers: &'a [(String, String)],
    /// The complete body; empty if there is none.
    pub body: &'a [u8],
}

/// Rejects a message whose Content-Type names a charset other than UTF-8. A server that reads
/// the body in another charset may see other boundaries between its values than this crate.
pub fn expect_utf8(headers: &[(String, String)]) -> Result<(), PlaceError> {
    headers::expect_utf8(headers).map_err(|fault| PlaceError { place: "header:content-type".to_owned(), fault })
}

/// Gives a multipart form another boundary, which must not occur in any of its parts and in no value
/// that is put into them. The host chooses it at random: with a boundary of the guest's choice, a
/// secret that contains it would end its part. Has no effect on other messages.
pub fn set_boundary(headers: &mut [(String, String)], body: &mut Vec<u8>, boundary: &str) -> Result<(), PlaceError> {
    let failed = |fault| PlaceError { place: "header:content-type".to_owned(), fault };
    let Some((index, old)) = headers::multipart_header(headers).map_err(failed)? else { return Ok(()) };
    *body = multipart::with_boundary(body, &old, boundary).map_err(failed)?;
    headers[index].1 = format!("multipart/form-data; boundary={boundary}");
    Ok(())
}

/// Says to a server that the body has no format, if the guest did not say anything: servers read the
/// body of a POST without a Content-Type as a form.
pub fn set_missing_type(headers: &mut Vec<(String, String)>) {
    let is_type = |(name, _): &(String, String)| normalize_header_name(name) == "content-type";
    if !headers.iter().any(is_type) {
        headers.push(("content-type".to_owned(), "application/octet-stream".to_owned()));
    }
}

/// Rejects a body that a server would decode before it parses it.
pub(crate) fn expect_plain_body(headers: &[(String, String)]) -> Result<(), PlaceError> {
    let plain = headers::expect_plain(headers);
    Check::PlaceAlike.reject(plain.err(), |fault| fault).map_err(|fault| Place::Body.fault(fault))
}

/// Returns the JSON of a body that a server will parse as well; `None` if there is no body.
pub(crate) fn json_document(message: &Message<'_>) -> Result<Option<Value>, PlaceError> {
    if message.body.is_empty() {
        return Ok(None);
    }
    expect_plain_body(message.headers)?;
    let exact = media_type::expect(message.headers, Format::Json);
    let parsed = exact.and_then(|()| Ok(json::parse(message.body)?));
    parsed.map(Some).map_err(|fault| Place::Body.fault(fault))
}

/// Returns the operations that a SOAP message names; none if there is no body.
pub(crate) fn soap_names(message: &Message<'_>) -> Result<SoapNames, PlaceError> {
    if message.body.is_empty() {
        return Ok(SoapNames::default());
    }
    expect_plain_body(message.headers)?;
    let names = media_type::expect(message.headers, Format::Xml).and_then(|()| soap::names(message.body));
    names.map_err(|fault| Place::Body.fault(fault))
}

/// Rejects a request whose body servers could search for parameters: a form, several parts, plain text, or a body
/// without exactly one type. A request with neither a body nor a type passes.
pub(crate) fn expect_document_type(message: &Message<'_>) -> Result<(), PlaceError> {
    let is_type = |(name, _): &(String, String)| normalize_header_name(name) == "content-type";
    if message.body.is_empty() && !message.headers.iter().any(is_type) {
        return Ok(());
    }
    media_type::expect(message.headers, Format::Document)
        .map_err(|fault| Place::Header("content-type".to_owned()).fault(fault))
}

/// Returns the names of all values in the body that are of the same kind as the place: fields of a form, parts, or
/// elements.
pub(crate) fn names_in_body(place: &Place, message: &Message<'_>) -> Result<Vec<String>, PlaceError> {
    let names = match place {
        _ if message.body.is_empty() => Ok(Vec::new()),
        Place::Form(_) => form::names(message.body),
        Place::Part(_) => {
            headers::boundary(message.headers).and_then(|boundary| multipart::names(message.body, &boundary))
        }
        Place::Xml(_) => xml::local_names(message.body),
        Place::Json(_) | Place::Header(_) | Place::Cookie(_) | Place::Body => Ok(Vec::new()),
    };
    names.map_err(|fault| place.fault(fault))
}

/// Returns a parameter of the Content-Type.
pub(crate) fn content_type_parameter(message: &Message<'_>, name: &str) -> Result<Option<String>, PlaceError> {
    headers::content_type_parameter(message.headers, name)
        .map_err(|fault| Place::Header("content-type".to_owned()).fault(fault))
}
