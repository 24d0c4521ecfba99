//! Why a VM could not be created, and whether the Director may try again: yes
//! after an error that can pass, no after a refusal of the cloud. A server group
//! that does not exist any more is one that can pass: `server_group` says when.

use wasm_cpi_sdk::http::{self, Cause};
use wasm_cpi_sdk::{Error, ErrorKind, clock};

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) ok_to_retry: bool,
}

impl Failure {
    /// Returns a failure that another attempt would meet again.
    pub(super) fn final_error(error: Error) -> Self {
        Self { message: error.message, ok_to_retry: false }
    }

    /// Returns the error of `create_vm`. `undone` says what may be left in the
    /// cloud; a retry would not delete it.
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

impl From<http::RequestError> for Failure {
    fn from(error: http::RequestError) -> Self {
        let ok_to_retry = match &error.cause {
            // Nova has no code for it. `refusals` in `tests/it/openstack` compares its wording with Nova's.
            Cause::Status { status: 400, text: Some(text), .. } if text.contains("Instance group") => true,
            Cause::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..),
            Cause::Transport { .. } => error.denial().is_none(),
            Cause::Build(_) | Cause::Decode(_) => false,
        };
        Self { message: error.to_string(), ok_to_retry }
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
