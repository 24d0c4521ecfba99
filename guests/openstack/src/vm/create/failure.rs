//! Why a VM could not be made, and whether the Director may well try again:
//! after what passes, yes; after what the cloud refuses, no.

use wasm_cpi_sdk::http::{self, Cause};
use wasm_cpi_sdk::{Error, ErrorKind, clock};

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) retry: bool,
}

impl Failure {
    /// One that another try would meet again.
    pub(super) fn last(error: Error) -> Self {
        Self { message: error.message, retry: false }
    }

    /// The method's error, with what could not be undone.
    pub(super) fn answer(self, undone: Result<(), Error>) -> Error {
        // Nobody is there to try again when a call was stopped.
        let retry = self.retry && clock::ending().is_none();
        match undone {
            Ok(()) => Error::vm_creation_failed(self.message, retry),
            Err(left) => Error::vm_creation_failed(
                format!("{}; it is not certain that all of it was undone: {left}", self.message),
                false,
            ),
        }
    }
}

impl From<http::Error> for Failure {
    fn from(error: http::Error) -> Self {
        let retry = match &error.cause {
            Cause::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..),
            Cause::Transport { .. } => error.denial().is_none(),
            Cause::Build(_) | Cause::Decode(_) => false,
        };
        let hint = match error.status() {
            Some(404) if error.request.ends_with("/ports") => "; net_id must be the ID of a network, not of a subnet",
            _ => "",
        };
        Self { message: format!("{error}{hint}"), retry }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let retry = match error.kind {
            ErrorKind::VmCreationFailed(retry) => retry,
            ErrorKind::Cpi => false,
            _ => true,
        };
        Self { message: error.message, retry }
    }
}
