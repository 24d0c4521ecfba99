//! What a guest learns if a mutation test turns a check off, where skipping the check is not enough.
//! No program that ships has this module.

use crate::limits::NamedLimit;
use crate::sandbox::call_clock::EndReason;

/// Returns a text with the reason for the early end of a call.
pub fn reason_for_guest(reason: &EndReason) -> String {
    match reason {
        EndReason::Limit(NamedLimit { name, .. }) => format!("the limit {name} is reached"),
        EndReason::Signal(name) => format!("{name} received"),
        EndReason::CallerGone => "the caller is gone".to_owned(),
        EndReason::Leak(failure) => failure.to_string(),
    }
}
