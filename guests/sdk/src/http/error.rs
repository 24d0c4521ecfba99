//! The error of a request. It distinguishes a request that was denied, one that
//! did not reach the server, one that may have reached it, and one that the
//! cloud refused.

use std::fmt;

use super::url::without_query;
use super::{Denial, TransportError};
use crate::Error as CpiError;
use crate::bindings::bosh::cpi::http as wire;

/// Returns the method and the URL of a request without its query, as errors name it.
pub(super) fn request_name(method: &str, url: &str) -> String {
    format!("{method} {}", without_query(url))
}

/// The error of a request, or of the check of its response.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestError {
    /// The method and the URL without its query.
    pub request: String,
    /// The cause of the error.
    pub cause: Cause,
}

/// The cause of a [`RequestError`].
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The guest built a request that cannot be sent. Holds the reason.
    Build(String),
    /// There is no response.
    Transport {
        /// The reason.
        kind: TransportError,
        /// The host's message.
        message: String,
        /// True if any byte of the request may have reached the server.
        sent: bool,
    },
    /// The status is not one that the guest expects.
    Status {
        /// The status.
        status: u16,
        /// The cloud's message, if the body has one.
        text: Option<String>,
        /// The body.
        body: Vec<u8>,
    },
    /// The body is not what the guest expects. Holds the reason.
    Decode(String),
}

impl RequestError {
    pub(super) fn of(method: &str, url: &str, cause: Cause) -> Self {
        Self { request: request_name(method, url), cause }
    }

    pub(super) fn transport(request: &str, error: wire::Error) -> Self {
        let cause = Cause::Transport { kind: error.kind, message: error.message, sent: error.sent };
        Self { request: request.to_owned(), cause }
    }

    pub(super) fn decode(request: &str, message: String) -> Self {
        Self { request: request.to_owned(), cause: Cause::Decode(message) }
    }

    /// Returns the status, if it is the cause of the error.
    pub fn status(&self) -> Option<u16> {
        match self.cause {
            Cause::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns true if the status is 404 or 410.
    pub fn is_not_found(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }

    /// Returns the reason why the request was denied, if it was.
    pub fn denial(&self) -> Option<Denial> {
        match self.cause {
            Cause::Transport { kind: TransportError::Denied(denial), .. } => Some(denial),
            _ => None,
        }
    }

    /// Returns true if the server may have received the request. If it is false,
    /// sending the request again cannot do anything twice.
    pub fn sent(&self) -> bool {
        match self.cause {
            Cause::Build(_) => false,
            Cause::Transport { sent, .. } => sent,
            Cause::Status { .. } | Cause::Decode(_) => true,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.request)?;
        match &self.cause {
            Cause::Build(message) | Cause::Decode(message) => f.write_str(message),
            Cause::Transport { message, .. } => f.write_str(message),
            Cause::Status { status, text: Some(text), .. } => write!(f, "the cloud answered {status}: {text}"),
            Cause::Status { status, text: None, .. } => write!(f, "the cloud answered {status}"),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<RequestError> for CpiError {
    fn from(error: RequestError) -> Self {
        Self::cloud(error.to_string())
    }
}
