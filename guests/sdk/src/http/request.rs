//! Builds and sends a request.

use std::time::Duration;

use serde::Serialize;

use super::retries::Retries;
use super::{BodyPart, Cause, ImagePart, RequestError, Response, url};
use crate::bindings::bosh::cpi::http as wire;
use crate::query_api::Operation;
use crate::{clock, host};

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Request {
    wire: wire::Request,
    retries: u32,
    repeatable: bool,
    /// The name of the operation, for messages.
    operation: Option<String>,
    problem: Option<String>,
}

impl Request {
    /// Starts a request. `method` is in upper case.
    pub fn new(method: &str, url: impl Into<String>) -> Self {
        let wire = wire::Request {
            method: method.to_owned(),
            url: url.into(),
            headers: vec![],
            body: wire::Body::None,
            timeout_ms: None,
        };
        let repeatable = matches!(method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE");
        Self { wire, retries: 0, repeatable, operation: None, problem: None }
    }

    /// Returns the method.
    pub fn method(&self) -> &str {
        &self.wire.method
    }

    /// Returns the URL with its query.
    pub fn url(&self) -> &str {
        &self.wire.url
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.wire.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a parameter to the query of the URL, and encodes it.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.wire.url = url::with_parameter(&self.wire.url, name, value);
        self
    }

    /// Sets the body to JSON.
    #[must_use]
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.bytes("application/json", bytes),
            Err(error) => {
                self.problem = Some(format!("the body cannot be written as JSON: {error}"));
                self
            }
        }
    }

    /// Sets the body to the fields of a form.
    #[must_use]
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        self.bytes("application/x-www-form-urlencoded", url::form(fields.iter().copied()))
    }

    /// Sets the body to an operation of a query API. Errors and log lines about the request name it.
    #[must_use]
    pub fn operation(mut self, operation: &Operation) -> Self {
        self.operation = Some(operation.action().to_owned());
        match operation.form() {
            Ok(form) => self.bytes("application/x-www-form-urlencoded", form),
            Err(problem) => {
                self.problem = Some(problem);
                self
            }
        }
    }

    /// Sets the body to any bytes.
    #[must_use]
    pub fn bytes(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.wire.body = wire::Body::Bytes(body.into());
        self.header("content-type", content_type)
    }

    /// Sets the body to the image of this `create_stemcell`, or to one file of it.
    /// The host streams it.
    #[must_use]
    pub fn image(mut self, part: ImagePart) -> Self {
        self.wire.body = wire::Body::Image(part);
        self.header("content-type", "application/octet-stream")
    }

    /// Sets the body to these parts, one after the other. At most one of them is an
    /// image. The host streams it.
    #[must_use]
    pub fn parts(mut self, content_type: &str, parts: Vec<BodyPart>) -> Self {
        self.wire.body = wire::Body::Parts(parts);
        self.header("content-type", content_type)
    }

    /// Limits the time of the whole exchange.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.wire.timeout_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Repeats the request up to `times`, with growing pauses, where that is safe.
    #[must_use]
    pub fn retries(mut self, times: u32) -> Self {
        self.retries = times;
        self
    }

    /// Declares that sending this request twice has the same effect as sending it
    /// once, whatever its method is.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Declares that sending this request twice does not have the same effect as
    /// sending it once, whatever its method is.
    #[must_use]
    pub fn unrepeatable(mut self) -> Self {
        self.repeatable = false;
        self
    }

    /// Sends the request. Any status is a response: see [`Response::ok`].
    pub fn send(self) -> Result<Response, RequestError> {
        let (wire, mut retries) = self.build()?;
        loop {
            let outcome = host::current().http_send(&wire);
            let Some(retry) = retries.next(&outcome) else { return retries.finish(outcome) };
            retries.log(&retry, retry.pause);
            // A sleep fails if the call is ending: return the last outcome, which has the cloud's message.
            if clock::sleep(retry.pause).is_err() {
                return retries.finish(outcome);
            }
        }
    }

    /// Returns the request for the host, and how often it can be repeated.
    pub(super) fn build(self) -> Result<(wire::Request, Retries), RequestError> {
        let Self { wire, retries, repeatable, operation, problem } = self;
        let mut name = RequestError::name(&wire.method, &wire.url);
        if let Some(operation) = operation {
            name.push_str(&format!(" ({operation})"));
        }
        match problem {
            Some(problem) => Err(RequestError { request: name, cause: Cause::Build(problem) }),
            None => Ok((wire, Retries::new(name, retries, repeatable))),
        }
    }
}
