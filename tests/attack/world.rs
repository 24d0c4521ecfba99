//! What a call of the corpus finds around it: names, servers behind every
//! address and port of theirs, and a ledger of what arrived.
//!
//! Servers speak TLS to whoever begins with it, with a certificate of the right
//! name unless a case wants another, and plain HTTP to the rest. They stand in
//! the far namespace, and on this machine's own addresses in the near one.

mod certificates;
mod spec;

pub(crate) use spec::Served;

use crate::dns;
use crate::network::NAME_SERVER;
use crate::trace::{By, Contact, Trace};
use certificates::Certificates;
use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tests::servers::{Identity, PATIENCE, Seen};

/// Where somebody listens, near and far.
const PORTS: [u16; 9] = [22, 80, 443, 4222, 5000, 6868, 8443, 8774, 25777];

/// How long somebody who does not listen stays.
const DEAF: Duration = Duration::from_secs(5);

/// A request that reached somebody.
#[derive(Clone)]
pub(crate) struct Arrived {
    /// From the TLS handshake, else from the Host header.
    pub(crate) host: String,
    pub(crate) address: SocketAddr,
    pub(crate) near: bool,
    pub(crate) request: Seen,
}

#[derive(Default)]
struct State {
    served: Served,
    arrived: Vec<Arrived>,
    meanwhile: Option<Meanwhile>,
}

/// What happens when a request has arrived, before it is answered.
pub(crate) type Meanwhile = Arc<dyn Fn(&Arrived) + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    zone: dns::Shared,
    certificates: Arc<Certificates>,
    trace: Option<Trace>,
    /// Contacts that were asked for, or forgotten, in the course of a case.
    told: Arc<Mutex<BTreeSet<Contact>>>,
}

impl World {
    pub(crate) fn with_trace(&self, trace: Trace) -> World {
        World { trace: Some(trace), ..self.clone() }
    }

    /// The authority that a grant of the corpus trusts, PEM.
    pub(crate) fn authority(&self) -> String {
        self.certificates.authority()
    }

    /// Certificate and key of a client that servers with `"tls": "client"` let in.
    pub(crate) fn client(&self) -> Identity {
        self.certificates.client()
    }

    /// Forgets what was, and prepares for the next call.
    pub(crate) fn set(&self, names: HashMap<String, Vec<dns::Reply>>, served: Served) -> Result<(), String> {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).replace(names);
        *self.lock() = State { served, arrived: Vec::new(), meanwhile: None };
        self.contacts().map(drop)
    }

    /// Has something happen at every request of the next call: so that a file
    /// changes in the middle of it, at a known place.
    pub(crate) fn meanwhile(&self, happens: impl Fn(&Arrived) + Send + Sync + 'static) {
        self.lock().meanwhile = Some(Arc::new(happens));
    }

    /// Everybody whom the near namespace spoke to since the last time.
    pub(crate) fn contacts(&self) -> Result<Vec<Contact>, String> {
        let trace = self.trace.as_ref().ok_or("packets are not traced")?;
        let contacts: Vec<Contact> = trace.take()?.into_iter().collect();
        self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(&contacts);
        Ok(contacts)
    }

    /// Everybody whom it spoke to since this was last asked, whoever asked meanwhile.
    pub(crate) fn spoken_to(&self) -> Result<BTreeSet<Contact>, String> {
        self.contacts()?;
        Ok(std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.lock().arrived.clone()
    }

    pub(crate) fn lookups(&self, name: &str) -> usize {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner).lookups(name)
    }

    pub(crate) fn serve_far(&self) -> Result<(), String> {
        dns::serve(NAME_SERVER, &self.zone)?;
        self.serve(false)
    }

    /// On this machine's own addresses, loopback included: nobody may get there.
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
        stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE))).ok()?;
        let local = stream.local_addr().ok()?;
        self.converse(stream, SocketAddr::new(local.ip().to_canonical(), local.port()), near)
    }

    fn converse(&self, mut stream: TcpStream, address: SocketAddr, near: bool) -> Option<()> {
        let mut first = [0];
        if stream.peek(&mut first).ok()? == 1 && first[0] == 0x16 {
            let way = self.lock().served.handshake(&address.ip().to_string());
            let (name, mut stream) =
                self.certificates.accept(stream, address.ip(), &|name| self.lock().served.handshake(name).or(way))?;
            self.exchange(&mut stream, name, address, near)?;
            stream.conn.send_close_notify();
            return stream.flush().ok();
        }
        let arrived = self.exchange(&mut stream, None, address, near)?;
        if self.lock().served.tunnels(&address.ip().to_string()) {
            return self.converse(stream, arrived.request.target().parse().ok()?, near);
        }
        Some(())
    }

    fn exchange(
        &self,
        stream: &mut (impl Read + Write),
        name: Option<String>,
        address: SocketAddr,
        near: bool,
    ) -> Option<Arrived> {
        let early = {
            let state = self.lock();
            let by_name = name.as_deref().and_then(|name| state.served.early(name));
            by_name.or_else(|| state.served.early(&address.ip().to_string()))
        };
        if let Some((text, reads)) = early {
            stream.write_all(&text).and_then(|()| stream.flush()).ok()?;
            if !reads {
                std::thread::sleep(DEAF);
                return None;
            }
        }
        let request = Seen::read(stream)?;
        let host = name.or_else(|| request.header("host").map(str::to_owned)).unwrap_or_default();
        let arrived = Arrived { host, address, near, request };
        let (answer, ends, meanwhile) = {
            let mut state = self.lock();
            state.arrived.push(arrived.clone());
            {
                let (answer, ends) = state.served.answer(&arrived);
                (answer, ends, state.meanwhile.clone())
            }
        };
        if let Some(happens) = meanwhile {
            happens(&arrived);
        }
        answer.write(stream);
        ends.then_some(arrived)
    }
}

impl Arrived {
    /// `GET api.iaas.test/v1/x`, with `near ` before it where nobody may get to.
    pub(crate) fn summary(&self) -> String {
        let near = if self.near { "near " } else { "" };
        format!("{near}{} {}{}", self.request.method(), self.host, self.request.target())
    }
}

/// `dns`, `api:443`, `10.0.0.5:443`, `10.0.0.5:53/udp`, `10.0.0.5/132`.
pub(crate) fn named(contact: &Contact) -> String {
    match (known(contact.to.ip()), contact.by) {
        (Some("dns"), By::Tcp | By::Udp) if contact.to.port() == 53 => "dns".to_owned(),
        (Some(name), By::Tcp) => format!("{name}:{}", contact.to.port()),
        (_, By::Tcp) => contact.to.to_string(),
        (_, By::Udp) => format!("{}/udp", contact.to),
        (_, By::Other(protocol)) => format!("{}/{protocol}", contact.to.ip()),
    }
}

/// An address by the name that the corpus knows it by.
fn known(address: IpAddr) -> Option<&'static str> {
    let names = [("5.6.7.10", "api"), ("5.6.7.66", "evil"), (NAME_SERVER, "dns")];
    names.iter().find(|(known, _)| address.to_string() == *known).map(|(_, name)| *name)
}
