//! Errors of the services.

/// An error response, before it is written in the protocol of its API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Error {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) message: String,
}

impl Error {
    /// Returns an error with status 400, which is the status of almost all errors.
    pub(super) fn new(code: &str, message: impl Into<String>) -> Error {
        Error::with_status(400, code, message)
    }

    pub(super) fn with_status(status: u16, code: &str, message: impl Into<String>) -> Error {
        Error { status, code: code.to_owned(), message: message.into() }
    }
}

/// Returns the error about a value that EC2 does not accept.
pub(super) fn invalid(name: &str, value: &str, why: &str) -> Error {
    let why = if why.is_empty() { String::new() } else { format!(" {why}") };
    Error::new("InvalidParameterValue", format!("Value ({value}) for parameter {name} is invalid.{why}"))
}

pub(super) fn missing(name: &str) -> Error {
    Error::new("MissingParameter", format!("The request must contain the parameter {name}"))
}

pub(super) fn combination(message: impl Into<String>) -> Error {
    Error::new("InvalidParameterCombination", message)
}
