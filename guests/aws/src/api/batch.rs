//! Several requests at once: those of a step that do not depend on each other.

use wasm_cpi_sdk::http::{self, Request, RequestError, Response};

use super::{ApiError, Query};

/// Requests that are sent together.
#[derive(Default)]
pub(crate) struct Batch {
    requests: Vec<Request>,
}

/// The place of a request in its batch.
pub(crate) struct Ticket<T> {
    index: usize,
    query: Query<T>,
}

/// The answers to a batch.
pub(crate) struct Answers {
    answers: Vec<Option<Result<Response, RequestError>>>,
}

impl Batch {
    /// Adds a request.
    pub(crate) fn add<T>(&mut self, query: Query<T>) -> Ticket<T> {
        self.requests.push(query.request());
        Ticket { index: self.requests.len() - 1, query }
    }

    /// Sends all requests once.
    pub(crate) fn send(self) -> Answers {
        let answers = match self.requests.len() {
            0 => vec![],
            _ => http::send_all(self.requests).into_iter().map(Some).collect(),
        };
        Answers { answers }
    }
}

impl Answers {
    /// Returns the answer to a request. It is sent again while that can help.
    pub(crate) fn take<T>(&mut self, ticket: &Ticket<T>) -> Result<T, ApiError> {
        let first = self.answers.get_mut(ticket.index).and_then(Option::take);
        ticket.query.finish(first)
    }
}
