//! The answer of a [`super::Fake`] to a request.

use serde_json::Value;

use crate::bindings::bosh::cpi::http::{Error, ErrorKind, Response};

/// The answer to a request: a response or an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer(pub(super) Result<Response, Error>);

impl Answer {
    /// Returns a response with a text as its body.
    pub fn text(status: u16, body: &str) -> Self {
        Self(Ok(Response { status, headers: vec![], body: body.as_bytes().to_vec() }))
    }

    /// Returns a response with a JSON body.
    pub fn json(status: u16, body: Value) -> Self {
        Self::text(status, &body.to_string()).header("content-type", "application/json")
    }

    /// Returns a response with an XML body.
    pub fn xml(status: u16, body: &str) -> Self {
        Self::text(status, body).header("content-type", "text/xml;charset=UTF-8")
    }

    /// Adds a header to the response. `name` is in lower case.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Ok(response) = &mut self.0 {
            response.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Returns an error. `sent` is true if the server may have received the
    /// request.
    pub fn fail(kind: ErrorKind, message: &str, sent: bool) -> Self {
        Self(Err(Error { kind, message: message.to_owned(), sent }))
    }
}
