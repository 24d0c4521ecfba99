//! The front of a cloud on loopback: one port per service, plain or with TLS.
//!
//! It hands every request to the backend and every answer back, with its own
//! origins for the backend's, so that clients stay on this side. It remembers
//! what passed, of bodies other than JSON only length and digest, and it does
//! to requests what the injected faults say.

use super::faults::{Fault, Hits, Planned, Rule};
use super::message::{Request, Response};
use super::recording::{Counted, Recorded};
use super::rewrite::rewritten;
use super::service::{Backend, Service};
use super::wire::{self, Body};
use crate::servers::{Authority, Validity};
use rustix::net::sockopt::set_socket_linger;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For a client that says nothing, and for one that is kept waiting on purpose.
const PATIENCE: Duration = Duration::from_secs(300);
/// A body that nobody wanted is read to its end, up to here.
const SKIPPED: u64 = 64 << 20;

/// Serves until this process ends; clones are the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

struct Shared {
    backend: Box<dyn Backend>,
    /// The backend's origins and our own.
    origins: Vec<(String, String)>,
    cloud: Value,
    faults: Mutex<Vec<Planned>>,
    records: Mutex<Vec<Recorded>>,
}

impl Gateway {
    /// In front of a cloud, with plain HTTP.
    pub fn start(backend: impl Backend + 'static) -> Gateway {
        Gateway::serve(Box::new(backend), None)
    }

    /// With TLS, by an authority of its own: its certificate is `ca` in `cloud`.
    pub fn secure(backend: impl Backend + 'static) -> Gateway {
        let authority = Authority::new();
        Gateway::serve(Box::new(backend), Some(&authority))
    }

    fn serve(backend: Box<dyn Backend>, authority: Option<&Authority>) -> Gateway {
        let own = backend.cloud();
        let scheme = if authority.is_some() { "https" } else { "http" };
        let (mut origins, mut listeners) = (Vec::new(), Vec::new());
        for service in Service::ALL {
            let Some(origin) = service.origin(&own) else { continue };
            let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port: {error}"));
            let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
            origins.push((origin, format!("{scheme}://{address}")));
            listeners.push((service, listener));
        }
        let mut cloud: Value = serde_json::from_str(&rewritten(&own.to_string(), &origins)).unwrap_or_default();
        let config = authority.map(|authority| {
            cloud["ca"] = json!(authority.pem());
            authority.issue(&["127.0.0.1", "localhost"], Validity::Now).server(None)
        });
        let (faults, records) = (Mutex::default(), Mutex::default());
        let gateway = Gateway(Arc::new(Shared { backend, origins, cloud, faults, records }));
        for (service, listener) in listeners {
            let (shared, config) = (Arc::clone(&gateway.0), config.clone());
            std::thread::spawn(move || shared.listen(service, &listener, config.as_ref()));
        }
        gateway
    }

    /// What the cloud says of itself, under this gateway's origins.
    pub fn cloud(&self) -> Value {
        self.0.cloud.clone()
    }

    /// From now on this goes wrong; of several faults that are meant, the first does.
    pub fn inject(&self, rule: Rule, fault: Fault) -> Hits {
        let (planned, hits) = Planned::new(rule, fault);
        lock(&self.0.faults).push(planned);
        hits
    }

    /// Nothing goes wrong any more.
    pub fn clear_faults(&self) {
        lock(&self.0.faults).clear();
    }

    /// All that was asked since the start or the last `forget`, in the order of the answers.
    pub fn records(&self) -> Vec<Recorded> {
        lock(&self.0.records).clone()
    }

    pub fn forget(&self) {
        lock(&self.0.records).clear();
    }
}

impl Shared {
    fn listen(self: &Arc<Self>, service: Service, listener: &TcpListener, config: Option<&Arc<ServerConfig>>) {
        for stream in listener.incoming().flatten() {
            let (shared, config) = (Arc::clone(self), config.cloned());
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(PATIENCE));
                let _ = stream.set_write_timeout(Some(PATIENCE));
                let _ = stream.set_nodelay(true);
                let Ok(raw) = stream.try_clone() else { return };
                match config {
                    None => shared.converse(service, &raw, stream),
                    Some(config) => {
                        let Ok(connection) = ServerConnection::new(config) else { return };
                        shared.converse(service, &raw, StreamOwned::new(connection, stream));
                    }
                }
            });
        }
    }

    /// Request after request, until either side has enough.
    fn converse(&self, service: Service, raw: &TcpStream, stream: impl Read + Write) {
        let mut stream = BufReader::new(stream);
        while let Some(request) = wire::read_request(&mut stream) {
            if request.header("expect").is_some()
                && stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err()
            {
                return;
            }
            let struck = lock(&self.faults).iter().find_map(|planned| planned.strike(service, &request));
            let framing = wire::framing_of(&request);
            let mut body = Counted::new(Body::new(&mut stream, framing), &request);
            struck.iter().for_each(|struck| struck.count(false));
            let answer = self.answer(service, &request, &mut body, struck.as_ref().map(|struck| &struck.fault));
            struck.iter().for_each(|struck| struck.count(true));
            let skipped = io::copy(&mut Read::take(&mut body, SKIPPED), &mut io::sink());
            let whole = skipped.is_ok() && body.inner().is_done();
            let status = answer.as_ref().ok().map(|answer| answer.status);
            lock(&self.records).push(body.recorded(service, &request, status, struck.is_some()));
            let keep = whole && !request.header("connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
            match (struck.map(|struck| struck.fault), answer) {
                (Some(Fault::StallBefore | Fault::StallAfter), _) => return stall(raw),
                (Some(Fault::ResetBefore | Fault::ResetAfter), _) | (_, Err(_)) => {
                    let _ = set_socket_linger(raw, Some(Duration::ZERO));
                    return;
                }
                (_, Ok(answer)) => {
                    if wire::write_response(stream.get_mut(), &answer, keep).is_err() || !keep {
                        return;
                    }
                }
            }
        }
    }

    /// The answer that there is to give, if any.
    fn answer(
        &self,
        service: Service,
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
            // A client that breaks off has nobody to blame.
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
            *value = rewritten(value, &self.origins);
        }
        if let Ok(text) = std::str::from_utf8(&answer.body)
            && service != Service::Metadata
        {
            answer.body = rewritten(text, &self.origins).into_bytes();
        }
        Ok(answer)
    }
}

/// Says nothing until the client goes.
fn stall(mut raw: &TcpStream) {
    let until = Instant::now() + PATIENCE;
    let mut ignored = [0; 1024];
    while Instant::now() < until && raw.read(&mut ignored).is_ok_and(|count| count > 0) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
