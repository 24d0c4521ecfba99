//! A response, whatever its status; checking and parsing it.

use serde::de::DeserializeOwned;

use super::cloud_text::cloud_text;
use super::{Cause, Error};
use crate::bindings::bosh::cpi::http as wire;
use crate::json;

#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    request: String,
    pub status: u16,
    /// Names in lower case. Credentials of all kinds were left out by the host.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub(super) fn new(request: String, response: wire::Response) -> Self {
        Self { request, status: response.status, headers: response.headers, body: response.body }
    }

    /// The first header of that name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// This response if its status is 2xx, else an error with the cloud's words.
    pub fn ok(self) -> Result<Self, Error> {
        if (200..300).contains(&self.status) { Ok(self) } else { Err(self.unexpected()) }
    }

    /// This response if its status is one of `statuses`.
    pub fn expect(self, statuses: &[u16]) -> Result<Self, Error> {
        if statuses.contains(&self.status) { Ok(self) } else { Err(self.unexpected()) }
    }

    /// `None` for 404 and 410, this response for 2xx, else an error.
    pub fn found(self) -> Result<Option<Self>, Error> {
        if matches!(self.status, 404 | 410) { Ok(None) } else { self.ok().map(Some) }
    }

    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::from_slice(&self.body)
            .map_err(|problem| Error::decode(&self.request, problem.named("the response's body")))
    }

    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.body)
            .map_err(|_| Error::decode(&self.request, "the response's body is not UTF-8 text".to_owned()))
    }

    fn unexpected(self) -> Error {
        let cause = Cause::Status { status: self.status, text: cloud_text(&self.body), body: self.body };
        Error { request: self.request, cause }
    }
}
