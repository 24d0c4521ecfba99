//! Servers on loopback that answer as a test wants, misbehaviour included.
//!
//! Every one records what it was sent, to the last byte, and gives up after
//! `PATIENCE`: a client that hangs fails its own test and holds up no other.

mod answer;
mod request;
mod tls;

pub use answer::Answer;
pub use request::Seen;
pub use tls::{Authority, Identity, Oddity, Validity};

use crate::skip;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For everything that a server waits for.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Serves until this process ends.
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
    /// Ports of those who connected, in their order.
    clients: Vec<u16>,
    /// Ports that this process itself connected from.
    own: Vec<u16>,
    requests: Vec<Seen>,
}

/// A connection, encrypted or not.
pub trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

impl Server {
    /// Answers plain HTTP.
    pub fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Server {
        Server::raw("http", Ipv4Addr::LOCALHOST.into(), move |mut stream, record| {
            serve(&mut stream, record, &answer);
        })
    }

    /// The same answer for everybody.
    pub fn answering(answer: Answer) -> Server {
        Server::start(move |_| answer.clone())
    }

    pub fn tls(config: Arc<ServerConfig>, answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Server {
        Server::raw("https", Ipv4Addr::LOCALHOST.into(), move |stream, record| {
            let Ok(connection) = ServerConnection::new(Arc::clone(&config)) else { return };
            let mut stream = StreamOwned::new(connection, stream);
            serve(&mut stream, record, &answer);
            stream.conn.send_close_notify();
            let _ = stream.flush();
        })
    }

    /// Plain HTTP on the loopback address of IPv6; None where a machine has none.
    /// Its port of IPv4 is nobody's while what is answered lasts: a name has
    /// both addresses, and another test's server would answer there.
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
            let taken = Server::nobody(server.port())?;
            Some((server, taken))
        })
    }

    /// Does what it wants with each connection.
    pub fn connected(scheme: &'static str, handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        Server::raw(scheme, Ipv4Addr::LOCALHOST.into(), move |stream, _| handle(stream))
    }

    fn raw(
        scheme: &'static str,
        address: IpAddr,
        handle: impl Fn(TcpStream, &Record) + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind((address, 0)).unwrap_or_else(|error| panic!("no port: {error}"));
        let server = Server { address: local(&listener), scheme, record: Arc::default() };
        let (record, handle) = (Arc::clone(&server.record), Arc::new(handle));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(client) = stream.peer_addr() else { continue };
                record.lock().clients.push(client.port());
                record.accepted.notify_all();
                let _ = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
                let (record, handle) = (Arc::clone(&record), Arc::clone(&handle));
                std::thread::spawn(move || handle(stream, &record));
            }
        });
        server
    }

    /// An address that takes no connection and refuses none: its queue is full.
    /// Lasts as long as what is answered.
    pub fn full() -> (SocketAddr, impl Sized) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port: {error}"));
        rustix::net::listen(&listener, 0).unwrap_or_else(|error| panic!("no shorter queue: {error}"));
        let address = local(&listener);
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
        let waiting: Vec<TcpStream> = std::iter::from_fn(connect).take(100).collect();
        assert!(waiting.len() < 100, "the queue has no end");
        (address, (listener, waiting))
    }

    /// An address that is taken, by nobody who listens: a port that was only
    /// looked up may be another test's a moment later. Port 0 takes a free one.
    pub fn nobody(port: u16) -> Option<(SocketAddr, impl Sized)> {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
        let taken = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
        bind(&taken, &SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()?;
        let address = SocketAddr::try_from(getsockname(&taken).ok()?).ok()?;
        Some((address, taken))
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://127.0.0.1:…`
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// A grant for all of it, without auth and the like.
    pub fn grant(&self, id: &str) -> Value {
        grant(id, &self.origin())
    }

    pub fn requests(&self) -> Vec<Seen> {
        self.record.lock().requests.clone()
    }

    /// The only request.
    #[track_caller]
    pub fn request(&self) -> Seen {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{:?}", requests.iter().map(|seen| &seen.line).collect::<Vec<_>>());
        requests.remove(0)
    }

    /// How many connected, those included that are still in the queue: this
    /// joins it and waits for its turn.
    pub fn connections(&self) -> usize {
        let own = TcpStream::connect_timeout(&self.address, PATIENCE).and_then(|stream| stream.local_addr());
        let port = own.unwrap_or_else(|error| panic!("{}: {error}", self.address)).port();
        let until = Instant::now() + PATIENCE;
        let mut state = self.record.lock();
        state.own.push(port);
        while !state.clients.contains(&port) {
            assert!(Instant::now() < until, "{} takes no connection", self.address);
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

fn serve(stream: &mut impl Wire, record: &Record, answer: &impl Fn(&Seen) -> Answer) {
    if let Some(seen) = request::read(stream) {
        record.lock().requests.push(seen.clone());
        answer(&seen).write(stream);
    }
}

fn local(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"))
}

/// A grant for all of an origin on this machine.
pub fn grant(id: &str, origin: &str) -> Value {
    json!({
        "id": id, "to": origin, "methods": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
        "paths": ["/**"], "addresses": ["127.0.0.0/8", "::1/128"],
    })
}

/// A JSON object with other keys laid over its own.
pub fn with(mut object: Value, keys: Value) -> Value {
    if let (Value::Object(object), Value::Object(keys)) = (&mut object, keys) {
        object.extend(keys);
    }
    object
}
