//! A minimal HTTP client: sends one request byte for byte and returns the response.

use crate::servers::TIMEOUT;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

pub struct HttpResponse {
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    pub body: String,
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Sends the bytes and reads until the server closes the connection. Uses TLS if a
/// certificate authority is given.
pub fn exchange(address: SocketAddr, authority: Option<&str>, request: &[u8]) -> Result<HttpResponse, Box<dyn Error>> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut answer = Vec::new();
    match authority {
        None => {
            stream.write_all(request)?;
            stream.read_to_end(&mut answer)?;
        }
        Some(authority) => {
            let name = ServerName::IpAddress(address.ip().into());
            let mut stream = StreamOwned::new(ClientConnection::new(tls_config(authority)?, name)?, stream);
            stream.write_all(request)?;
            stream.read_to_end(&mut answer)?;
        }
    }
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the response is not HTTP")?;
    let status = head.split(' ').nth(1).ok_or("the response has no status")?.parse()?;
    Ok(HttpResponse { status, head: head.to_owned(), body: body.to_owned() })
}

/// Returns a configuration that trusts only this certificate authority.
pub(crate) fn tls_config(authority: &str) -> Result<Arc<ClientConfig>, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
