//! The response: one JSON document with the three keys that clients require.
//!
//! The Director requires `result`, `error` and `log`, where `log` is a string and an error has
//! `type`, `message` and `ok_to_retry`. Only error types that clients know are written.

use crate::bindings::bosh::cpi::types::{Error, ErrorKind};
use crate::failure::{Failure, Who};
use crate::rpc::method::Method;
use serde_json::{Value, json};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::invisible::is_invisible;

/// An error as the response carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    pub kind: ErrorType,
    pub message: String,
    pub ok_to_retry: bool,
}

macro_rules! error_types {
    ($($variant:ident,)*) => {
        /// The error types that the Director knows, and `StemcellNotFound`, which only the CLI
        /// knows, and only in `delete_stemcell`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorType { $($variant,)* }

        impl ErrorType {
            pub fn name(self) -> &'static str {
                match self { $(ErrorType::$variant => concat!("Bosh::Clouds::", stringify!($variant)),)* }
            }
        }
    };
}

error_types! {
    CpiError,
    NotSupported,
    NotImplemented,
    CloudError,
    VMNotFound,
    NetworkNotFound,
    NoDiskSpace,
    DiskNotAttached,
    DiskNotFound,
    VMCreationFailed,
    StemcellNotFound,
}

impl WireError {
    pub fn new(kind: ErrorType, message: impl Into<String>) -> Self {
        WireError { kind, message: message.into(), ok_to_retry: false }
    }

    /// Returns the error for an unknown method. Both clients compare this text to detect a method
    /// that is not implemented.
    pub fn unknown_method(name: &str) -> Self {
        WireError::new(ErrorType::NotImplemented, format!("Method is not known, got: {}", shown(name)))
    }
}

/// Returns the name of a method for a message, with a bounded length and without control characters.
fn shown(name: &str) -> String {
    let start: String = name.chars().take(64).collect();
    crate::log::escape(&start, usize::MAX)
}

impl From<&Failure> for WireError {
    fn from(failure: &Failure) -> Self {
        let kind = match failure.who {
            Who::Request | Who::Config => ErrorType::CpiError,
            Who::Policy | Who::Limit | Who::Guest | Who::Iaas | Who::Runtime => ErrorType::CloudError,
        };
        WireError::new(kind, failure.to_string())
    }
}

/// Returns a guest's error as an error of the protocol, or `None` if it means success to this
/// caller.
pub fn wire_error_of_guest(error: Error, method: Method, from_director: bool) -> Option<WireError> {
    let (kind, ok_to_retry) = match error.kind {
        ErrorKind::NotImplemented => (ErrorType::NotImplemented, false),
        ErrorKind::NotSupported => (ErrorType::NotSupported, false),
        ErrorKind::VmNotFound => (ErrorType::VMNotFound, false),
        ErrorKind::VmCreationFailed(advice) => (ErrorType::VMCreationFailed, advice.ok_to_retry),
        ErrorKind::DiskNotFound(advice) => (ErrorType::DiskNotFound, advice.ok_to_retry),
        ErrorKind::DiskNotAttached(advice) => (ErrorType::DiskNotAttached, advice.ok_to_retry),
        ErrorKind::NoDiskSpace(advice) => (ErrorType::NoDiskSpace, advice.ok_to_retry),
        ErrorKind::NetworkNotFound => (ErrorType::NetworkNotFound, false),
        // The Director does not know this type and has nothing left to delete. The CLI knows it
        // in this method only.
        ErrorKind::StemcellNotFound if method == Method::DeleteStemcell && from_director => return None,
        ErrorKind::StemcellNotFound if method == Method::DeleteStemcell => (ErrorType::StemcellNotFound, false),
        ErrorKind::StemcellNotFound | ErrorKind::Cloud => (ErrorType::CloudError, false),
        ErrorKind::Cpi => (ErrorType::CpiError, false),
    };
    let message = if error.message.is_empty() {
        format!("guest: {} failed without a message", method.name())
    } else {
        error.message
    };
    // These prefixes name who failed, so a guest's message must not start with one.
    let text = message.trim_start_matches(|c: char| c.is_whitespace() || c.is_control() || is_invisible(c));
    let starts_with = |prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let mut others = Who::ALL.into_iter().filter(|who| *who != Who::Guest);
    let has_prefix = Check::GuestErrorPrefix.refuses(others.any(|who| starts_with(&format!("{who}:"))));
    let message = if has_prefix { format!("guest: {message}") } else { message };
    Some(WireError { kind, message, ok_to_retry })
}

/// Returns the JSON document for stdout.
pub fn document(outcome: Result<Value, WireError>, log: &str) -> String {
    let document = match outcome {
        Ok(result) => json!({"result": result, "error": null, "log": log}),
        Err(error) => json!({
            "result": null,
            "error": {"type": error.kind.name(), "message": error.message, "ok_to_retry": error.ok_to_retry},
            "log": log,
        }),
    };
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_all_keys_and_its_log_is_a_string() {
        assert_eq!(document(Ok(Value::Null), ""), r#"{"result":null,"error":null,"log":""}"#);
        let error = WireError::unknown_method("pi\nng");
        assert_eq!(
            document(Err(error), "l"),
            r#"{"result":null,"error":{"type":"Bosh::Clouds::NotImplemented","message":"Method is not known, got: pi\\nng","ok_to_retry":false},"log":"l"}"#
        );
    }

    #[test]
    fn the_error_type_depends_on_who_failed() {
        for (who, kind) in [
            (Who::Request, "Bosh::Clouds::CpiError"),
            (Who::Config, "Bosh::Clouds::CpiError"),
            (Who::Limit, "Bosh::Clouds::CloudError"),
            (Who::Guest, "Bosh::Clouds::CloudError"),
        ] {
            assert_eq!(WireError::from(&Failure::new(who, "x")).kind.name(), kind);
        }
    }

    #[test]
    fn an_error_of_a_guest_cannot_look_like_one_of_the_runtime() {
        let error = |message: &str| Error { kind: ErrorKind::Cloud, message: message.into() };
        let wire = |message: &str| wire_error_of_guest(error(message), Method::HasVm, true).unwrap().message;
        assert_eq!(wire("config: set allow_local"), "guest: config: set allow_local");
        for who in Who::ALL {
            let expected = if who == Who::Guest { format!("{who}: x") } else { format!("guest: {who}: x") };
            assert_eq!(wire(&format!("{who}: x")), expected);
        }
        assert_eq!(wire("no room"), "no room");
    }

    #[test]
    fn a_missing_stemcell_is_success_for_the_director_only() {
        let error = || Error { kind: ErrorKind::StemcellNotFound, message: "m".into() };
        assert_eq!(wire_error_of_guest(error(), Method::DeleteStemcell, true), None);
        let cli = wire_error_of_guest(error(), Method::DeleteStemcell, false).unwrap();
        assert_eq!(cli.kind.name(), "Bosh::Clouds::StemcellNotFound");
        assert_eq!(wire_error_of_guest(error(), Method::CreateVm, true).unwrap().kind, ErrorType::CloudError);
    }
}
