//! A request that may have changed something, and its outcome.

use crate::net::error::HttpError;
use crate::net::exchange::Received;

/// A request that may change something.
pub(super) struct Change {
    pub(super) request: String,
    pub(super) outcome: Outcome,
}

/// The outcome of a request that may change something.
pub(in crate::net) enum Outcome {
    /// There is no response yet, or there will be none: the request may have arrived.
    Unanswered,
    Answered(u16),
    NotSent,
    /// An upload in blocks ended after so many blocks were accepted.
    Incomplete(u64),
}

impl Outcome {
    pub(in crate::net) fn of(received: &Result<Received, HttpError>) -> Outcome {
        match received {
            Ok(received) => Outcome::Answered(received.status),
            Err(error) if error.sent => Outcome::Unanswered,
            Err(_) => Outcome::NotSent,
        }
    }
}

impl Change {
    /// Returns the request with its outcome; `None` if it cannot have changed anything.
    pub(super) fn describe(&self) -> Option<String> {
        let request = &self.request;
        match self.outcome {
            Outcome::Unanswered => Some(format!("{request} without a response")),
            // After a status of a gateway, the server may still have handled the request.
            Outcome::Answered(status @ (200..=299 | 500..=599)) => Some(format!("{request} -> {status}")),
            Outcome::Incomplete(accepted) => Some(format!("{request}, of which {accepted} were accepted")),
            Outcome::Answered(_) | Outcome::NotSent => None,
        }
    }
}
