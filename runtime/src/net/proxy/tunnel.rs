//! A request through a proxy: CONNECT to a checked address, TLS with the name of the
//! destination inside the tunnel, and one exchange over it.
//!
//! The proxy learns an address and a port, and nothing else of the request. Only
//! the head of its response is read, and only the status in it is used.

use super::Proxy;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderValue, USER_AGENT};
use hyper_util::rt::TokioIo;
use reqwest::{Body, Response};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wasm_cpi_policy::destination::{Destination, Host, Scheme};
use zeroize::Zeroizing;

/// The maximum size of the head of a proxy's response to CONNECT.
const MAX_HEAD: usize = 16 * 1024;

/// The proxy of an exchange, and its addresses.
pub struct ResolvedProxy {
    pub proxy: Proxy,
    pub addresses: Vec<IpAddr>,
}

/// The reason why there was no response.
pub enum TunnelError {
    /// The proxy did not connect. The text quotes nothing of its response.
    Refused(String),
    Handshake(io::Error),
    Exchange(hyper::Error),
    /// The request cannot be sent over HTTP or TLS.
    Request(String),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to the destination, ready for one request.
pub struct Connection(Box<dyn Stream>);

impl ResolvedProxy {
    /// Returns a connection to the first of these addresses that the proxy connects to. The time
    /// until `until` is divided among them, so that an address which does not respond leaves
    /// some for the next. The caller must enforce `until` itself.
    pub async fn connect(
        &self,
        destination: &Destination,
        addresses: &[IpAddr],
        tls: ClientConfig,
        until: Instant,
    ) -> Result<Connection, TunnelError> {
        let proxy = &self.proxy;
        let mut refused = "the destination has no address".to_owned();
        let mut proxies = self.addresses.as_slice();
        for (index, address) in addresses.iter().enumerate() {
            let (mut stream, reached) = self.connect_to_proxy(proxies, until).await.map_err(|error| {
                let what = format!("cannot be reached: {error}; check `proxy` in the CPI's config");
                TunnelError::Refused(format!("the proxy {proxy} {what}"))
            })?;
            // Later requests use the address at which the proxy was found.
            proxies = std::slice::from_ref(reached);
            let target = SocketAddr::new(*address, destination.port());
            let (what, next) = match share(until, addresses.len() - index, self.request_tunnel(&mut stream, target))
                .await
            {
                Some(Ok(200..=299)) => return secured(stream, destination, tls).await,
                Some(Ok(407)) => {
                    ("requires other credentials (407); check `proxy` in the CPI's config".to_owned(), false)
                }
                // With these statuses of a gateway, another address may work.
                Some(Ok(status)) => {
                    let what = format!("does not connect to {target} (status {status}); ask the operator of the proxy");
                    (what, matches!(status, 502..=504))
                }
                Some(Err(what)) => (format!("{what}; check `proxy` in the CPI's config"), false),
                None => (format!("does not respond for {target}; ask the operator of the proxy"), true),
            };
            refused = format!("the proxy {proxy} {what}");
            if !next {
                break;
            }
        }
        Err(TunnelError::Refused(refused))
    }

