//! The requests of a call with their responses, and which of them were sent without need.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use ::tests::openstack::{Backend, Request, Response, Service};
use serde_json::Value;

/// One request and its response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exchange {
    service: Service,
    method: String,
    /// Path and query.
    target: String,
    status: u16,
    response: Vec<u8>,
}

/// A cloud whose exchanges are recorded. Clones are the same cloud.
#[derive(Clone)]
pub(super) struct Recorder {
    backend: Arc<dyn Backend<Service = Service>>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl Recorder {
    pub(super) fn new(backend: impl Backend<Service = Service> + 'static) -> Recorder {
        Recorder { backend: Arc::new(backend), exchanges: Arc::default() }
    }

    /// Returns the exchanges since the last call of this, in the order of the responses.
    pub(super) fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.exchanges.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Backend for Recorder {
    type Service = Service;

    fn answer(&self, service: Service, request: &Request, body: &mut dyn Read) -> io::Result<Response> {
        let response = self.backend.answer(service, request, body)?;
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(Exchange {
            service,
            method: request.method.clone(),
            target: request.target.clone(),
            status: response.status,
            response: response.body.clone(),
        });
        Ok(response)
    }

    fn cloud(&self) -> Value {
        self.backend.cloud()
    }
}

impl Exchange {
    pub(super) fn is_login(&self) -> bool {
        self.service == Service::Identity
    }

    fn reads(&self) -> bool {
        self.method == "GET"
    }

    fn asks_the_same(&self, other: &Exchange) -> bool {
        (self.service, &self.method, &self.target) == (other.service, &other.method, &other.target)
    }

    /// Returns true if the service refused the request because it was busy.
    fn was_busy(&self) -> bool {
        matches!(self.status, 409 | 429 | 500..)
    }
}

/// Returns the requests that follow the one at `at` before the next change.
fn until_next_change(trace: &[Exchange], at: usize) -> &[Exchange] {
    let after = &trace[at + 1..];
    let end = after.iter().position(|exchange| !exchange.reads()).unwrap_or(after.len());
    &after[..end]
}

/// Returns the GETs that another GET repeats without need. A repetition is needed after the call
/// changed something, or to wait: then the last response differs from all before it.
pub(super) fn repeated(trace: &[Exchange]) -> Vec<String> {
    let is_repeated = |at: &usize| {
        let exchange = &trace[*at];
        let last = until_next_change(trace, *at).iter().rfind(|later| later.asks_the_same(exchange));
        exchange.reads() && !exchange.was_busy() && last == Some(exchange)
    };
    (0..trace.len()).filter(is_repeated).map(|at| format!("GET {}", trace[at].target)).collect()
}

/// Returns the number of requests without logins and without those that wait: a GET that is
/// repeated before the next change, and a request that the service was too busy for, count once.
pub(super) fn without_waiting(trace: &[Exchange]) -> usize {
    let counts = |at: &usize| {
        let exchange = &trace[*at];
        let is_read_again =
            exchange.reads() && until_next_change(trace, *at).iter().any(|later| later.asks_the_same(exchange));
        let is_sent_again = exchange.was_busy() && trace[at + 1..].iter().any(|later| later.asks_the_same(exchange));
        !exchange.is_login() && !is_read_again && !is_sent_again
    };
    (0..trace.len()).filter(counts).count()
}

/// Returns one line for each request, for messages.
pub(super) fn describe(trace: &[Exchange]) -> String {
    trace.iter().fold(String::new(), |mut text, Exchange { method, target, status, .. }| {
        let _ = write!(text, "\n    {method} {target} {status}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `GET /a 200 body`.
    fn trace(lines: &[&str]) -> Vec<Exchange> {
        let parse = |line: &&str| {
            let mut words = line.split(' ');
            let mut next = || words.next().unwrap_or_default().to_owned();
            let (method, target, status) = (next(), next(), next().parse().unwrap_or_default());
            let service = if target == "/auth" { Service::Identity } else { Service::Compute };
            Exchange { service, method, target, status, response: next().into_bytes() }
        };
        lines.iter().map(parse).collect()
    }

    #[test]
    fn a_get_that_is_repeated_without_change_or_waiting_is_found() {
        for (lines, found, count) in [
            (&["GET /a 200 x", "GET /b 200 x"][..], &[][..], 2),
            (&["GET /a 200 x", "GET /a 200 x"], &["GET /a"], 1),
            (&["GET /a 200 x", "GET /b 200 y", "GET /a 200 x"], &["GET /a"], 2),
            (&["GET /a 404 x", "GET /a 404 x"], &["GET /a"], 1),
            // Another query is another request.
            (&["GET /a 200 x", "GET /a?b=c 200 x"], &[], 2),
            // A change in between.
            (&["GET /a 200 x", "POST /b 200 y", "GET /a 200 x"], &[], 3),
            // Waiting, which ends with another response.
            (&["DELETE /a 204", "GET /a 200 x", "GET /a 200 x", "GET /a 404 y"], &[], 2),
            (&["DELETE /a 204", "GET /a 200 x", "GET /a 404 y", "GET /a 404 y"], &["GET /a"], 2),
            // A service that is busy.
            (&["GET /a 503 x", "GET /a 503 x", "GET /a 200 y"], &[], 1),
            (&["DELETE /a 409 x", "DELETE /a 409 x", "DELETE /a 204"], &[], 1),
            // The same path, and each request changes something.
            (&["POST /a 200 x", "POST /a 200 x"], &[], 2),
            (&["POST /auth 201 x", "GET /a 200 x"], &[], 1),
        ] {
            let trace = trace(lines);
            assert_eq!(repeated(&trace), found, "{lines:?}");
            assert_eq!(without_waiting(&trace), count, "{lines:?}");
        }
    }
}
