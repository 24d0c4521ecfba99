//! What a [`super::Fake`] answers to a request.

use serde_json::Value;

use crate::bindings::bosh::cpi::http::{Error, ErrorKind, Response};

/// A response, or no response.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer(pub(super) Result<Response, Error>);

impl Answer {
    pub fn text(status: u16, body: &str) -> Self {
        Self(Ok(Response { status, headers: vec![], body: body.as_bytes().to_vec() }))
    }

    pub fn json(status: u16, body: Value) -> Self {
        Self::text(status, &body.to_string()).header("content-type", "application/json")
    }

    /// Adds a header to a response; its name is in lower case.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Ok(response) = &mut self.0 {
            response.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// No response; `sent` says whether the server may have seen the request.
    pub fn fail(kind: ErrorKind, message: &str, sent: bool) -> Self {
        Self(Err(Error { kind, message: message.to_owned(), sent }))
    }
}
