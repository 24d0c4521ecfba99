//! Places in HTTP messages: a header, a cookie, a field of the body, or the whole body.
//!
//! Slots, captures, logins and operations all refer to places, so that each kind has one
//! parser and one encoder. Bodies are parsed strictly, by their Content-Type. Only complete
//! values are read or replaced, and a changed body is serialised anew: nothing is ever spliced
//! into raw text. Errors name the place and never quote the message, which may hold secrets.

mod form;
mod headers;
mod json;
mod media_type;
mod multipart;
mod soap;
mod syntax;
mod xml;

#[cfg(test)]
mod tests;

pub use form::{FormError, UnclearQuery, parse as parse_form, query_names, write as write_form};
pub use headers::is_token;
pub use json::{JsonBodyError, parse as parse_json};
pub use media_type::is_read_as_form;
pub use xml::{blank as blank_xml, remove as remove_xml, replace_texts as replace_xml_texts};

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::normalize_header_name;
use media_type::Format;
pub(crate) use soap::SoapNames;
use wasm_cpi_checks::{Check, RefusedBy};

/// A place in a request or response. It is written as `kind:name`, or as `body`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// `header:X`: the value of a header. Holds the name in lower case.
    Header(String),
    /// `json:/a/b`: a value in a JSON body. Holds the unescaped tokens of a JSON pointer
    /// (RFC 6901).
    Json(Vec<String>),
    /// `form:F`: a field of an urlencoded form.
    Form(String),
    /// `xml:E`: the text of the only element with this local name, or `xml:/R/E`: the same, and the
    /// local names of the element and those around it are this path. Holds the name or the path.
    Xml(String),
    /// `part:N`: the content of a part of a multipart form.
    Part(String),
    /// `cookie:C`: the value of a cookie that a response sets or a request sends.
    Cookie(String),
    /// `body`: the whole body as text.
    Body,
}

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
    let parsed = exact.and_then(|()| Ok(parse_json(message.body)?));
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

/// Returns a parameter of the Content-Type.
pub(crate) fn content_type_parameter(message: &Message<'_>, name: &str) -> Result<Option<String>, PlaceError> {
    headers::content_type_parameter(message.headers, name)
        .map_err(|fault| Place::Header("content-type".to_owned()).fault(fault))
}

/// The error of reading, writing or parsing a place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{place}`: {fault}")]
pub struct PlaceError {
    /// The place as policies write it.
    pub place: String,
    /// What is wrong there.
    pub fault: Fault,
}

impl PlaceError {
    /// Returns the check that refuses the place or the message, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        self.fault.check
    }
}

/// What is wrong with a place, or with a message in which it is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct Fault {
    /// The kind of the fault, which `Display` describes.
    pub kind: FaultKind,
    /// The check that refuses, if it is a named one.
    pub check: Option<Check>,
}

impl Fault {
    fn ambiguous() -> Fault {
        FaultKind::Ambiguous.into()
    }

    fn malformed(why: impl Into<String>) -> Fault {
        FaultKind::Malformed(why.into()).into()
    }

    fn unwritable(why: &'static str) -> Fault {
        FaultKind::Unwritable(why).into()
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Fault {
        Fault { kind, check: None }
    }
}

impl RefusedBy for Fault {
    fn refused_by(self, check: Check) -> Fault {
        Fault { check: self.check.or(Some(check)), ..self }
    }
}

/// What can be wrong with a place, or with a message in which it is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// The text is not a place; the message says how places are written.
    #[error("{0}")]
    Syntax(&'static str),
    /// The body has another type than the place needs. Holds the type that is needed.
    #[error("the Content-Type is not {0}")]
    ContentType(&'static str),
    /// The headers or the body cannot be parsed, or servers could parse them differently.
    #[error("the message cannot be read: {0}")]
    Malformed(String),
    /// Several values have the name of the place.
    #[error("it occurs more than once, so that it is unclear which one is meant")]
    Ambiguous,
    /// The value is an object, a list, an element with children, or not UTF-8.
    #[error("the value there is not a single plain value")]
    NotPlain,
    /// The new value has characters that cannot be written at this place.
    #[error("the value cannot be written there: {0}")]
    Unwritable(&'static str),
}

/// The reason why a body cannot be parsed: a text, and the check that refuses it, if it is a named one.
struct Unparsable {
    why: &'static str,
    check: Option<Check>,
}

impl Unparsable {
    /// Returns the fault of a body in this format.
    fn in_format(self, format: &str) -> Fault {
        Fault { kind: FaultKind::Malformed(format!("{format}: {}", self.why)), check: self.check }
    }
}

impl From<&'static str> for Unparsable {
    fn from(why: &'static str) -> Unparsable {
        Unparsable { why, check: None }
    }
}

impl RefusedBy for Unparsable {
    fn refused_by(self, check: Check) -> Unparsable {
        Unparsable { check: self.check.or(Some(check)), ..self }
    }
}

/// Receives the number of a place and the value there. Returns the value to write instead, or `None`
/// to keep it.
type Change<'a> = dyn FnMut(usize, &str) -> Option<String> + 'a;

/// What becomes of numbers in a JSON document that is written anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// A number that would change is an error.
    Exact,
    Rounded,
}

/// Places of one kind, with the numbers by which [`Change`] knows them.
type Numbered<'a, T> = [(usize, &'a T)];

