//! Builds and sends a request. A request that did not reach the server can be
//! retried. One that may have reached it is retried only if it is repeatable. One
//! that the policy denied is never retried.

use std::time::Duration;

use serde::Serialize;

use super::{Cause, ImagePart, RequestError, Response, TransportError, url};
use crate::bindings::bosh::cpi::http as wire;
use crate::{clock, host, log};

/// The longest pause before a retry, whatever the cloud asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Request {
    wire: wire::Request,
    retries: u32,
    repeatable: bool,
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
        Self { wire, retries: 0, repeatable, problem: None }
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
        self.bytes("application/x-www-form-urlencoded", url::form(fields))
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
        let Self { wire, retries, repeatable, problem } = self;
        if let Some(problem) = problem {
            return Err(RequestError::of(&wire.method, &wire.url, Cause::Build(problem)));
        }
        let name = RequestError::of(&wire.method, &wire.url, Cause::Build(String::new())).request;
        let mut pause = Duration::from_secs(1);
        let mut left = retries;
        loop {
            let outcome = host::current().http_send(&wire);
            if left == 0 || !can_be_retried(repeatable, &outcome) {
                return finish(name, outcome);
            }
            left -= 1;
            let (why, wait) = match &outcome {
                Ok(response) => (format!("status {}", response.status), retry_after(response).unwrap_or(pause)),
                Err(error) => (error.message.clone(), pause),
            };
            log::debug(format_args!("{name}: {why}; retrying in {} s", wait.as_secs()));
            if clock::sleep(wait).is_err() {
                // The call is ending: return the last outcome, which has the cloud's message.
                return finish(name, outcome);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn finish(name: String, outcome: Result<wire::Response, wire::Error>) -> Result<Response, RequestError> {
    match outcome {
        Ok(response) => Ok(Response::new(name, response)),
        Err(error) => Err(RequestError::transport(&name, error)),
    }
}

fn can_be_retried(repeatable: bool, outcome: &Result<wire::Response, wire::Error>) -> bool {
    match outcome {
        // Too many requests: the server did not process it.
        Ok(response) if response.status == 429 => true,
        Ok(response) => repeatable && matches!(response.status, 500 | 502..=504),
        Err(error) => match error.kind {
            TransportError::Dns
            | TransportError::Connect
            | TransportError::Timeout
            | TransportError::Protocol
            | TransportError::Truncated => repeatable || !error.sent,
            TransportError::Denied(_)
            | TransportError::InvalidRequest
            | TransportError::Limit(_)
            | TransportError::Tls
            | TransportError::Cancelled => false,
        },
    }
}

fn retry_after(response: &wire::Response) -> Option<Duration> {
    let (_, value) = response.headers.iter().find(|(name, _)| name == "retry-after")?;
    let asked = Duration::from_secs(value.trim().parse().ok()?);
    Some(asked.min(LONGEST_PAUSE))
}
