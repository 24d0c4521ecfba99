//! Sends one request to a service, for clients in tests.

use super::message::{Request, Response};
use super::wire;
use crate::client;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::error::Error;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Sends a request to an origin such as `https://127.0.0.1:8774`, and returns the response.
/// With TLS, only `authority` is trusted.
pub(crate) fn send(
    origin: &str,
    authority: Option<&str>,
    request: &Request,
    body: &[u8],
    timeout: Duration,
) -> Result<Response, Box<dyn Error>> {
    let (scheme, host) = origin.split_once("://").ok_or("the origin is not a URL")?;
    let address: SocketAddr = host.parse()?;
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(timeout))?;
    if scheme == "http" {
        return exchange(stream, request, host, body);
    }
    let authority = authority.ok_or("cloud.json has no `ca`")?;
    let name = ServerName::IpAddress(address.ip().into());
    let connection = ClientConnection::new(client::tls_config(authority)?, name)?;
    exchange(StreamOwned::new(connection, stream), request, host, body)
}

fn exchange(
    mut stream: impl Read + Write,
    request: &Request,
    host: &str,
    mut body: &[u8],
) -> Result<Response, Box<dyn Error>> {
    wire::write_request(&mut stream, request, host, &mut body)?;
    Ok(wire::read_response(&mut BufReader::new(stream), &request.method)?)
}
