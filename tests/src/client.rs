//! An HTTP client as small as it can be: one request, byte for byte as a test
//! wants it, and the answer.

use crate::servers::PATIENCE;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

pub struct Answered {
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    pub body: String,
}

impl Answered {
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Sends the bytes and reads to the end of the connection; with TLS if an
/// authority is given.
pub fn exchange(address: SocketAddr, authority: Option<&str>, request: &[u8]) -> Result<Answered, Box<dyn Error>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut answer = Vec::new();
    match authority {
        None => {
            stream.write_all(request)?;
            stream.read_to_end(&mut answer)?;
        }
        Some(authority) => {
            let name = ServerName::IpAddress(address.ip().into());
            let mut stream = StreamOwned::new(ClientConnection::new(trusting(authority)?, name)?, stream);
            stream.write_all(request)?;
            stream.read_to_end(&mut answer)?;
        }
    }
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP")?;
    let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    Ok(Answered { status, head: head.to_owned(), body: body.to_owned() })
}

pub(crate) fn trusting(authority: &str) -> Result<Arc<ClientConfig>, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