/// A change to a message: the new value of the header with this index, or the new body.
enum Edit {
    Header(usize, String),
    Body(Vec<u8>),
}

impl Place {
    /// Returns the tokens of the pointer, if the place is in a JSON body.
    pub fn pointer(&self) -> Option<&[String]> {
        match self {
            Place::Json(tokens) => Some(tokens),
            _ => None,
        }
    }

    /// Returns the value at this place, or `None` if the message has none. Numbers and booleans
    /// in JSON are returned as text.
    ///
    /// ```
    /// use wasm_cpi_policy::place::{Message, Place};
    ///
    /// let headers = [("content-type".to_owned(), "application/json".to_owned())];
    /// let message = Message { headers: &headers, body: br#"{"token": {"id": 7}}"# };
    /// let place: Place = "json:/token/id".parse().unwrap();
    /// assert_eq!(place.read(&message).unwrap().as_deref(), Some("7"));
    /// ```
    pub fn read(&self, message: &Message) -> Result<Option<String>, PlaceError> {
        let mut found = None;
        edit(&[self], message, Numbers::Exact, &mut |_, value| {
            found = Some(value.to_owned());
            None
        })?;
        Ok(found)
    }

    /// Reads like [`read`](Place::read) from a message that a server will parse as well.
    /// Rejects bodies with a Content-Encoding or another charset than UTF-8, which the server
    /// would decode and this crate does not.
    pub fn read_plainly(&self, message: &Message) -> Result<Option<String>, PlaceError> {
        let in_head = matches!(self, Place::Header(_) | Place::Cookie(_));
        let plain = if in_head { Ok(()) } else { headers::expect_plain(message.headers) };
        Check::PlaceAlike.reject(plain.err(), |fault| fault).map_err(|fault| self.fault(fault))?;
        self.expect_type(message)?;
        self.read(message)
    }

    /// Rejects a request whose Content-Type is not exactly one of the types that the place needs, so
    /// that every server parses the body as this crate does. A request without a body has no type.
    pub fn expect_type(&self, message: &Message) -> Result<(), PlaceError> {
        let format = match self {
            Place::Json(_) => Format::Json,
            Place::Xml(_) => Format::Xml,
            Place::Form(_) => Format::Form,
            Place::Part(_) => Format::Multipart,
            Place::Body => Format::Opaque,
            Place::Header(_) | Place::Cookie(_) => return Ok(()),
        };
        if message.body.is_empty() {
            return Ok(());
        }
        media_type::expect(message.headers, format).map_err(|fault| self.fault(fault))
    }

    /// Reads like [`read`](Place::read), and returns objects and arrays of JSON, too.
    pub fn read_value(&self, message: &Message) -> Result<Option<Value>, PlaceError> {
        match self {
            Place::Json(pointer) if !message.body.is_empty() => headers::expect_json(message.headers)
                .and_then(|()| json::read(message.body, pointer))
                .map_err(|fault| self.fault(fault)),
            _ => Ok(self.read(message)?.map(Value::String)),
        }
    }

