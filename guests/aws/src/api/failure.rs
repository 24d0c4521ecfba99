//! The error of a request to AWS: the operation, the API's code and message, and the ID under which AWS knows
//! the request.

use std::fmt;

use wasm_cpi_sdk::http::{Cause, RequestError};
use wasm_cpi_sdk::xml::{self, Element};

use crate::error::{is_capacity, is_throttled};

/// A request that failed.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) operation: String,
    /// The API's code, such as `InvalidVolume.NotFound`, if the API answered with one.
    pub(crate) code: Option<String>,
    /// The API's own message.
    message: Option<String>,
    request_id: Option<String>,
    /// Boxed, because most results are not errors, and this is large.
    cause: Box<RequestError>,
}

impl ApiError {
    pub(crate) fn new(operation: &str, cause: RequestError) -> Self {
        let body = match &cause.cause {
            Cause::Status { body, .. } => xml::parse(body).ok(),
            _ => None,
        };
        let text = |names: &[&str]| body.as_ref().and_then(|body| names.iter().find_map(|name| first(body, name)));
        let (code, message) = (text(&["Code"]), text(&["Message"]));
        let request_id = text(&["RequestID", "RequestId"]);
        Self { operation: operation.to_owned(), code, message, request_id, cause: Box::new(cause) }
    }

    /// Returns an error with the code and the request's ID of a JSON API, which has them in headers.
    pub(crate) fn of_json(operation: &str, cause: RequestError, code: Option<&str>, request_id: Option<&str>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let message = match &cause.cause {
            Cause::Status { text, .. } => text.clone(),
            _ => None,
        };
        Self {
            operation: operation.to_owned(),
            code: owned(code),
            message,
            request_id: owned(request_id),
            cause: Box::new(cause),
        }
    }

    /// Returns the API's code, or an empty text.
    pub(crate) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or_default()
    }

    pub(crate) fn is(&self, code: &str) -> bool {
        self.code() == code
    }

    /// Returns true if AWS says that the resource does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        crate::error::is_not_found(self.code())
    }

    /// Returns true if AWS may have carried out the operation.
    pub(crate) fn may_have_succeeded(&self) -> bool {
        match &self.cause.cause {
            Cause::Build(_) => false,
            Cause::Transport { sent, .. } => *sent,
            // A lack of capacity and throttling have statuses of failures, too.
            Cause::Status { status, .. } => {
                *status >= 500 && !is_throttled(self.code(), Some(*status)) && !is_capacity(self.code())
            }
            Cause::Decode(_) => true,
        }
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.cause.status()
    }

    /// Returns true if the host refused the request.
    pub(crate) fn is_denied(&self) -> bool {
        self.cause.denial().is_some()
    }

    pub(crate) fn cause(&self) -> &RequestError {
        &self.cause
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(code) = &self.code else { return write!(f, "{}", self.cause) };
        write!(f, "{} failed with {code}", self.operation)?;
        if let Some(message) = &self.message {
            write!(f, ": {}", message.trim_end_matches('.'))?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " (request ID {id})")?;
        }
        Ok(())
    }
}

/// Returns the text of the first element with this name, at any depth.
pub(super) fn first(element: &Element, name: &str) -> Option<String> {
    let own = element.text(name).map(str::to_owned);
    own.or_else(|| element.children().iter().find_map(|child| first(child, name)))
}
