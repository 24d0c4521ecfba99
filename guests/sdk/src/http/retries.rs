//! Decides whether a request is sent again. A request that did not reach the server
//! can be sent again. One that may have reached it is repeated only if it is repeatable. One
//! that the policy denied is never repeated.

use std::time::Duration;

use super::{RequestError, Response, TransportError};
use crate::bindings::bosh::cpi::http as wire;
use crate::log;

/// The longest pause before a retry, whatever the cloud asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A request that is sent again: the time to wait before that, and why it is sent again.
pub(super) struct Retry {
    pub(super) pause: Duration,
    why: String,
}

/// The retries of one request that are left.
pub(super) struct Retries {
    /// The name of the request in messages.
    name: String,
    left: u32,
    repeatable: bool,
    pause: Duration,
}

impl Retries {
    pub(super) fn new(name: String, left: u32, repeatable: bool) -> Self {
        Self { name, left, repeatable, pause: Duration::from_secs(1) }
    }

    /// Returns how the request is sent again; `None` if it is not sent again.
    pub(super) fn next(&mut self, outcome: &Result<wire::Response, wire::Error>) -> Option<Retry> {
        if self.left == 0 || !can_be_retried(self.repeatable, outcome) {
            return None;
        }
        self.left -= 1;
        let (why, pause) = match outcome {
            Ok(response) => (format!("status {}", response.status), retry_after(response).unwrap_or(self.pause)),
            Err(error) => (error.message.clone(), self.pause),
        };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Some(Retry { pause, why })
    }

    /// Logs that the request is sent again after this pause.
    pub(super) fn log(&self, retry: &Retry, pause: Duration) {
        log::debug(format_args!("{}: {}; retrying in {} s", self.name, retry.why, pause.as_secs()));
    }

    /// Returns the last outcome for the guest.
    pub(super) fn finish(&self, outcome: Result<wire::Response, wire::Error>) -> Result<Response, RequestError> {
        match outcome {
            Ok(response) => Ok(Response::new(self.name.clone(), response)),
            Err(error) => Err(RequestError::transport(&self.name, error)),
        }
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