    /// Passes the complete value at this place to `change` and writes the value that it returns.
    /// Returns true if the message was changed. After an error the message is as before.
    pub fn replace(
        &self,
        headers: &mut [(String, String)],
        body: &mut Vec<u8>,
        change: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<bool, PlaceError> {
        replace_all(&[self], headers, body, &mut |_, value| change(value))
    }

    /// Does the same as [`replace`](Place::replace) for a response. A number of the document that cannot be written
    /// back exactly is not an error there: no server reads it, and it may be a value that is removed later.
    pub fn replace_in_response(
        &self,
        headers: &mut [(String, String)],
        body: &mut Vec<u8>,
        change: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<bool, PlaceError> {
        let edits = edit(&[self], &Message { headers, body }, Numbers::Rounded, &mut |_, value| change(value))?;
        Ok(apply(edits, headers, body))
    }

    /// Rejects a value that cannot be written at this place, whatever the message is. A secret is
    /// judged by this before a guest runs, so that no refusal of a request depends on its value.
    pub fn check_value(&self, value: &str) -> Result<(), PlaceError> {
        let checked = match self {
            Place::Header(_) => headers::check_header_value(value),
            Place::Cookie(_) => headers::check_cookie_value(value),
            Place::Xml(_) => xml::check_value(value),
            Place::Json(_) | Place::Form(_) | Place::Part(_) | Place::Body => Ok(()),
        };
        checked.map_err(|fault| self.fault(fault))
    }

    fn fault(&self, fault: Fault) -> PlaceError {
        PlaceError { place: self.to_string(), fault }
    }
}

/// Replaces the values at several places like [`Place::replace`]; `change` also receives their numbers. A
/// body is parsed once and serialised once, so that no error depends on a value that was written at
/// another place. An error names the first place of its kind.
pub fn replace_all(
    places: &[&Place],
    headers: &mut [(String, String)],
    body: &mut Vec<u8>,
    change: &mut Change<'_>,
) -> Result<bool, PlaceError> {
    let edits = edit(places, &Message { headers, body }, Numbers::Exact, change)?;
    Ok(apply(edits, headers, body))
}

/// Makes the changes, and returns true if there are any.
fn apply(edits: Vec<Edit>, headers: &mut [(String, String)], body: &mut Vec<u8>) -> bool {
    let changed = !edits.is_empty();
    for edit in edits {
        match edit {
            Edit::Header(index, value) => headers[index].1 = value,
            Edit::Body(bytes) => *body = bytes,
        }
    }
    changed
}

fn edit(
    places: &[&Place],
    message: &Message,
    numbers: Numbers,
    change: &mut Change<'_>,
) -> Result<Vec<Edit>, PlaceError> {
    let mut edits = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let fault = |fault| place.fault(fault);
        match place {
            Place::Header(name) => {
                let edited = headers::edit_header(message.headers, name, &mut |value| change(number, value));
                edits.extend(edited.map_err(fault)?);
            }
            Place::Cookie(name) => {
                let edited = headers::edit_cookie(message.headers, name, &mut |value| change(number, value));
                edits.extend(edited.map_err(fault)?);
            }
            // All places of a kind are edited together with the first one.
            _ if places[..number].iter().any(|earlier| is_same_kind(earlier, place)) => {}
            _ if message.body.is_empty() => {}
            _ => edits.extend(edit_body(number, places, message, numbers, change).map_err(fault)?.map(Edit::Body)),
        }
    }
    // A body is of one kind, so two changed ones are two readings of it.
    let bodies = edits.iter().filter(|edit| matches!(edit, Edit::Body(_))).count();
    match places.first() {
        Some(place) if bodies > 1 => Err(place.fault(Fault::ambiguous())),
        _ => Ok(edits),
    }
}

fn is_same_kind(one: &Place, other: &Place) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Returns the body with the changes at all places that are of the same kind as the one with the
/// number `first`.
fn edit_body(
    first: usize,
    places: &[&Place],
    message: &Message,
    numbers: Numbers,
    change: &mut Change<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    fn numbered<'a, T: ?Sized>(places: &[&'a Place], key: impl Fn(&'a Place) -> Option<&'a T>) -> Vec<(usize, &'a T)> {
        places.iter().enumerate().filter_map(|(number, place)| Some((number, key(place)?))).collect()
    }
    let Message { headers, body } = *message;
    match places[first] {
        Place::Json(_) => {
            headers::expect_json(headers)?;
            let pointers = numbered(places, |place| if let Place::Json(tokens) = place { Some(tokens) } else { None });
            json::edit(body, &pointers, numbers, change)
        }
        Place::Form(_) => {
            headers::expect_form(headers)?;
            let names = numbered(places, |place| if let Place::Form(name) = place { Some(name) } else { None });
            form::edit(body, &names, change)
        }
        Place::Xml(_) => {
            headers::expect_xml(headers)?;
            let names = numbered(places, |place| if let Place::Xml(name) = place { Some(name) } else { None });
            xml::edit(body, &names, change)
        }
        Place::Part(_) => {
            let boundary = headers::boundary(headers)?;
            let names = numbered(places, |place| if let Place::Part(name) = place { Some(name) } else { None });
            multipart::edit(body, &boundary, &names, change)
        }
        Place::Body => {
            let text = std::str::from_utf8(body).map_err(|_| FaultKind::NotPlain)?;
            Ok(change(first, text).map(String::into_bytes))
        }
        Place::Header(_) | Place::Cookie(_) => Ok(None),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Header(name) => write!(f, "header:{name}"),
            Place::Json(tokens) => write!(f, "json:{}", json::display(tokens)),
            Place::Form(field) => write!(f, "form:{field}"),
            Place::Xml(name) => write!(f, "xml:{name}"),
            Place::Part(name) => write!(f, "part:{name}"),
            Place::Cookie(name) => write!(f, "cookie:{name}"),
            Place::Body => f.write_str("body"),
        }
    }
}
