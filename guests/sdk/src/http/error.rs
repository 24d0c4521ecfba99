//! What can go wrong with a request, so that a guest can tell "was refused
//! here", "never arrived", "may have arrived" and "the cloud said no" apart.

use std::fmt;

use super::url::without_query;
use super::{Denial, ErrorKind};
use crate::Error as CpiError;
use crate::bindings::bosh::cpi::http as wire;

/// A request that did not give what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// Method and URL without its query.
    pub request: String,
    pub cause: Cause,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The guest built something that cannot be sent.
    Build(String),
    /// There is no response. If not `sent`, the server saw nothing of it.
    Transport { kind: ErrorKind, message: String, sent: bool },
    /// The cloud answered something else than asked for.
    Status { status: u16, text: Option<String>, body: Vec<u8> },
    /// The response is not what the guest expects.
    Decode(String),
}

impl Error {
    pub(super) fn of(method: &str, url: &str, cause: Cause) -> Self {
        Self { request: format!("{method} {}", without_query(url)), cause }
    }

    pub(super) fn transport(request: &str, error: wire::Error) -> Self {
        let cause = Cause::Transport { kind: error.kind, message: error.message, sent: error.sent };
        Self { request: request.to_owned(), cause }
    }

    pub(super) fn decode(request: &str, message: String) -> Self {
        Self { request: request.to_owned(), cause: Cause::Decode(message) }
    }

    /// The status, if the cloud answered one that was not asked for.
    pub fn status(&self) -> Option<u16> {
        match self.cause {
            Cause::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Whether the cloud says that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }

    /// Why the operator's policy said no, if it did.
    pub fn denial(&self) -> Option<Denial> {
        match self.cause {
            Cause::Transport { kind: ErrorKind::Denied(denial), .. } => Some(denial),
            _ => None,
        }
    }

    /// Whether the server may have seen the request. If not, sending it again
    /// cannot make anything happen twice.
    pub fn sent(&self) -> bool {
        match self.cause {
            Cause::Build(_) => false,
            Cause::Transport { sent, .. } => sent,
            Cause::Status { .. } | Cause::Decode(_) => true,
        }
    }
}

impl fmt::Display for Error {
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

impl std::error::Error for Error {}

impl From<Error> for CpiError {
    fn from(error: Error) -> Self {
        Self::cloud(error.to_string())
    }
}
