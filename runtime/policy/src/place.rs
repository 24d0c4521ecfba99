//! Places in HTTP messages: a header, a cookie, a field of the body, or the whole body.
//!
//! Slots, captures, logins and operations all refer to places, so that each kind has one
//! parser and one encoder. Bodies are parsed strictly, by their Content-Type. Only complete
//! values are read or replaced, and a changed body is serialised anew: nothing is ever spliced
//! into raw text. Errors name the place and never quote the message, which may hold secrets.
//!
//! `syntax` parses places, `edit` reads and replaces the values at them, and `message` has what concerns a
//! message as a whole. The other modules each know one format of a body, or the headers.

mod edit;
mod error;
mod form;
mod headers;
mod json;
mod media_type;
mod message;
mod multipart;
mod soap;
mod syntax;
mod xml;

#[cfg(test)]
mod tests;

pub use edit::replace_all;
pub use error::{Fault, FaultKind, PlaceError};
pub use form::{FormError, UnclearQuery, parse as parse_form, query_names, write as write_form};
pub use headers::is_token;
pub use json::{JsonBodyError, parse as parse_json};
pub use media_type::is_read_as_form;
pub use message::{Message, expect_utf8, set_boundary, set_missing_type};
pub(crate) use message::{
    content_type_parameter, expect_document_type, expect_plain_body, json_document, names_in_body, soap_names,
};
pub use xml::{blank as blank_xml, remove as remove_xml, replace_texts as replace_xml_texts};

use std::fmt;

use serde_json::Value;

use edit::Numbers;
use media_type::Format;
use wasm_cpi_checks::Check;

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
        edit::edit(&[self], message, Numbers::Exact, &mut |_, value| {
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
        let edits = edit::edit(&[self], &Message { headers, body }, Numbers::Rounded, &mut |_, value| change(value))?;
        Ok(edit::apply(edits, headers, body))
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
