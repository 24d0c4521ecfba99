//! Servers on loopback that answer as a test demands, including misbehaviour.
//!
//! Every server records all bytes that it receives and stops waiting after
//! `TIMEOUT`, so that a client that hangs does not block other tests.

mod answer;
mod request;
mod tls;

pub use answer::Answer;
pub use request::ReceivedRequest;
pub use tls::{Authority, Defect, Identity, Validity};

use crate::skip;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The timeout of every read and write of a server.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// A server that runs until this process ends.
#[derive(Clone)]
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    record: Arc<Record>,
}

#[derive(Default)]
struct Record {
    state: Mutex<State>,
    accepted: Condvar,
}

#[derive(Default)]
struct State {
    /// The ports of all clients, in the order of their connections.
    clients: Vec<u16>,
    /// The ports of connections that `connections` made.
    own: Vec<u16>,
    requests: Vec<ReceivedRequest>,
}

/// A connection, encrypted or not.
pub trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

impl Server {
    /// Starts a server for plain HTTP.
    pub fn start(answer: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static) -> Server {
        Server::raw("http", Ipv4Addr::LOCALHOST.into(), move |mut stream, record| {
            serve(&mut stream, record, &answer);
        })
    }

    /// Starts a server for plain HTTP that always sends the same answer.
    pub fn answering(answer: Answer) -> Server {
        Server::start(move |_| answer.clone())
    }

    /// Starts a server for HTTPS.
    pub fn tls(
        config: Arc<ServerConfig>,
        answer: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
    ) -> Server {
        Server::raw("https", Ipv4Addr::LOCALHOST.into(), move |stream, record| {
            let Ok(connection) = ServerConnection::new(Arc::clone(&config)) else { return };
            let mut stream = StreamOwned::new(connection, stream);
            serve(&mut stream, record, &answer);
            stream.conn.send_close_notify();
            let _ = stream.flush();
        })
    }

    /// Starts a server for plain HTTP on the IPv6 loopback address. Returns `None` if
    /// the machine has no IPv6. The same port of IPv4 stays closed while the second
    /// value lives: a host name may have both addresses, and otherwise the server of
    /// another test could answer there.
    pub fn over_ipv6() -> Option<(Server, impl Sized)> {
        if let Err(error) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
            skip("ipv6", &format!("a server on ::1: {error}"));
            return None;
        }
        let start = || {
            Server::raw("http", Ipv6Addr::LOCALHOST.into(), |mut stream, record| {
                serve(&mut stream, record, &|_| Answer::ok(""))
            })
        };
        std::iter::repeat_with(start).take(100).find_map(|server| {
            let reserved = Server::closed_port(server.port())?;
            Some((server, reserved))
        })
    }

    /// Starts a server that passes each connection to `handle`.
    pub fn with_handler(scheme: &'static str, handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        Server::raw(scheme, Ipv4Addr::LOCALHOST.into(), move |stream, _| handle(stream))
    }

    fn raw(
        scheme: &'static str,
        address: IpAddr,
        handle: impl Fn(TcpStream, &Record) + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind((address, 0)).unwrap_or_else(|error| panic!("cannot bind a port: {error}"));
        let server = Server { address: local(&listener), scheme, record: Arc::default() };
        let (record, handle) = (Arc::clone(&server.record), Arc::new(handle));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(client) = stream.peer_addr() else { continue };
                record.lock().clients.push(client.port());
                record.accepted.notify_all();
                let _ = stream.set_read_timeout(Some(TIMEOUT)).and_then(|()| stream.set_write_timeout(Some(TIMEOUT)));
                let (record, handle) = (Arc::clone(&record), Arc::clone(&handle));
                std::thread::spawn(move || handle(stream, &record));
            }
        });
        server
    }

    /// Returns an address that neither accepts nor refuses connections, because its
    /// backlog is full. The address stays so while the second value lives.
    pub fn full_backlog() -> (SocketAddr, impl Sized) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("cannot bind a port: {error}"));
        rustix::net::listen(&listener, 0).unwrap_or_else(|error| panic!("cannot shorten the backlog: {error}"));
        let address = local(&listener);
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
        let waiting: Vec<TcpStream> = std::iter::from_fn(connect).take(100).collect();
        assert!(waiting.len() < 100, "the backlog is not full after 100 connections");
        (address, (listener, waiting))
    }

    /// Binds a port without listening on it, so that connections are refused, and
    /// reserves it while the second value lives: otherwise another test could get the
    /// same port. Port 0 selects a free one.
    pub fn closed_port(port: u16) -> Option<(SocketAddr, impl Sized)> {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
        bind(&bound, &SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()?;
        let address = SocketAddr::try_from(getsockname(&bound).ok()?).ok()?;
        Some((address, bound))
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the origin, such as `http://127.0.0.1:8080`.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// Returns a grant for all paths of this server, without credentials.
    pub fn grant(&self, id: &str) -> Value {
        grant(id, &self.origin())
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.record.lock().requests.clone()
    }

    /// Returns the request of a server that received exactly one.
    #[track_caller]
    pub fn request(&self) -> ReceivedRequest {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{:?}", requests.iter().map(|seen| &seen.line).collect::<Vec<_>>());
        requests.remove(0)
    }

    /// Returns how many clients connected, including those that still wait in the
    /// backlog: this makes a connection of its own and waits until it is accepted.
    pub fn connections(&self) -> usize {
        let own = TcpStream::connect_timeout(&self.address, TIMEOUT).and_then(|stream| stream.local_addr());
        let port = own.unwrap_or_else(|error| panic!("{}: {error}", self.address)).port();
        let until = Instant::now() + TIMEOUT;
        let mut state = self.record.lock();
        state.own.push(port);
        while !state.clients.contains(&port) {
            assert!(Instant::now() < until, "{} accepts no connection", self.address);
            let wait = self.record.accepted.wait_timeout(state, Duration::from_millis(100));
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.clients.iter().filter(|client| !state.own.contains(client)).count()
    }
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: &mut impl Stream, record: &Record, answer: &impl Fn(&ReceivedRequest) -> Answer) {
    while let Some(seen) = request::read(stream) {
        record.lock().requests.push(seen.clone());
        if !answer(&seen).write(stream) {
            return;
        }
    }
}

fn local(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().unwrap_or_else(|error| panic!("cannot read the local address: {error}"))
}

/// Returns a grant for all paths of an origin on this machine.
pub fn grant(id: &str, origin: &str) -> Value {
    json!({
        "id": id, "to": origin, "methods": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
        "paths": ["/**"], "addresses": ["127.0.0.0/8", "::1/128"],
    })
}

/// Adds or replaces keys of a JSON object.
pub fn with(mut object: Value, keys: Value) -> Value {
    if let (Value::Object(object), Value::Object(keys)) = (&mut object, keys) {
        object.extend(keys);
    }
    object
}
