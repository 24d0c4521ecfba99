//! What a call sends: a backend that records exchanges with a cloud, and one that
//! answers the same requests of the peer with the recorded responses.
//!
//! The peer cannot send recorded requests to the simulator, because a second server with
//! the same name or address is another request to it, and its ids differ. So the peer gets
//! exactly the responses of the runtime's call, after the time that the simulator took,
//! through the same kind of gateway and links. Any request that differs from the recorded
//! one, and any without the token of the peer's own login or without a signature of its
//! own (`access`), is an error of the benchmark.

use super::access::Access;
use ::tests::gateway::{Backend, Request, Response, Services};
use ::tests::openstack::Service;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One request and its response.
#[derive(Clone)]
pub(super) struct Exchange<S = Service> {
    pub(super) service: S,
    pub(super) request: Request,
    pub(super) body: Vec<u8>,
    pub(super) response: Response,
    pub(super) arrived: Instant,
    /// The time that the cloud took.
    took: Duration,
}

impl<S> Exchange<S> {
    pub(super) fn is_login(&self) -> bool {
        is_login(&self.request)
    }
}

/// Only Keystone has logins.
fn is_login(request: &Request) -> bool {
    request.method == "POST" && request.path.ends_with("/auth/tokens")
}

/// A cloud whose exchanges are recorded. Clones are the same cloud.
#[derive(Clone)]
pub(super) struct Recorder<S = Service> {
    backend: Arc<dyn Backend<Service = S>>,
    exchanges: Arc<Mutex<Vec<Exchange<S>>>>,
    closes: Arc<AtomicBool>,
}

impl<S: Services> Recorder<S> {
    pub(super) fn new(backend: impl Backend<Service = S> + 'static) -> Recorder<S> {
        Recorder { backend: Arc::new(backend), exchanges: Arc::default(), closes: Arc::default() }
    }

    /// Returns the exchanges since the start or the last call of this, in the order of the responses.
    pub(super) fn take(&self) -> Vec<Exchange<S>> {
        std::mem::take(&mut lock(&self.exchanges))
    }

    /// Makes every response end its connection, or none.
    pub(super) fn close_connections(&self, closes: bool) {
        self.closes.store(closes, Ordering::SeqCst);
    }
}

impl<S: Services> Backend for Recorder<S> {
    type Service = S;

    fn answer(&self, service: S, request: &Request, body: &mut dyn Read) -> io::Result<Response> {
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        let arrived = Instant::now();
        let response = self.backend.answer(service, request, &mut bytes.as_slice())?;
        let (took, request) = (arrived.elapsed(), request.clone());
        lock(&self.exchanges).push(Exchange {
            service,
            request,
            body: bytes,
            response: response.clone(),
            arrived,
            took,
        });
        Ok(if self.closes.load(Ordering::SeqCst) { response.with("Connection", "close") } else { response })
    }

    fn cloud(&self) -> Value {
        self.backend.cloud()
    }
}

/// Answers requests with recorded responses. Clones are the same.
#[derive(Clone)]
pub(super) struct Replay<S = Service> {
    cloud: Value,
    access: Arc<dyn Access<S>>,
    expected: Arc<Mutex<VecDeque<Exchange<S>>>>,
}

impl<S: Services> Replay<S> {
    pub(super) fn new(cloud: Value, access: Arc<dyn Access<S>>) -> Replay<S> {
        Replay { cloud, access, expected: Arc::default() }
    }

    /// Sets the exchanges of the next process, which must have completed the previous ones.
    pub(super) fn expect(&self, exchanges: &[Exchange<S>]) {
        *lock(&self.expected) = exchanges.iter().cloned().collect();
    }

    /// Returns the number of requests that the process has not sent.
    pub(super) fn missing(&self) -> usize {
        lock(&self.expected).len()
    }

    /// Returns the next exchange, or how the request differs from its request.
    fn next(&self, service: S, request: &Request, body: &[u8]) -> Result<Exchange<S>, String> {
        if let Some(login) = self.access.login().filter(|_| is_login(request)) {
            return Ok(login.clone());
        }
        let next = lock(&self.expected).pop_front().ok_or("the call has no further request")?;
        if (service, &request.method, &request.target) != (next.service, &next.request.method, &next.request.target) {
            return Err(format!("expected {} {}", next.request.method, next.request.target));
        }
        if body != next.body {
            return Err("the body is not the recorded one".to_owned());
        }
        self.access.check(service, request, body)?;
        Ok(next)
    }
}

impl<S: Services> Backend for Replay<S> {
    type Service = S;

    fn answer(&self, service: S, request: &Request, body: &mut dyn Read) -> io::Result<Response> {
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        let start = Instant::now();
        match self.next(service, request, &bytes) {
            Ok(exchange) => {
                // The simulator takes microseconds, and a sleep would take longer.
                while start.elapsed() < exchange.took {
                    std::hint::spin_loop();
                }
                Ok(exchange.response)
            }
            Err(problem) => {
                let text = format!("{} {}: {problem}", request.method, request.target);
                Ok(Response { body: text.into_bytes(), ..Response::new(500) })
            }
        }
    }

    fn cloud(&self) -> Value {
        self.cloud.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::access::Login;
    use super::*;
    use ::tests::openstack::Simulator;

    fn send(
        backend: &impl Backend<Service = Service>,
        method: &str,
        target: &str,
        token: &str,
        body: &str,
    ) -> Response {
        let headers = vec![("X-Auth-Token".to_owned(), token.to_owned())];
        let service = if target.contains("/auth/") { Service::Identity } else { Service::Image };
        backend.answer(service, &Request::new(method, target, headers), &mut body.as_bytes()).unwrap()
    }

    #[test]
    fn a_replay_answers_only_the_recorded_requests_in_their_order_and_with_its_token() {
        let recorder = Recorder::new(Simulator::new());
        let cloud = recorder.cloud();
        let login = serde_json::json!({"auth": {
            "identity": {"methods": ["application_credential"], "application_credential": {
                "id": cloud["application_credential_id"], "secret": cloud["application_credential_secret"]}},
        }});
        let answer = send(&recorder, "POST", "/v3/auth/tokens", "", &login.to_string());
        let token = answer.header("x-subject-token").unwrap().to_owned();
        for target in ["/v2/images/a", "/v2/images/b"] {
            assert_eq!(send(&recorder, "GET", target, &token, "").status, 404);
        }
        let mut exchanges = recorder.take();
        let replay = Replay::new(cloud, Arc::new(Login(exchanges.remove(0))));
        replay.expect(&exchanges);
        assert_eq!(send(&replay, "POST", "/v3/auth/tokens", "", "").header("x-subject-token"), Some(token.as_str()));
        assert_eq!(send(&replay, "GET", "/v2/images/a", &token, "").body, exchanges[0].response.body);
        assert_eq!(replay.missing(), 1);
        for (target, token, body) in
            [("/v2/images/c", &*token, ""), ("/v2/images/b", "other", ""), ("/v2/images/b", &token, "body")]
        {
            replay.expect(&exchanges[1..]);
            assert_eq!(send(&replay, "GET", target, token, body).status, 500, "{target} {token} {body}");
        }
        assert_eq!(send(&replay, "GET", "/v2/images/b", &token, "").status, 500, "nothing is expected any more");
    }
}
