//! Building and sending a request. The rule for trying again: a request whose
//! bytes never left may go again; one that may have arrived, only if doing it
//! twice is the same as doing it once; a refusal of the policy, never.

use std::time::Duration;

use serde::Serialize;

use super::{Cause, Error, ErrorKind, ImagePart, Response, url};
use crate::bindings::bosh::cpi::http as wire;
use crate::{clock, host, log};

/// Clouds that ask for longer pauses than this are not waited for.
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
    /// `method` in upper case.
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

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.wire.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a parameter to the URL's query, encoded.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.wire.url = url::with_parameter(&self.wire.url, name, value);
        self
    }

    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.bytes("application/json", bytes),
            Err(error) => {
                self.problem = Some(format!("the body is not JSON: {error}"));
                self
            }
        }
    }

    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        self.bytes("application/x-www-form-urlencoded", url::form(fields))
    }

    pub fn bytes(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.wire.body = wire::Body::Bytes(body.into());
        self.header("content-type", content_type)
    }

    /// The image of this `create_stemcell`, or one file of it, streamed by the
    /// host.
    pub fn image(mut self, part: ImagePart) -> Self {
        self.wire.body = wire::Body::Image(part);
        self.header("content-type", "application/octet-stream")
    }

    /// For the whole exchange.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.wire.timeout_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Tries up to `times` more where that is safe, with growing pauses.
    pub fn retries(mut self, times: u32) -> Self {
        self.retries = times;
        self
    }

    /// Doing this twice is the same as doing it once, whatever its method says.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Doing this twice is not the same as doing it once, whatever its method says.
    pub fn unrepeatable(mut self) -> Self {
        self.repeatable = false;
        self
    }

    /// Sends it. Any status is a response: see [`Response::ok`].
    pub fn send(self) -> Result<Response, Error> {
        let Self { wire, retries, repeatable, problem } = self;
        if let Some(problem) = problem {
            return Err(Error::of(&wire.method, &wire.url, Cause::Build(problem)));
        }
        let name = Error::of(&wire.method, &wire.url, Cause::Build(String::new())).request;
        let mut pause = Duration::from_secs(1);
        let mut left = retries;
        loop {
            let outcome = host::current().http_send(&wire);
            if left == 0 || !worth_another_try(repeatable, &outcome) {
                return finish(name, outcome);
            }
            left -= 1;
            let (why, wait) = match &outcome {
                Ok(response) => (format!("status {}", response.status), retry_after(response).unwrap_or(pause)),
                Err(error) => (error.message.clone(), pause),
            };
            log::debug(format_args!("{name}: {why}; trying again in {} s", wait.as_secs()));
            if clock::sleep(wait).is_err() {
                // The call is ending: what happened last is the better answer.
                return finish(name, outcome);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn finish(name: String, outcome: Result<wire::Response, wire::Error>) -> Result<Response, Error> {
    match outcome {
        Ok(response) => Ok(Response::new(name, response)),
        Err(error) => Err(Error::transport(&name, error)),
    }
}

fn worth_another_try(repeatable: bool, outcome: &Result<wire::Response, wire::Error>) -> bool {
    match outcome {
        // Too many requests: it was not even looked at.
        Ok(response) if response.status == 429 => true,
        Ok(response) => repeatable && matches!(response.status, 500 | 502..=504),
        Err(error) => match error.kind {
            ErrorKind::Dns | ErrorKind::Connect | ErrorKind::Timeout | ErrorKind::Protocol | ErrorKind::Truncated => {
                repeatable || !error.sent
            }
            ErrorKind::Denied(_)
            | ErrorKind::InvalidRequest
            | ErrorKind::Limit(_)
            | ErrorKind::Tls
            | ErrorKind::Cancelled => false,
        },
    }
}

fn retry_after(response: &wire::Response) -> Option<Duration> {
    let (_, value) = response.headers.iter().find(|(name, _)| name == "retry-after")?;
    let asked = Duration::from_secs(value.trim().parse().ok()?);
    Some(asked.min(LONGEST_PAUSE))
}
