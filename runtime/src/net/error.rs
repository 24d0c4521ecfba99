//! The error of an HTTP request, for guests, logs and `call`.
//!
//! A message says who failed, what happened, and what to do. It names the origin
//! and path, but never a query, a header value or a body. The guest reads the message: it
//! consists of fixed words, of names in the policy, and of what the guest itself sent, so it needs
//! no redaction. What a server, the network or a library said is in the detail, for operators.

use crate::failure::{Cause, Failure, Who};
use std::fmt;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::DenialReason;
use wasm_cpi_policy::invisible::is_invisible;

/// The kinds of errors that a guest can distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpErrorKind {
    Denied(DenialReason),
    InvalidRequest,
    /// A limit was reached; holds its name in the config.
    Limit(&'static str),
    Dns,
    Connect,
    Tls,
    Timeout,
    Protocol,
    Truncated,
    /// The call is ending, so the request was not finished.
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
    pub who: Who,
    pub kind: HttpErrorKind,
    /// What the guest reads, which starts with who failed. It holds nothing that depends on a
    /// secret, and is never redacted: a guest could find out from a redacted text which of its own words are secrets.
    pub message: String,
    /// The cause, for operators. It is redacted when it is printed, and no guest gets it.
    pub detail: String,
    /// True if any byte of the request may have reached the server.
    pub sent: bool,
    /// The login that failed, if the request failed because of one.
    pub login: Option<Box<str>>,
    /// The check that refused the request or the response, if one did. It is for operators: the
    /// guest gets the kind and the message.
    pub check: Option<Check>,
    /// What would allow the request, for operators: lines for the policy or the guest's needs.
    pub hint: Option<String>,
}

impl RefusedBy for HttpError {
    fn refused_by(self, check: Check) -> HttpError {
        HttpError { check: self.check.or(Some(check)), ..self }
    }
}

impl HttpError {
    /// Returns an error of a request of which nothing was sent. Its message is `who: what`.
    pub fn failed(who: Who, kind: HttpErrorKind, what: impl fmt::Display) -> Self {
        HttpError {
            who,
            kind,
            message: format!("{who}: {what}"),
            detail: String::new(),
            sent: false,
            login: None,
            check: None,
            hint: None,
        }
    }

    /// Returns an error of the cloud. Its message is `iaas: what`.
    pub fn cloud(kind: HttpErrorKind, what: impl fmt::Display) -> Self {
        HttpError::failed(Who::Iaas, kind, what)
    }

    /// Returns the error of a request that the policy refuses. Its message is `policy: what`.
    pub fn denied(reason: DenialReason, what: impl fmt::Display) -> Self {
        HttpError::failed(Who::Policy, HttpErrorKind::Denied(reason), what)
    }

    /// Returns the error of a request that the guest wrote wrongly. Its message is `guest: what`.
    pub fn invalid(what: impl fmt::Display) -> Self {
        HttpError::failed(Who::Guest, HttpErrorKind::InvalidRequest, what)
    }

    /// Returns the error for `what` reaching the limit `name`.
    pub fn limit(name: &'static str, value: impl fmt::Display, what: impl fmt::Display) -> Self {
        let Failure { who, message, .. } = Failure::limit(name, value, what);
        HttpError::failed(who, HttpErrorKind::Limit(name), message)
    }

    /// Adds the cause, for operators.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Returns message and cause, for operators.
    pub fn explained(&self) -> String {
        if self.detail.is_empty() { self.message.clone() } else { format!("{} ({})", self.message, self.detail) }
    }

    /// Returns why the request failed, for operators.
    pub fn cause(&self) -> Cause {
        Cause { login: self.login.clone(), text: self.detail.clone() }
    }

    /// Returns the same error, for a request that may have reached the server.
    #[must_use]
    pub fn after_sending(mut self) -> Self {
        self.sent = true;
        self
    }
}

/// Returns foreign text for use in a message: one line, without control characters, shortened.
pub(super) fn quoted(text: &str) -> String {
    const MAX: usize = 300;
    let printable = |c: char| !c.is_control() && !is_invisible(c);
    text.chars().map(|c| if printable(c) { c } else { ' ' }).take(MAX).collect()
}
