//! The response: one JSON document with the three keys that clients demand.
//!
//! The Director wants `result`, `error` and `log` present, `log` a string, and
//! an error with `type`, `message` and `ok_to_retry`. Only error types that the
//! clients know leave this file.

use crate::failure::{Failure, Who};
use serde_json::{Value, json};

/// An error of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    pub kind: ErrorType,
    pub message: String,
    pub ok_to_retry: bool,
}

macro_rules! error_types {
    ($($variant:ident,)*) => {
        /// The types that the Director knows, and `StemcellNotFound`, which
        /// the CLI knows in `delete_stemcell` only.
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

    /// Both clients take this wording for "not implemented".
    pub fn unknown_method(name: &str) -> Self {
        WireError::new(ErrorType::NotImplemented, format!("Method is not known, got: {}", shown(name)))
    }
}

/// A method name as part of a message: bounded, printable.
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

/// The document for stdout.
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
    fn all_keys_are_there_and_log_is_a_string() {
        assert_eq!(write(Ok(Value::Null), ""), r#"{"result":null,"error":null,"log":""}"#);
        let error = WireError::unknown_method("pi\nng");
        assert_eq!(
            write(Err(error), "l"),
            r#"{"result":null,"error":{"type":"Bosh::Clouds::NotImplemented","message":"Method is not known, got: pi\\nng","ok_to_retry":false},"log":"l"}"#
        );
    }

    #[test]
    fn who_failed_decides_the_type() {
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
