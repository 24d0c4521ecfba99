//! The surroundings of a call: a name server, servers behind every address, and
//! a list of the requests that arrived.
//!
//! A server speaks TLS if the client starts with it, and plain HTTP otherwise.
//! Its certificate has the right name unless a case wants another. Servers run in
//! the far namespace, and on this machine's own addresses in the near one.

mod certificates;
mod echo;
mod spec;

pub(crate) use echo::FORMS as ECHO_FORMS;
pub(crate) use spec::Served;

use crate::dns;
use crate::network::NAME_SERVER;
use crate::trace::{Contact, Trace, Transport};
use certificates::Certificates;
use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tests::servers::{Identity, ReceivedRequest, TIMEOUT};

/// The ports that servers listen on, near and far.
const PORTS: [u16; 9] = [22, 80, 443, 4222, 5000, 6868, 8443, 8774, 25777];

/// How long a server that never reads keeps its connection open.
const UNREAD: Duration = Duration::from_secs(5);
/// How long a server waits before it sends something that no one asked for.
const PAUSE: Duration = Duration::from_millis(100);

/// A request that reached a server.
#[derive(Clone)]
pub(crate) struct ArrivedRequest {
    /// From the TLS handshake, else from the Host header.
    pub(crate) host: String,
    pub(crate) address: SocketAddr,
    pub(crate) near: bool,
    pub(crate) request: ReceivedRequest,
}

#[derive(Default)]
struct State {
    served: Served,
    requests: Vec<ArrivedRequest>,
    /// The number of accepted connections.
    connections: u64,
    on_request: Option<RequestHook>,
}

/// Runs when a request has arrived, before it is answered.
type RequestHook = Arc<dyn Fn(&ArrivedRequest) + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    zone: dns::Shared,
    certificates: Arc<Certificates>,
    trace: Option<Trace>,
    /// Contacts of the current case that `take_contacts` already returned.
    case_contacts: Arc<Mutex<BTreeSet<Contact>>>,
}

impl World {
    pub(crate) fn with_trace(&self, trace: Trace) -> World {
        World { trace: Some(trace), ..self.clone() }
    }

    /// Returns the certificate, as PEM, of the authority that grants of the corpus trust.
    pub(crate) fn authority(&self) -> String {
        self.certificates.authority()
    }

    /// Returns the identity of a client that servers with `"tls": "client"` accept.
    pub(crate) fn client(&self) -> Identity {
        self.certificates.client()
    }

