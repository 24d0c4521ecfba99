//! Certificates for whatever name a client asks for, right or wrong.

use rustls::server::Acceptor;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use tests::servers::{Answer, Authority, Identity, Oddity, Validity};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Handshake {
    Expired,
    NotYet,
    OtherName,
    SelfSigned,
    OtherAuthority,
    /// The name is in the subject alone.
    CommonName,
    ForClients,
    ByNoAuthority,
    /// For `*.test`.
    Wildcard,
    /// For the address alone.
    Address,
    /// A server that knows nothing newer than this minor version of SSL 3.
    Old(u8),
    /// Wants a certificate of the client's, too.
    Client,
    /// No TLS at all.
    Garbage,
    /// Warnings without end.
    Alerts,
    /// Handshake messages of no bytes without end.
    Nothings,
    /// Half of a message, and nothing more.
    Stall,
    /// The connection ends.
    Reset,
    /// All is well, and then records that nobody encrypted.
    GarbageLater,
    /// All is well, and then new keys without end.
    KeyUpdates,
    /// HTTP/2, which nobody offered.
    Http2,
}

impl Handshake {
    pub(crate) fn named(word: &str) -> Handshake {
        match word {
            "expired" => Handshake::Expired,
            "not-yet" => Handshake::NotYet,
            "other-name" => Handshake::OtherName,
            "self-signed" => Handshake::SelfSigned,
            "other-authority" => Handshake::OtherAuthority,
            "common-name" => Handshake::CommonName,
            "for-clients" => Handshake::ForClients,
            "by-no-authority" => Handshake::ByNoAuthority,
            "wildcard" => Handshake::Wildcard,
            "address" => Handshake::Address,
            "ssl30" => Handshake::Old(0),
            "tls10" => Handshake::Old(1),
            "tls11" => Handshake::Old(2),
            "client" => Handshake::Client,
            "garbage" => Handshake::Garbage,
            "alerts" => Handshake::Alerts,
            "nothings" => Handshake::Nothings,
            "stall" => Handshake::Stall,
            "reset" => Handshake::Reset,
            "garbage-later" => Handshake::GarbageLater,
            "key-updates" => Handshake::KeyUpdates,
            "http2" => Handshake::Http2,
            other => panic!("`tls: {other}` is no kind of handshake"),
        }
    }

    /// What takes the place of a handshake.
    fn instead(self, stream: &mut TcpStream) -> bool {
        const WARNING: &[u8] = &[0x15, 3, 3, 0, 2, 1, 90];
        const NOTHING: &[u8] = &[0x16, 3, 3, 0, 0];
        match self {
            // A ServerHello of that version, as far as a client reads it.
            Handshake::Old(minor) => {
                let hello = [&[0x16, 3, minor, 0, 42, 2, 0, 0, 38, 3, minor][..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
                let _ = stream.write_all(&hello);
            }
            Handshake::Garbage => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            Handshake::Alerts => Answer::flood("", WARNING.repeat(1000)).write(stream),
            Handshake::Nothings => Answer::flood("", NOTHING.repeat(1000)).write(stream),
            Handshake::Stall => Answer::stall(&[0x16, 3, 3, 0, 42, 2, 0][..]).write(stream),
            Handshake::Reset => {}
            _ => return false,
        }
        true
    }
}

/// Servers by name and kind of handshake.
type Made = HashMap<(String, Option<Handshake>), Arc<ServerConfig>>;

#[derive(Default)]
pub(crate) struct Certificates {
    authority: Authority,
    other: Authority,
    clients: Authority,
    made: Mutex<Made>,
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
        if way.is_some_and(|way| way.instead(&mut stream)) {
            return None;
        }
        let config = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let clients = (way == Some(Handshake::Client)).then_some(&self.clients);
            let make = || {
                let mut server = ServerConfig::clone(&self.identity(&wanted, address, way).server(clients));
                if way == Some(Handshake::Http2) {
                    server.alpn_protocols = vec![b"h2".to_vec()];
                }
                Arc::new(server)
            };
            Arc::clone(made.entry((wanted.clone(), way)).or_insert_with(make))
        };
        let connection = accepted.into_connection(config).ok()?;
        let mut stream = StreamOwned::new(connection, stream);
        if matches!(way, Some(Handshake::GarbageLater | Handshake::KeyUpdates)) {
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock).ok()?;
            }
            if way == Some(Handshake::GarbageLater) {
                stream.sock.write_all(&[0x17, 3, 3, 0, 32, 7].repeat(20)).ok()?;
                // What is left unread would end the connection before it is read there.
                std::io::copy(&mut stream.sock, &mut std::io::sink()).ok()?;
                return None;
            }
            for _ in 0..100 {
                stream.conn.refresh_traffic_keys().ok()?;
                stream.flush().ok()?;
            }
        }
        Some((name, stream))
    }

    fn identity(&self, name: &str, address: IpAddr, way: Option<Handshake>) -> Identity {
        match way {
            Some(Handshake::Expired) => self.authority.issue(&[name], Validity::Expired),
            Some(Handshake::NotYet) => self.authority.issue(&[name], Validity::NotYet),
            Some(Handshake::OtherName) => self.authority.issue(&["other.test"], Validity::Now),
            Some(Handshake::OtherAuthority) => self.other.issue(&[name], Validity::Now),
            Some(Handshake::CommonName) => self.authority.issue_odd(&[name], Oddity::CommonName),
            Some(Handshake::ForClients) => self.authority.issue_odd(&[name], Oddity::ForClients),
            Some(Handshake::ByNoAuthority) => self.authority.issue_odd(&[name], Oddity::ByNoAuthority),
            Some(Handshake::Wildcard) => self.authority.issue(&["*.test"], Validity::Now),
            Some(Handshake::Address) => self.authority.issue(&[&address.to_string()], Validity::Now),
            Some(Handshake::SelfSigned) => Identity::self_signed(&[name]),
            _ => self.authority.issue(&[name], Validity::Now),
        }
    }
}
