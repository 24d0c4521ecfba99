//! What can become of a request: the error that guests, logs and `call` show.
//!
//! Messages say first who failed, then what, then what to do. They name
//! origins and paths, never queries, header values or bodies.

use crate::failure::Failure;
use std::fmt;
use wasm_cpi_policy::DenialReason;
use wasm_cpi_policy::invisible::is_invisible;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpErrorKind {
    Denied(DenialReason),
    InvalidRequest,
    /// The limit's name in the configuration.
    Limit(&'static str),
    Dns,
    Connect,
    Tls,
    Timeout,
    Protocol,
    Truncated,
    /// The call is ending.
    Cancelled,
}

impl fmt::Display for HttpErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpErrorKind::Denied(reason) => write!(f, "denied({reason})"),
            HttpErrorKind::InvalidRequest => f.write_str("invalid-request"),
            HttpErrorKind::Limit(name) => write!(f, "limit({name})"),
            HttpErrorKind::Dns => f.write_str("dns"),
            HttpErrorKind::Connect => f.write_str("connect"),
            HttpErrorKind::Tls => f.write_str("tls"),
            HttpErrorKind::Timeout => f.write_str("timeout"),
            HttpErrorKind::Protocol => f.write_str("protocol"),
            HttpErrorKind::Truncated => f.write_str("truncated"),
            HttpErrorKind::Cancelled => f.write_str("cancelled"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HttpError {
    pub kind: HttpErrorKind,
    pub message: String,
    /// Whether any byte of the request may have reached the server.
    pub sent: bool,
}

impl HttpError {
    /// Before anything was sent.
    pub fn new(kind: HttpErrorKind, message: impl Into<String>) -> Self {
        HttpError { kind, message: message.into(), sent: false }
    }

    pub fn denied(reason: DenialReason, message: impl Into<String>) -> Self {
        HttpError::new(HttpErrorKind::Denied(reason), message)
    }

    pub fn invalid(message: impl fmt::Display) -> Self {
        HttpError::new(HttpErrorKind::InvalidRequest, format!("guest: {message}"))
    }

    pub fn limit(name: &'static str, value: impl fmt::Display, what: impl fmt::Display) -> Self {
        HttpError::new(HttpErrorKind::Limit(name), Failure::limit(name, value, what).to_string())
    }

    #[must_use]
    pub fn after_sending(mut self) -> Self {
        self.sent = true;
        self
    }
}

/// A peer's words as part of a message: one line, no control characters, short.
pub(super) fn quoted(text: &str) -> String {
    const MAX: usize = 300;
    let printable = |c: char| !c.is_control() && !is_invisible(c);
    text.chars().map(|c| if printable(c) { c } else { ' ' }).take(MAX).collect()
}
