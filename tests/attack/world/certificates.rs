//! Certificates for whatever name a client asks for, right or wrong.

use rustls::server::Acceptor;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use tests::servers::{Authority, Identity, Validity};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Handshake {
    Expired,
    NotYet,
    OtherName,
    SelfSigned,
    OtherAuthority,
    /// Wants a certificate of the client's, too.
    Client,
    /// A server that knows nothing newer.
    Tls10,
    /// No TLS at all.
    Garbage,
    /// The connection ends.
    Reset,
}

#[derive(Default)]
pub(crate) struct Certificates {
    authority: Authority,
    other: Authority,
    clients: Authority,
    made: Mutex<HashMap<(String, Option<Handshake>), Arc<ServerConfig>>>,
}

impl Certificates {
    pub(crate) fn authority(&self) -> String {
        self.authority.pem()
    }

    /// What a client shows to a server that wants to know.
    pub(crate) fn client(&self) -> Identity {
        self.clients.issue(&["client.test"], Validity::Now)
    }

    /// The name that the client asked for, and the encrypted connection; None if
    /// it came to nothing.
    pub(crate) fn accept(
        &self,
        mut stream: TcpStream,
        address: IpAddr,
        way: &dyn Fn(&str) -> Option<Handshake>,
    ) -> Option<(Option<String>, StreamOwned<ServerConnection, TcpStream>)> {
        let mut acceptor = Acceptor::default();
        let accepted = loop {
            acceptor.read_tls(&mut stream).ok().filter(|read| *read > 0)?;
            match acceptor.accept() {
                Ok(Some(accepted)) => break accepted,
                Ok(None) => {}
                Err(_) => return None,
            }
        };
        let name = accepted.client_hello().server_name().map(str::to_owned);
        let wanted = name.clone().unwrap_or_else(|| address.to_string());
        let way = way(&wanted);
        match way {
            // A ServerHello of version 3.1, as far as a client reads it.
            Some(Handshake::Tls10) => {
                let hello = [&[0x16, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1][..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
                stream.write_all(&hello).ok()?;
                return None;
            }
            Some(Handshake::Garbage) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").ok()?;
                return None;
            }
            Some(Handshake::Reset) => return None,
            _ => {}
        }
        let config = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let clients = (way == Some(Handshake::Client)).then_some(&self.clients);
            let make = || self.identity(&wanted, way).server(clients);
            Arc::clone(made.entry((wanted.clone(), way)).or_insert_with(make))
        };
        let connection = accepted.into_connection(config).ok()?;
        Some((name, StreamOwned::new(connection, stream)))
    }

    fn identity(&self, name: &str, way: Option<Handshake>) -> Identity {
        match way {
            Some(Handshake::Expired) => self.authority.issue(&[name], Validity::Expired),
            Some(Handshake::NotYet) => self.authority.issue(&[name], Validity::NotYet),
            Some(Handshake::OtherName) => self.authority.issue(&["other.test"], Validity::Now),
            Some(Handshake::OtherAuthority) => self.other.issue(&[name], Validity::Now),
            Some(Handshake::SelfSigned) => Identity::self_signed(&[name]),
            _ => self.authority.issue(&[name], Validity::Now),
        }
    }
}
