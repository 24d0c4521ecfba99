//! A gateway in front of a cloud, on loopback: one port per service, with or without
//! TLS.
//!
//! It passes every request to the backend and every answer back. In answers it
//! replaces the backend's origins by its own, so that clients send all requests to
//! the gateway. It records the requests (of bodies other than JSON and forms only
//! length and digest) and applies the injected faults.

mod faults;
mod message;
mod origins;
mod records;
mod sender;
mod service;
pub(crate) mod wire;

pub use faults::{Fault, Hits, Rule, Step, Steps};
pub use message::{Request, Response};
pub use records::RecordedRequest;
pub use service::{Backend, Services};

pub(crate) use message::{Answer, percent_decode};
pub(crate) use sender::send;

use crate::servers::{Authority, Validity};
use faults::PlannedFault;
use origins::rewrite_origins;
use records::RecordingBody;
use rustix::net::sockopt::set_socket_linger;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wire::Body;

/// The timeout for idle clients, and the duration of injected stalls.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Any free port on loopback.
pub const FREE_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The maximum length of an unread body that is discarded to keep the connection.
const MAX_DISCARDED: u64 = 64 << 20;

/// A gateway that serves until this process ends. Clones are the same gateway.
pub struct Gateway<S>(Arc<Shared<S>>);

struct Shared<S> {
    backend: Box<dyn Backend<Service = S>>,
    /// Pairs of the backend's and the gateway's origins.
    origins: Vec<(String, String)>,
    cloud: Value,
    faults: Mutex<Vec<PlannedFault<S>>>,
    records: Mutex<Vec<RecordedRequest<S>>>,
    /// The number of requests that arrived and are not answered yet.
    unanswered: AtomicUsize,
}

impl<S> Clone for Gateway<S> {
    fn clone(&self) -> Self {
        Gateway(Arc::clone(&self.0))
    }
}

impl<S: Services> Gateway<S> {
    /// Starts a gateway with plain HTTP.
    pub fn start(backend: impl Backend<Service = S> + 'static) -> Gateway<S> {
        Gateway::serve(Box::new(backend), None, |_| FREE_PORT, |address| address)
    }

    /// Starts a gateway with TLS and its own certificate authority, whose certificate
    /// is `ca` in `cloud`.
    pub fn secure(backend: impl Backend<Service = S> + 'static) -> Gateway<S> {
        Gateway::secure_behind(backend, |address| address)
    }

    /// Starts a gateway with TLS behind proxies. `front` receives the address of each port and
    /// returns the one at which clients reach it.
    pub fn secure_behind(
        backend: impl Backend<Service = S> + 'static,
        front: impl FnMut(SocketAddr) -> SocketAddr,
    ) -> Gateway<S> {
        Gateway::serve(Box::new(backend), Some(&Authority::new()), |_| FREE_PORT, front)
    }

    /// Starts a gateway with TLS that listens at this address for each service.
    pub fn secure_at(backend: impl Backend<Service = S> + 'static, place: impl Fn(S) -> SocketAddr) -> Gateway<S> {
        Gateway::serve(Box::new(backend), Some(&Authority::new()), place, |address| address)
    }

    fn serve(
        backend: Box<dyn Backend<Service = S>>,
        authority: Option<&Authority>,
        place: impl Fn(S) -> SocketAddr,
        mut front: impl FnMut(SocketAddr) -> SocketAddr,
    ) -> Gateway<S> {
        let own = backend.cloud();
        let (mut origins, mut listeners) = (Vec::new(), Vec::new());
        for &service in S::ALL {
            let Some(origin) = service.origin(&own) else { continue };
            let place = place(service);
            let listener = TcpListener::bind(place).unwrap_or_else(|error| panic!("cannot bind {place}: {error}"));
            let address =
                listener.local_addr().unwrap_or_else(|error| panic!("cannot read the local address: {error}"));
            let scheme = if authority.is_some() && !service.is_plain() { "https" } else { "http" };
            origins.push((origin, format!("{scheme}://{}", front(address))));
            listeners.push((service, listener));
        }
        let mut cloud: Value = serde_json::from_str(&rewrite_origins(&own.to_string(), &origins)).unwrap_or_default();
        let config = authority.map(|authority| {
            cloud["ca"] = json!(authority.pem());
            authority.issue(&[&["127.0.0.1", "localhost"], S::HOST_NAMES].concat(), Validity::Now).server(None)
        });
        let (faults, records, unanswered) = (Mutex::default(), Mutex::default(), AtomicUsize::default());
        let gateway = Gateway(Arc::new(Shared { backend, origins, cloud, faults, records, unanswered }));
        for (service, listener) in listeners {
            let (shared, config) = (Arc::clone(&gateway.0), config.clone().filter(|_| !service.is_plain()));
            std::thread::spawn(move || shared.listen(service, &listener, config.as_ref()));
        }
        gateway
    }

    /// Returns the description of the cloud with this gateway's origins.
    pub fn cloud(&self) -> Value {
        self.0.cloud.clone()
    }

