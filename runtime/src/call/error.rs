//! Why a call does not succeed: the one error type of all steps.

use crate::audit::Failed;
use crate::failure::{Failure, Who};
use crate::rpc::response::WireError;

/// Why a call does not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// A layer of the runtime failed, or found the request, the config or the guest wrong.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// An error in the terms of the wire, like the guest's own, and who is to act on it.
    #[error("{}", .error.message)]
    Wire { who: Who, error: WireError },
}

impl CallError {
    /// Returns who is to act on it.
    pub fn who(&self) -> Who {
        match self {
            CallError::Failure(failure) => failure.who,
            CallError::Wire { who, .. } => *who,
        }
    }

    /// Returns the error that the caller gets.
    pub fn into_wire(self) -> WireError {
        match self {
            CallError::Failure(failure) => WireError::from(&failure),
            CallError::Wire { error, .. } => error,
        }
    }

    /// Returns what the audit log says about it.
    pub fn audited(&self) -> Failed {
        match self {
            CallError::Failure(failure) => failure.into(),
            CallError::Wire { who, error } => Failed { error: error.kind.name(), who: *who },
        }
    }
}
