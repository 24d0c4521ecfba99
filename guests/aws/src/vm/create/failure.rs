//! Why a VM could not be created, and whether the Director may try again: yes after an error that can pass, such as a
//! lack of capacity, no after a refusal of the request.

use wasm_cpi_sdk::http::Cause;
use wasm_cpi_sdk::{Error, ErrorKind, clock};

use crate::api::ApiError;
use crate::api::ec2::Instance;
use crate::error::{is_capacity, is_internal, is_throttled, remedy};

/// The codes of states that pass, beside those that `error` knows.
const PASSING: [&str; 6] = [
    "IncorrectState",
    "IncorrectInstanceState",
    "InsufficientFreeAddressesInSubnet",
    "InvalidIPAddress.InUse",
    "InvalidTarget",
    "SpotInstanceInterruption",
];

#[derive(Debug)]
pub(in crate::vm) struct Failure {
    pub(super) message: String,
    pub(super) ok_to_retry: bool,
}

impl Failure {
    /// A failure that another attempt would meet again.
    pub(super) fn final_error(error: Error) -> Self {
        Self { message: error.message, ok_to_retry: false }
    }

    /// Returns the error of `create_vm`. `undone` says what may be left in the cloud; a retry would not delete it.
    pub(super) fn into_error(self, undone: Result<(), Error>) -> Error {
        // A call that was stopped has no caller that could retry.
        let ok_to_retry = self.ok_to_retry && clock::ending().is_none();
        match undone {
            Ok(()) => Error::vm_creation_failed(self.message).ok_to_retry(ok_to_retry),
            Err(left) => Error::vm_creation_failed(format!(
                "{}; it is not certain that all of it was undone: {left}",
                self.message
            )),
        }
    }
}

/// An error that keeps whether the Director may try again, for waits, which end with an [`Error`].
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::vm_creation_failed(failure.message).ok_to_retry(failure.ok_to_retry)
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        let code = error.code();
        let ok_to_retry = match &error.cause().cause {
            Cause::Status { status, .. } => {
                *status >= 500
                    || is_capacity(code)
                    || is_internal(code)
                    || is_throttled(code, Some(*status))
                    || PASSING.contains(&code)
            }
            Cause::Transport { .. } => !error.is_denied(),
            Cause::Build(_) | Cause::Decode(_) => false,
        };
        let message = match remedy(&error) {
            Some(remedy) => format!("{error}; {remedy}"),
            None => error.to_string(),
        };
        Self { message, ok_to_retry }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let ok_to_retry = match error.kind {
            ErrorKind::VmCreationFailed(advice) => advice.ok_to_retry,
            ErrorKind::Cpi => false,
            _ => true,
        };
        Self { message: error.message, ok_to_retry }
    }
}

/// Returns the error of an instance that ended while it was created. What EC2 or the host did can pass; what is wrong
/// with the request cannot.
pub(super) fn ended(instance: &Instance) -> Error {
    let Instance { id, state, .. } = instance;
    let Some((code, message)) = &instance.reason else {
        return Error::vm_creation_failed(format!("instance `{id}` is {state} instead of running")).ok_to_retry(true);
    };
    let hint = match code.as_str() {
        "Client.InternalError" => {
            "; often the credentials or the role of EC2 may not use the KMS key of an encrypted volume: allow kms:CreateGrant, \
             kms:Decrypt and kms:GenerateDataKeyWithoutPlaintext for it"
        }
        _ => "",
    };
    let text = format!("instance `{id}` is {state} instead of running, with {code}: {message}{hint}");
    Error::vm_creation_failed(text).ok_to_retry(code.starts_with("Server."))
}
