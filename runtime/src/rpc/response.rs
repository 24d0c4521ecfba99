//! The response: one JSON document with the three keys that clients require.
//!
//! The Director requires `result`, `error` and `log`, where `log` is a string and an error has
//! `type`, `message` and `ok_to_retry`. Only error types that clients know are written.

use crate::failure::{Failure, Who};
use serde_json::{Value, json};

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

/// Returns the document for stdout.
pub fn write(outcome: Result<Value, WireError>, log: &str) -> String {
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
        assert_eq!(write(Ok(Value::Null), ""), r#"{"result":null,"error":null,"log":""}"#);
        let error = WireError::unknown_method("pi\nng");
        assert_eq!(
            write(Err(error), "l"),
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
}
