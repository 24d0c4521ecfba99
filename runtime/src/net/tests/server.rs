//! Servers for tests, with one thread and one request per connection. The test decides
//! how the server responds.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The request line and the headers, as they were received.
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &'_ str| line.split_once(": ").is_some_and(|(found, _)| found.eq_ignore_ascii_case(name));
        self.head.lines().find(|line| named(line)).map(|line| line.split_once(": ").unwrap().1)
    }
}

pub(super) struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(super) fn plain(handler: impl Fn(&Seen, &mut dyn Wire) + Send + Sync + 'static) -> Server {
        Server::raw(move |stream, requests| {
            let mut stream = stream;
            if let Some(seen) = read_request(&mut stream) {
                requests.lock().unwrap().push(seen.clone());
                handler(&seen, &mut stream);
            }
        })
    }

    pub(super) fn tls(
        config: Arc<ServerConfig>,
        handler: impl Fn(&Seen, &mut dyn Wire) + Send + Sync + 'static,
    ) -> Server {
        Server::raw(move |stream, requests| {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            if let Some(seen) = read_request(&mut stream) {
                requests.lock().unwrap().push(seen.clone());
                handler(&seen, &mut stream);
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        })
    }

    /// Starts a server that sends this response to every request.
    pub(super) fn answering(response: impl Into<Vec<u8>>) -> Server {
        let response = response.into();
        Server::plain(move |_, wire| {
            let _ = wire.write_all(&response);
        })
    }

    pub(super) fn raw(handler: impl Fn(TcpStream, &Mutex<Vec<Seen>>) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (count, seen, handler) = (connections.clone(), requests.clone(), Arc::new(handler));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let (handler, seen) = (handler.clone(), seen.clone());
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                std::thread::spawn(move || handler(stream, &seen));
            }
        });
        Server { address, connections, requests }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<Seen> {
        self.requests.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Returns a complete response with its length, after which the server closes the connection.
pub(super) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    kept_response(status, &format!("{headers}Connection: close\r\n"), body)
}

/// Returns a complete response with its length.
pub(super) fn kept_response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(super) fn read_request(stream: &mut impl Read) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let mut seen = Seen { head: String::from_utf8(bytes).unwrap(), body: Vec::new() };
    let length = seen.header("content-length").map_or(0, |value| value.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    seen.body = body;
    Some(seen)
}
