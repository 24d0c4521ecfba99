//! The response to a request: checks its status and parses its body.

use serde::de::DeserializeOwned;

use super::cloud_text::cloud_text;
use super::{Cause, RequestError};
use crate::bindings::bosh::cpi::http as wire;
use crate::json;
use crate::xml::{self, Element, XmlError};

/// A response with any status.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    request: String,
    /// The HTTP status code.
    pub status: u16,
    /// The headers; names are in lower case. The host removed credentials.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    pub(super) fn new(request: String, response: wire::Response) -> Self {
        Self { request, status: response.status, headers: response.headers, body: response.body }
    }

    /// Returns the value of the first header `name`, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Returns this response if its status is 2xx, and otherwise an error with the
    /// cloud's message.
    pub fn ok(self) -> Result<Self, RequestError> {
        if (200..300).contains(&self.status) { Ok(self) } else { Err(self.unexpected()) }
    }

    /// Returns this response if its status is one of `statuses`, and otherwise an
    /// error with the cloud's message.
    pub fn expect(self, statuses: &[u16]) -> Result<Self, RequestError> {
        if statuses.contains(&self.status) { Ok(self) } else { Err(self.unexpected()) }
    }

    /// Returns `None` if the status is 404 or 410, this response if it is 2xx, and
    /// otherwise an error with the cloud's message.
    pub fn found(self) -> Result<Option<Self>, RequestError> {
        if matches!(self.status, 404 | 410) { Ok(None) } else { self.ok().map(Some) }
    }

    /// Parses the body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, RequestError> {
        json::from_slice(&self.body)
            .map_err(|problem| RequestError::decode(&self.request, problem.named("the response's body")))
    }

    /// Parses the body as XML, and reads what the guest needs from its root. The error of either names the
    /// request.
    ///
    /// ```
    /// use wasm_cpi_sdk::fake::{Answer, Fake};
    /// use wasm_cpi_sdk::http;
    ///
    /// let body = "<R><set><item><id>a</id></item><item><id>b</id></item></set></R>";
    /// let _host = Fake::new().on("GET", "https://cloud.example/", Answer::xml(200, body)).install();
    /// let response = http::get("https://cloud.example/").send().unwrap();
    /// let ids: Vec<String> = response
    ///     .xml(|root| root.items("set/item").into_iter().map(|item| Ok(item.required_text("id")?.to_owned())).collect())
    ///     .unwrap();
    /// assert_eq!(ids, ["a", "b"]);
    /// ```
    pub fn xml<T>(&self, read: impl FnOnce(&Element) -> Result<T, XmlError>) -> Result<T, RequestError> {
        xml::parse(&self.body)
            .and_then(|root| read(&root))
            .map_err(|error| RequestError::decode(&self.request, format!("the response's body: {error}")))
    }

    /// Returns the body as text. Fails if it is not UTF-8.
    pub fn text(&self) -> Result<&str, RequestError> {
        std::str::from_utf8(&self.body)
            .map_err(|_| RequestError::decode(&self.request, "the response's body is not UTF-8 text".to_owned()))
    }

    /// Returns the error for a status that the guest does not expect.
    pub(super) fn unexpected(self) -> RequestError {
        let cause = Cause::Status { status: self.status, text: cloud_text(&self.body), body: self.body };
        RequestError { request: self.request, cause }
    }
}