    /// Injects a fault from now on. If several faults match a request, the first
    /// applies.
    pub fn inject(&self, rule: Rule<S>, fault: Fault) -> Hits {
        let (planned, hits) = PlannedFault::new(rule, fault);
        lock(&self.0.faults).push(planned);
        hits
    }

    /// Removes all injected faults.
    pub fn clear_faults(&self) {
        lock(&self.0.faults).clear();
    }

    /// Returns the requests since the start or the last `clear_records`, in the order of
    /// their answers.
    pub fn records(&self) -> Vec<RecordedRequest<S>> {
        lock(&self.0.records).clone()
    }

    /// Returns the number of requests that the services have not answered yet.
    pub fn unanswered(&self) -> usize {
        self.0.unanswered.load(Ordering::SeqCst)
    }

    pub fn clear_records(&self) {
        lock(&self.0.records).clear();
    }
}

impl<S: Services> Shared<S> {
    fn listen(self: &Arc<Self>, service: S, listener: &TcpListener, config: Option<&Arc<ServerConfig>>) {
        for stream in listener.incoming().flatten() {
            let (shared, config) = (Arc::clone(self), config.cloned());
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(TIMEOUT));
                let _ = stream.set_write_timeout(Some(TIMEOUT));
                let _ = stream.set_nodelay(true);
                let Ok(raw) = stream.try_clone() else { return };
                match config {
                    None => shared.serve_connection(service, &raw, stream),
                    Some(config) => {
                        let Ok(connection) = ServerConnection::new(config) else { return };
                        shared.serve_connection(service, &raw, StreamOwned::new(connection, stream));
                    }
                }
            });
        }
    }

    /// Handles the requests of a connection until either side closes it.
    fn serve_connection(&self, service: S, raw: &TcpStream, stream: impl Read + Write) {
        let mut stream = BufReader::new(stream);
        while let Some(request) = wire::read_request(&mut stream) {
            if request.header("expect").is_some()
                && stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err()
            {
                return;
            }
            let framing = wire::framing_of(&request);
            let mut body = RecordingBody::new(Body::new(&mut stream, framing), &request);
            let form = body.read_form();
            let operation = service.operation(&request, form);
            let named = operation.as_deref().map(|operation| (operation, form));
            let active = lock(&self.faults).iter().find_map(|planned| planned.activate(service, &request, named));
            active.iter().for_each(|active| active.count_before());
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            let answer = self.answer(service, &request, &mut body, active.as_ref().map(|active| &active.fault));
            active.iter().for_each(|active| active.count_after());
            let skipped = io::copy(&mut Read::take(&mut body, MAX_DISCARDED), &mut io::sink());
            let whole = skipped.is_ok() && body.inner().is_done();
            let status = answer.as_ref().ok().map(|answer| answer.status);
            self.unanswered.fetch_sub(1, Ordering::SeqCst);
            lock(&self.records).push(body.into_record(service, &request, operation, status, active.is_some()));
            let keep_alive =
                whole && !request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            match (active.map(|active| active.fault), answer) {
                (Some(Fault::StallBefore | Fault::StallAfter), _) => return stall(raw),
                (Some(Fault::ResetBefore | Fault::ResetAfter), _) | (_, Err(_)) => {
                    let _ = set_socket_linger(raw, Some(Duration::ZERO));
                    return;
                }
                (_, Ok(answer)) => {
                    if wire::write_response(stream.get_mut(), &answer, keep_alive).is_err() || !keep_alive {
                        return;
                    }
                }
            }
        }
    }

    /// Returns the answer to a request, or an error if the client gets none.
    fn answer(
        &self,
        service: S,
        request: &Request,
        body: &mut dyn Read,
        fault: Option<&Fault>,
    ) -> io::Result<Response> {
        match fault {
            Some(Fault::Answer(answer)) => return Ok(answer.clone()),
            Some(Fault::ResetBefore | Fault::StallBefore) => return Err(io::ErrorKind::ConnectionReset.into()),
            Some(Fault::Delay(time)) => std::thread::sleep(*time),
            Some(Fault::ResetAfter | Fault::StallAfter | Fault::Body(_)) | None => {}
        }
        let mut answer = match self.backend.answer(service, request, body) {
            // If the client disconnects, the service is not at fault.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                let body = format!("the gateway cannot reach the service: {error}\n").into_bytes();
                Response { body, ..Response::new(502) }.with("Content-Type", "text/plain")
            }
            answer => answer?,
        };
        if let Some(Fault::Body(body)) = fault {
            answer.body.clone_from(body);
        }
        for (_, value) in &mut answer.headers {
            *value = rewrite_origins(value, &self.origins);
        }
        if let Ok(text) = std::str::from_utf8(&answer.body)
            && service.has_urls()
        {
            answer.body = rewrite_origins(text, &self.origins).into_bytes();
        }
        Ok(answer)
    }
}

/// Sends nothing until the client disconnects.
fn stall(mut raw: &TcpStream) {
    let until = Instant::now() + TIMEOUT;
    let mut ignored = [0; 1024];
    while Instant::now() < until && raw.read(&mut ignored).is_ok_and(|count| count > 0) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
