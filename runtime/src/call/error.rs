//! The error type that all steps of a call share.

use crate::audit::CallFailure;
use crate::failure::{Failure, Who};
use crate::rpc::response::WireError;
use wasm_cpi_checks::Check;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// A layer of the runtime failed, or found the request, the config or the guest wrong.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// An error of the protocol, such as one that the guest returned, and who has to act.
    #[error("{}", .error.message)]
    Protocol { who: Who, error: WireError },
}

impl CallError {
    /// Returns who failed.
    pub fn who(&self) -> Who {
        match self {
            CallError::Failure(failure) => failure.who,
            CallError::Protocol { who, .. } => *who,
        }
    }

    /// Returns the check that refused, if one did.
    pub fn check(&self) -> Option<Check> {
        match self {
            CallError::Failure(failure) => failure.check,
            CallError::Protocol { .. } => None,
        }
    }

    /// Returns the error that the caller gets, without the code of the check that refused.
    pub fn to_wire(&self) -> WireError {
        match self {
            CallError::Failure(failure) => WireError::from(failure),
            CallError::Protocol { error, .. } => error.clone(),
        }
    }

    /// Returns the error as the audit log records it.
    pub fn audited(&self) -> CallFailure {
        match self {
            CallError::Failure(failure) => failure.into(),
            CallError::Protocol { who, error } => CallFailure { error: error.kind.name(), who: *who, check: None },
        }
    }
}