    /// Drops all requests and contacts, and sets what names and servers answer next.
    pub(crate) fn reset(&self, names: HashMap<String, Vec<dns::Reply>>, served: Served) -> Result<(), String> {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).replace(names);
        *self.lock() = State { served, ..State::default() };
        self.take_contacts().map(drop)
    }

    /// Runs `hook` at every request of the next call, for example to change a file
    /// at a known point of the call.
    pub(crate) fn on_request(&self, hook: impl Fn(&ArrivedRequest) + Send + Sync + 'static) {
        self.lock().on_request = Some(Arc::new(hook));
    }

    /// Returns the contacts of the near namespace since it was last called.
    pub(crate) fn take_contacts(&self) -> Result<Vec<Contact>, String> {
        let trace = self.trace.as_ref().ok_or("packets are not traced")?;
        let contacts: Vec<Contact> = trace.take()?.into_iter().collect();
        self.case_contacts.lock().unwrap_or_else(PoisonError::into_inner).extend(&contacts);
        Ok(contacts)
    }

    /// Returns the contacts since it was last called, those included that
    /// `take_contacts` returned meanwhile.
    pub(crate) fn take_case_contacts(&self) -> Result<BTreeSet<Contact>, String> {
        self.take_contacts()?;
        Ok(std::mem::take(&mut self.case_contacts.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Returns the requests that reached a server since the last reset.
    pub(crate) fn requests(&self) -> Vec<ArrivedRequest> {
        self.lock().requests.clone()
    }

    pub(crate) fn connections(&self) -> u64 {
        self.lock().connections
    }

    pub(crate) fn lookups(&self, name: &str) -> usize {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).lookups(name)
    }

    pub(crate) fn serve_far(&self) -> Result<(), String> {
        dns::serve(NAME_SERVER, &self.zone)?;
        self.serve(false)
    }

    /// Serves on this machine's own addresses, loopback included. No request may arrive there.
    pub(crate) fn serve_near(&self) -> Result<(), String> {
        self.serve(true)
    }

    fn serve(&self, near: bool) -> Result<(), String> {
        for port in PORTS {
            let listener =
                TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).map_err(|error| format!("port {port}: {error}"))?;
            let world = self.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let world = world.clone();
                    std::thread::spawn(move || world.accept(stream, near));
                }
            });
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&self, stream: TcpStream, near: bool) -> Option<()> {
        stream.set_read_timeout(Some(TIMEOUT)).and_then(|()| stream.set_write_timeout(Some(TIMEOUT))).ok()?;
        let local = stream.local_addr().ok()?;
        self.lock().connections += 1;
        self.converse(stream, SocketAddr::new(local.ip().to_canonical(), local.port()), near)
    }

    fn converse(&self, mut stream: TcpStream, address: SocketAddr, near: bool) -> Option<()> {
        let mut first = [0];
        if stream.peek(&mut first).ok()? == 1 && first[0] == 0x16 {
            let by_address = self.lock().served.handshake(&address.ip().to_string());
            let (name, mut stream) = self
                .certificates
                .accept(stream, address.ip(), &|name| self.lock().served.handshake(name).or(by_address))?;
            let mut first = true;
            while self.exchange(&mut stream, name.clone(), address, near, first)?.1 {
                first = false;
            }
            stream.conn.send_close_notify();
            return stream.flush().ok();
        }
        let mut first = true;
        loop {
            let (arrived, stays_open) = self.exchange(&mut stream, None, address, near, first)?;
            if self.lock().served.tunnels(&address.ip().to_string()) {
                return self.converse(stream, arrived.request.target().parse().ok()?, near);
            }
            if !stays_open {
                return Some(());
            }
            first = false;
        }
    }

    /// Reads a request and answers it. Returns the request, and whether another one can follow. `None` if
    /// the connection is not to be closed properly.
    fn exchange(
        &self,
        stream: &mut (impl Read + Write),
        name: Option<String>,
        address: SocketAddr,
        near: bool,
        first: bool,
    ) -> Option<(ArrivedRequest, bool)> {
        let early = if first {
            let state = self.lock();
            let by_name = name.as_deref().and_then(|name| state.served.early(name));
            by_name.or_else(|| state.served.early(&address.ip().to_string()))
        } else {
            None
        };
        if let Some((text, reads)) = early {
            stream.write_all(&text).and_then(|()| stream.flush()).ok()?;
            if !reads {
                std::thread::sleep(UNREAD);
                return None;
            }
        }
        let ignores_body = name.as_deref().is_some_and(|name| self.lock().served.ignores_bodies(name));
        let request = match ignores_body {
            true => ReceivedRequest::read_head(stream)?,
            false => ReceivedRequest::read(stream)?,
        };
        let host = name.or_else(|| request.header("host").map(str::to_owned)).unwrap_or_default();
        let arrived = ArrivedRequest { host, address, near, request };
        let (answer, ends, hook) = {
            let mut state = self.lock();
            state.requests.push(arrived.clone());
            let (answer, ends) = state.served.answer(&arrived);
            (answer, ends, state.on_request.clone())
        };
        if let Some(hook) = hook {
            hook(&arrived);
        }
        let closes = arrived.request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let stays_open = answer.write(stream) && !closes;
        let unasked = self.lock().served.unasked(&arrived.host);
        if let Some(unasked) = unasked {
            std::thread::sleep(PAUSE);
            let _ = stream.write_all(&unasked).and_then(|()| stream.flush());
        }
        ends.then_some((arrived, stays_open))
    }
}

impl ArrivedRequest {
    /// Returns `GET api.iaas.test/v1/x`, with `near ` before it if a near server received it.
    pub(crate) fn summary(&self) -> String {
        let near = if self.near { "near " } else { "" };
        format!("{near}{} {}{}", self.request.method(), self.host, self.request.target())
    }
}

/// Returns `dns`, `api:443`, `10.0.0.5:443`, `10.0.0.5:53/udp` or `10.0.0.5/132`.
pub(crate) fn contact_name(contact: &Contact) -> String {
    match (server_name(contact.to.ip()), contact.transport) {
        (Some("dns"), Transport::Tcp | Transport::Udp) if contact.to.port() == 53 => "dns".to_owned(),
        (Some(name), Transport::Tcp) => format!("{name}:{}", contact.to.port()),
        (_, Transport::Tcp) => contact.to.to_string(),
        (_, Transport::Udp) => format!("{}/udp", contact.to),
        (_, Transport::Other(protocol)) => format!("{}/{protocol}", contact.to.ip()),
    }
}

/// Returns the name of an address in the corpus, if it has one.
fn server_name(address: IpAddr) -> Option<&'static str> {
    let names = [("5.6.7.10", "api"), ("5.6.7.66", "evil"), (NAME_SERVER, "dns")];
    names.iter().find(|(known, _)| address.to_string() == *known).map(|(_, name)| *name)
}