    #[expect(clippy::disallowed_methods, reason = "addresses of the operator's own proxy, which no guest can choose")]
    async fn connect_to_proxy<'a>(
        &self,
        addresses: &'a [IpAddr],
        until: Instant,
    ) -> io::Result<(TcpStream, &'a IpAddr)> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        for (index, address) in addresses.iter().enumerate() {
            let connecting = TcpStream::connect((*address, self.proxy.port));
            match share(until, addresses.len() - index, connecting).await {
                Some(Ok(stream)) => return Ok((stream, address)),
                Some(Err(error)) => failed = error,
                None => failed = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(failed)
    }

    /// Sends CONNECT and returns the status of the response.
    async fn request_tunnel(&self, stream: &mut TcpStream, target: SocketAddr) -> Result<u16, String> {
        let mut head = Zeroizing::new(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"));
        if let Some(authorization) = &self.proxy.authorization {
            head.push_str("Proxy-Authorization: ");
            head.push_str(authorization.reveal());
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let broke = |error: io::Error| format!("closed the connection: {error}");
        stream.write_all(head.as_bytes()).await.map_err(broke)?;
        let mut response = Vec::new();
        let mut piece = [0; 1024];
        loop {
            let read = stream.read(&mut piece).await.map_err(broke)?;
            response.extend_from_slice(&piece[..read]);
            match response.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(end) if end + 4 == response.len() => break,
                // Only a refusal may have a body, because the destination does not speak first.
                Some(_) if status(&response).is_some_and(|status| status >= 300) => break,
                Some(_) => return Err("sent data after its response to CONNECT".to_owned()),
                None if read == 0 => return Err("closed the connection without a response to CONNECT".to_owned()),
                None if response.len() > MAX_HEAD => return Err("sent an endless response to CONNECT".to_owned()),
                None => {}
            }
        }
        status(&response).ok_or_else(|| "did not respond to CONNECT with HTTP/1.1".to_owned())
    }
}

/// Runs an attempt with its share of the time, with `left` attempts to go; returns `None` if the
/// time is over. The last attempt has no limit here: the caller enforces `until`.
async fn share<T>(until: Instant, left: usize, trying: impl Future<Output = T>) -> Option<T> {
    match u32::try_from(left) {
        Ok(left @ 2..) => timeout(until.saturating_duration_since(Instant::now()) / left, trying).await.ok(),
        _ => Some(trying.await),
    }
}

/// Parses the status line, such as `HTTP/1.1 200 OK`.
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
    let digits = rest.get(..3).filter(|_| rest.get(3).is_some_and(|next| b" \r".contains(next)))?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|status| (200..600).contains(status))
}

/// Starts TLS for https://, in which the server must prove the name of the destination.
async fn secured(stream: TcpStream, destination: &Destination, tls: ClientConfig) -> Result<Connection, TunnelError> {
    if destination.scheme() == Scheme::Http {
        return Ok(Connection(Box::new(stream)));
    }
    let name = match destination.host() {
        Host::Ip(address) => ServerName::IpAddress((*address).into()),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| {
            TunnelError::Request("no certificate can be valid for this host; correct the host of the URL".to_owned())
        })?,
    };
    let connected = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    connected.map(|stream| Connection(Box::new(stream))).map_err(TunnelError::Handshake)
}

impl Connection {
    /// Sends one request, exactly as without a proxy. The body of the response is read later.
    pub async fn send(
        self,
        request: reqwest::Request,
        destination: &Destination,
        agent: &'static str,
        max_headers: usize,
    ) -> Result<Response, TunnelError> {
        let unusable = |what: &str| TunnelError::Request(format!("the request cannot be written: {what}"));
        let mut request: hyper::Request<Body> = request.try_into().map_err(|_| unusable("its parts"))?;
        let url = destination.to_url();
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        *request.uri_mut() = target.parse().map_err(|_| unusable("its path"))?;
        let host = HeaderValue::from_str(&destination.host_header()).map_err(|_| unusable("its host"))?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        request.headers_mut().entry(USER_AGENT).or_insert(HeaderValue::from_static(agent));
        let mut builder = http1::Builder::new();
        builder.max_headers(max_headers);
        let (mut sender, connection) = builder.handshake(TokioIo::new(self.0)).await.map_err(TunnelError::Exchange)?;
        // Ends with the body of the response, or when the response is dropped.
        tokio::spawn(async move { drop(connection.await) });
        let response = sender.send_request(request).await.map_err(TunnelError::Exchange)?;
        Ok(response.map(Body::wrap).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_response_makes_the_parser_panic(head in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = status(&head);
        }
    }

    #[test]
    fn only_a_valid_status_line_has_a_status() {
        for (head, expected) in [
            (&b"HTTP/1.1 200 Connection established\r\n\r\n"[..], Some(200)),
            (b"HTTP/1.0 407 x\r\n\r\n", Some(407)),
            (b"HTTP/1.1 502\r\n\r\n", Some(502)),
            (b"HTTP/1.1 100 Continue\r\n\r\n", None),
            (b"HTTP/1.1 2000 x\r\n\r\n", None),
            (b"HTTP/2 200 x\r\n\r\n", None),
            (b"HTTP/1.1 +20 x\r\n\r\n", None),
            (b"\x16\x03\x01", None),
            (b"", None),
        ] {
            assert_eq!(status(head), expected, "{head:?}");
        }
    }
}
