//! Certificates for any name that a client asks for, valid and invalid ones.

use rustls::server::Acceptor;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use tests::servers::{Answer, Authority, Defect, Identity, Validity};

/// A handshake that differs from the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Handshake {
    Expired,
    NotYet,
    OtherName,
    SelfSigned,
    OtherAuthority,
    /// The name is only in the subject.
    CommonName,
    ForClients,
    /// Issued with a certificate that is not an authority's.
    LeafIssuer,
    /// The certificate is for `*.test`.
    Wildcard,
    /// The certificate is only for the address.
    Address,
    /// The server supports nothing newer than this minor version of SSL 3.
    Old(u8),
    /// The server also demands a certificate of the client.
    Client,
    /// The server answers without TLS.
    Garbage,
    /// The server sends warnings without end.
    Alerts,
    /// The server sends empty handshake messages without end.
    EmptyMessages,
    /// The server sends half of a message, and nothing more.
    Stall,
    /// The server closes the connection.
    Reset,
    /// After a good handshake, the server sends unencrypted records.
    UnencryptedRecords,
    /// After a good handshake, the server updates its keys many times.
    KeyUpdates,
    /// The server selects HTTP/2, which the client did not offer.
    Http2,
}

impl Handshake {
    /// Returns the handshake that a row names by this keyword.
    pub(crate) fn from_keyword(keyword: &str) -> Handshake {
        match keyword {
            "expired" => Handshake::Expired,
            "not-yet" => Handshake::NotYet,
            "other-name" => Handshake::OtherName,
            "self-signed" => Handshake::SelfSigned,
            "other-authority" => Handshake::OtherAuthority,
            "common-name" => Handshake::CommonName,
            "for-clients" => Handshake::ForClients,
            "leaf-issuer" => Handshake::LeafIssuer,
            "wildcard" => Handshake::Wildcard,
            "address" => Handshake::Address,
            "ssl30" => Handshake::Old(0),
            "tls10" => Handshake::Old(1),
            "tls11" => Handshake::Old(2),
            "client" => Handshake::Client,
            "garbage" => Handshake::Garbage,
            "alerts" => Handshake::Alerts,
            "empty-messages" => Handshake::EmptyMessages,
            "stall" => Handshake::Stall,
            "reset" => Handshake::Reset,
            "unencrypted-records" => Handshake::UnencryptedRecords,
            "key-updates" => Handshake::KeyUpdates,
            "http2" => Handshake::Http2,
            other => panic!("`tls: {other}` is not a known handshake"),
        }
    }

    /// Sends what replaces the handshake. Returns false if the handshake takes place.
    fn replace_handshake(self, stream: &mut TcpStream) -> bool {
        const WARNING: &[u8] = &[0x15, 3, 3, 0, 2, 1, 90];
        const EMPTY_MESSAGE: &[u8] = &[0x16, 3, 3, 0, 0];
        match self {
            // A ServerHello of that version, as far as a client reads it.
            Handshake::Old(minor) => {
                let hello = [&[0x16, 3, minor, 0, 42, 2, 0, 0, 38, 3, minor][..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
                let _ = stream.write_all(&hello);
            }
            Handshake::Garbage => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            Handshake::Alerts => drop(Answer::flood("", WARNING.repeat(1000)).write(stream)),
            Handshake::EmptyMessages => drop(Answer::flood("", EMPTY_MESSAGE.repeat(1000)).write(stream)),
            Handshake::Stall => drop(Answer::stall(&[0x16, 3, 3, 0, 42, 2, 0][..]).write(stream)),
            Handshake::Reset => {}
            _ => return false,
        }
        true
    }
}

/// The configurations of servers, by name and kind of handshake.
type Configs = HashMap<(String, Option<Handshake>), Arc<ServerConfig>>;

#[derive(Default)]
pub(crate) struct Certificates {
    authority: Authority,
    other: Authority,
    clients: Authority,
    configs: Mutex<Configs>,
}

impl Certificates {
    pub(crate) fn authority(&self) -> String {
        self.authority.pem()
    }

    /// Returns a new identity for a client, which servers that demand one accept.
    pub(crate) fn client(&self) -> Identity {
        self.clients.issue(&["client.test"], Validity::Now)
    }

    /// Accepts a connection. Returns the name that the client asked for and the
    /// encrypted connection, or None if the handshake does not succeed.
    pub(crate) fn accept(
        &self,
        mut stream: TcpStream,
        address: IpAddr,
        handshake: &dyn Fn(&str) -> Option<Handshake>,
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
        let handshake = handshake(&wanted);
        if handshake.is_some_and(|handshake| handshake.replace_handshake(&mut stream)) {
            return None;
        }
        let config = {
            let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
            let clients = (handshake == Some(Handshake::Client)).then_some(&self.clients);
            let make = || {
                let mut server = ServerConfig::clone(&self.identity(&wanted, address, handshake).server(clients));
                if handshake == Some(Handshake::Http2) {
                    server.alpn_protocols = vec![b"h2".to_vec()];
                }
                Arc::new(server)
            };
            Arc::clone(configs.entry((wanted.clone(), handshake)).or_insert_with(make))
        };
        let connection = accepted.into_connection(config).ok()?;
        let mut stream = StreamOwned::new(connection, stream);
        if matches!(handshake, Some(Handshake::UnencryptedRecords | Handshake::KeyUpdates)) {
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock).ok()?;
            }
            if handshake == Some(Handshake::UnencryptedRecords) {
                stream.sock.write_all(&[0x17, 3, 3, 0, 32, 7].repeat(20)).ok()?;
                // Unread bytes would reset the connection before the client reads the garbage.
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

    fn identity(&self, name: &str, address: IpAddr, handshake: Option<Handshake>) -> Identity {
        match handshake {
            Some(Handshake::Expired) => self.authority.issue(&[name], Validity::Expired),
            Some(Handshake::NotYet) => self.authority.issue(&[name], Validity::NotYet),
            Some(Handshake::OtherName) => self.authority.issue(&["other.test"], Validity::Now),
            Some(Handshake::OtherAuthority) => self.other.issue(&[name], Validity::Now),
            Some(Handshake::CommonName) => self.authority.issue_defective(&[name], Defect::CommonName),
            Some(Handshake::ForClients) => self.authority.issue_defective(&[name], Defect::ForClients),
            Some(Handshake::LeafIssuer) => self.authority.issue_defective(&[name], Defect::SignedByNonAuthority),
            Some(Handshake::Wildcard) => self.authority.issue(&["*.test"], Validity::Now),
            Some(Handshake::Address) => self.authority.issue(&[&address.to_string()], Validity::Now),
            Some(Handshake::SelfSigned) => Identity::self_signed(&[name]),
            _ => self.authority.issue(&[name], Validity::Now),
        }
    }
}
