//! Resumption of TLS sessions: a session is resumed for the same key and address, and for no other, because a resumed
//! handshake skips the check of the server's certificate.

use super::fixture::Fixture;
use super::handshakes::Authority;
use super::server::{read_request, response};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Servers that share the sessions of one configuration, so that each of them would resume a session of another.
struct Servers {
    config: Arc<ServerConfig>,
    /// The handshakes of all servers, in the order of the requests.
    seen: Arc<Mutex<Vec<HandshakeKind>>>,
}

impl Servers {
    fn new(authority: &Authority) -> Servers {
        Servers { config: authority.server("api.test"), seen: Arc::default() }
    }

    /// Starts a server at all addresses of loopback, which closes each connection after one response. Returns its port.
    fn start(&self) -> u16 {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (config, seen) = (Arc::clone(&self.config), Arc::clone(&self.seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                if read_request(&mut stream).is_none() {
                    continue;
                }
                seen.lock().unwrap().push(stream.conn.handshake_kind().unwrap());
                let _ = stream.write_all(&response("200 OK", "", "hello"));
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        port
    }

    fn last(&self) -> HandshakeKind {
        *self.seen.lock().unwrap().last().unwrap()
    }
}

#[test]
fn a_session_is_resumed_only_for_the_same_key_and_address() {
    let authority = Authority::new();
    let servers = Servers::new(&authority);
    let (port, other_port) = (servers.start(), servers.start());
    let (api, other_api) = (format!("https://api.test:{port}"), format!("https://api.test:{other_port}"));
    let grant = |id: &str, to: &str, more: Value| {
        let mut grant = json!({"id": id, "to": to, "methods": ["GET"], "paths": [format!("/{id}")],
            "addresses": ["127.0.0.1/32"], "tls": {"ca": authority.pem()}});
        more.as_object().unwrap().iter().for_each(|(key, value)| grant[key] = value.clone());
        grant
    };
    let running = Fixture {
        properties: json!({"one": "secret-1", "two": "secret-2"}),
        hosts: "127.0.0.1 api.test\n127.0.0.2 api.test\n".into(),
        ..Fixture::new(json!([
            grant("plain", &api, json!({})),
            grant("same", &api, json!({})),
            grant("one", &api, json!({"auth": {"bearer": "${one}"}})),
            grant("two", &api, json!({"auth": {"bearer": "${two}"}})),
            grant("port", &other_api, json!({})),
            grant("address", &api, json!({"addresses": ["127.0.0.2/32"]})),
        ]))
    }
    .start();
    for (path, to, expected) in [
        ("plain", &api, HandshakeKind::Full),
        ("plain", &api, HandshakeKind::Resumed),
        // Another grant, with which all checks of the connection are the same.
        ("same", &api, HandshakeKind::Resumed),
        ("one", &api, HandshakeKind::Full),
        ("two", &api, HandshakeKind::Full),
        ("one", &api, HandshakeKind::Resumed),
        ("two", &api, HandshakeKind::Resumed),
        ("port", &other_api, HandshakeKind::Full),
        ("port", &other_api, HandshakeKind::Resumed),
        ("address", &api, HandshakeKind::Full),
        ("address", &api, HandshakeKind::Resumed),
        ("plain", &api, HandshakeKind::Resumed),
    ] {
        running.get(format!("{to}/{path}")).unwrap();
        assert_eq!(servers.last(), expected, "{path}");
    }
}
