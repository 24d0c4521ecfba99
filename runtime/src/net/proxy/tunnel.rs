//! The tunnel of a proxy: CONNECT to a checked address.
//!
//! The proxy learns an address and a port, and nothing else of the request. Only
//! the head of its response is read, and only the status in it is used.

use super::Proxy;
use crate::net::connection::{connect_to_any, share};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Destination;
use zeroize::Zeroizing;

/// The maximum size of the head of a proxy's response to CONNECT.
const MAX_HEAD: usize = 16 * 1024;

/// The proxy of an exchange, and its addresses.
pub struct ResolvedProxy {
    pub proxy: Proxy,
    pub addresses: Vec<IpAddr>,
}

impl ResolvedProxy {
    /// Returns a tunnel to the first of these addresses that the proxy connects to, and that address.
    /// The time until `until` is divided among them, so that an address which does not respond leaves
    /// some for the next. The caller must enforce `until` itself. The error is for operators, and
    /// quotes nothing of the proxy's response.
    pub async fn connect(
        &self,
        destination: &Destination,
        addresses: &[IpAddr],
        until: Instant,
    ) -> Result<(TcpStream, IpAddr), String> {
        let proxy = &self.proxy;
        let mut reason = "the destination has no address".to_owned();
        let mut proxies = self.addresses.clone();
        for (index, address) in addresses.iter().enumerate() {
            let connected = connect_to_any(&proxies, proxy.port, until).await;
            let (mut stream, reached) = connected.map_err(|error| {
                format!("the proxy {proxy} cannot be reached: {error}; check `proxy` in the CPI's config")
            })?;
            // Later requests use the address at which the proxy was found.
            proxies = vec![reached];
            let target = SocketAddr::new(*address, destination.port());
            let (what, next) = match share(until, addresses.len() - index, self.request_tunnel(&mut stream, target))
                .await
            {
                Some(Ok(200..=299)) => return Ok((stream, *address)),
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
            reason = format!("the proxy {proxy} {what}");
            if !next {
                break;
            }
        }
        Err(reason)
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
                Some(end) if Check::TunnelHead.accepts(end + 4 == response.len()) => break,
                // Only a refusal may have a body, because the destination does not speak first.
                Some(_) if status(&response).is_some_and(|status| status >= 300) => break,
                Some(_) => return Err("sent data after its response to CONNECT".to_owned()),
                None if read == 0 => return Err("closed the connection without a response to CONNECT".to_owned()),
                None if Check::TunnelHead.refuses(response.len() > MAX_HEAD) => {
                    return Err("sent an endless response to CONNECT".to_owned());
                }
                None => {}
            }
        }
        status(&response).ok_or_else(|| "did not respond to CONNECT with HTTP/1.1".to_owned())
    }
}

/// Parses the status line, such as `HTTP/1.1 200 OK`.
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
    let digits = rest.get(..3).filter(|_| rest.get(3).is_some_and(|next| b" \r".contains(next)))?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|status| (200..600).contains(status))
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
