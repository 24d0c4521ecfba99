//! A request through a proxy: CONNECT to an address that was judged, TLS with the
//! destination's own name in it, one exchange over that.
//!
//! The proxy is told an address and a port, and nothing else of the request. What
//! it answers is read to the end of its head, and only its status counts.

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

/// Of a proxy's answer to CONNECT.
const MAX_HEAD: usize = 16 * 1024;

/// The proxy that an exchange goes through, by its own addresses.
pub struct Through {
    pub proxy: Proxy,
    pub addresses: Vec<IpAddr>,
}

/// Why there was no answer. `Refused` is the proxy's doing, and quotes nothing of it.
pub enum Unanswered {
    Refused(String),
    Handshake(io::Error),
    Exchange(hyper::Error),
    /// What cannot be asked for at all.
    Request(String),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to the destination, ready for one request.
pub struct Connection(Box<dyn Stream>);

impl Through {
    /// To the first of these addresses that the proxy connects to. Time is shared
    /// among them, so that one which swallows everything leaves some for the next;
    /// that all of it is over at `until` is the caller's to see to.
    pub async fn connect(
        &self,
        destination: &Destination,
        addresses: &[IpAddr],
        tls: ClientConfig,
        until: Instant,
    ) -> Result<Connection, Unanswered> {
        let proxy = &self.proxy;
        let mut refused = "the destination has no address".to_owned();
        let mut proxies = self.addresses.as_slice();
        for (index, address) in addresses.iter().enumerate() {
            let (mut stream, reached) = self.reach(proxies, until).await.map_err(|error| {
                let what = format!("cannot be reached: {error}; check `proxy` in the CPI's config");
                Unanswered::Refused(format!("the proxy {proxy} {what}"))
            })?;
            // Where it was found once, it is asked again.
            proxies = std::slice::from_ref(reached);
            let target = SocketAddr::new(*address, destination.port());
            let (what, next) = match share(until, addresses.len() - index, self.tunnel(&mut stream, target)).await {
                Some(Ok(200..=299)) => return secured(stream, destination, tls).await,
                Some(Ok(407)) => ("wants other credentials (407); check `proxy` in the CPI's config".to_owned(), false),
                // A gateway's troubles are with this one address; all else is about us.
                Some(Ok(status)) => {
                    let what = format!("does not connect to {target} (status {status}); ask who runs it");
                    (what, matches!(status, 502..=504))
                }
                Some(Err(what)) => (what, false),
                None => (format!("does not answer for {target}; ask who runs it"), true),
            };
            refused = format!("the proxy {proxy} {what}");
            if !next {
                break;
            }
        }
        Err(Unanswered::Refused(refused))
    }

    #[expect(clippy::disallowed_methods, reason = "addresses of the operator's own proxy, which no guest can name")]
    async fn reach<'a>(&self, addresses: &'a [IpAddr], until: Instant) -> io::Result<(TcpStream, &'a IpAddr)> {
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

    /// The status that it answers.
    async fn tunnel(&self, stream: &mut TcpStream, target: SocketAddr) -> Result<u16, String> {
        let mut head = Zeroizing::new(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"));
        if let Some(authorization) = &self.proxy.authorization {
            head.push_str("Proxy-Authorization: ");
            head.push_str(authorization.reveal());
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let broke = |error: io::Error| format!("broke the connection off: {error}");
        stream.write_all(head.as_bytes()).await.map_err(broke)?;
        let mut answer = Vec::new();
        let mut piece = [0; 1024];
        loop {
            let read = stream.read(&mut piece).await.map_err(broke)?;
            answer.extend_from_slice(&piece[..read]);
            match answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(end) if end + 4 == answer.len() => break,
                // The destination waits for us; a refusal may have a page to it.
                Some(_) if status(&answer).is_some_and(|status| status >= 300) => break,
                Some(_) => return Err("sent more than its answer to CONNECT".to_owned()),
                None if read == 0 => return Err("ended the connection instead of an answer to CONNECT".to_owned()),
                None if answer.len() > MAX_HEAD => return Err("has no end to its answer to CONNECT".to_owned()),
                None => {}
            }
        }
        status(&answer).ok_or_else(|| "did not answer CONNECT with HTTP/1.1".to_owned())
    }
}

/// What comes of it in its share of the time, with so many left to try. The last
/// one has all that is left, and its end is the caller's.
async fn share<T>(until: Instant, left: usize, trying: impl Future<Output = T>) -> Option<T> {
    match u32::try_from(left) {
        Ok(left @ 2..) => timeout(until.saturating_duration_since(Instant::now()) / left, trying).await.ok(),
        _ => Some(trying.await),
    }
}

/// `HTTP/1.1 200 whatever`.
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
    let digits = rest.get(..3).filter(|_| rest.get(3).is_some_and(|next| b" \r".contains(next)))?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|status| (200..600).contains(status))
}

/// Whoever is at the other end proves to be the destination, by its name.
async fn secured(stream: TcpStream, destination: &Destination, tls: ClientConfig) -> Result<Connection, Unanswered> {
    if destination.scheme() == Scheme::Http {
        return Ok(Connection(Box::new(stream)));
    }
    let name = match destination.host() {
        Host::Ip(address) => ServerName::IpAddress((*address).into()),
        Host::Name(name) => ServerName::try_from(name.clone())
            .map_err(|_| Unanswered::Request("no certificate can be for that name".to_owned()))?,
    };
    let connected = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    connected.map(|stream| Connection(Box::new(stream))).map_err(Unanswered::Handshake)
}

impl Connection {
    /// One request, as the direct way would send it; the answer's body is still to come.
    pub async fn send(
        self,
        request: reqwest::Request,
        destination: &Destination,
        agent: &'static str,
        max_headers: usize,
    ) -> Result<Response, Unanswered> {
        let unusable = |what: &str| Unanswered::Request(format!("the request cannot be written: {what}"));
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
        let (mut sender, connection) = builder.handshake(TokioIo::new(self.0)).await.map_err(Unanswered::Exchange)?;
        // Ends with the answer's body, or when nobody waits for that any more.
        tokio::spawn(async move { drop(connection.await) });
        let response = sender.send_request(request).await.map_err(Unanswered::Exchange)?;
        Ok(response.map(Body::wrap).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(head in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = status(&head);
        }
    }

    #[test]
    fn only_a_status_line_has_a_status() {
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
