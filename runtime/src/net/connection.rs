//! A connection to a server: TCP to an address that was checked, through a proxy if the config names
//! one, and TLS.
//!
//! `connection_pool` keeps it for further requests. Whether that is safe is decided by what was seen on
//! the wire (`watched`), because the HTTP library accepts more than a kept connection may.

mod watched;

pub(super) use watched::{MAX_INTERIM, WatchedStream};

use crate::net::proxy::tunnel::ResolvedProxy;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wasm_cpi_policy::destination::{Destination, Host};

/// A connection without a request in progress.
pub(super) struct Connection {
    pub stream: WatchedStream,
    /// The address of the server. A proxy was asked for this address.
    pub address: IpAddr,
}

/// Where to connect to.
pub(super) struct Endpoint<'a> {
    pub destination: &'a Destination,
    /// The allowed addresses of the host.
    pub addresses: &'a [IpAddr],
    /// The proxy that connects to these addresses; `None` connects directly.
    pub proxy: Option<&'a ResolvedProxy>,
}

/// The reason why there is no connection. No byte of a request was sent.
pub(super) enum ConnectError {
    Tcp(io::Error),
    /// The proxy did not connect. The text quotes nothing of its response.
    Proxy(String),
    Handshake(io::Error),
    /// No certificate can be valid for the host.
    ServerName,
}

impl Endpoint<'_> {
    /// Connects to the first address that responds. `tls` returns the TLS configuration for an
    /// address, and `None` for http://. The time until `until` is divided among the addresses, so
    /// that one which does not respond leaves some for the next. The caller must enforce `until`.
    pub(super) async fn connect(
        &self,
        tls: impl Fn(IpAddr) -> Option<Arc<ClientConfig>>,
        until: Instant,
    ) -> Result<Connection, ConnectError> {
        let (stream, address) = match self.proxy {
            Some(proxy) => proxy.connect(self.destination, self.addresses, until).await.map_err(ConnectError::Proxy)?,
            None => connect_to_any(self.addresses, self.destination.port(), until).await.map_err(ConnectError::Tcp)?,
        };
        let stream = match tls(address) {
            None => WatchedStream::plain(Box::new(stream)),
            Some(config) => {
                let name = server_name(self.destination.host()).ok_or(ConnectError::ServerName)?;
                let connecting = TlsConnector::from(config).connect(name, stream);
                WatchedStream::tls(Box::new(connecting.await.map_err(ConnectError::Handshake)?))
            }
        };
        Ok(Connection { stream, address })
    }
}

fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Ip(address) => Some(ServerName::IpAddress((*address).into())),
        Host::Name(name) => ServerName::try_from(name.clone()).ok(),
    }
}

/// Connects to the first of these addresses that accepts. They must be allowed, or be those of the
/// operator's own proxy.
#[expect(clippy::disallowed_methods, reason = "the only place that connects, to addresses that were checked")]
pub(super) async fn connect_to_any(addresses: &[IpAddr], port: u16, until: Instant) -> io::Result<(TcpStream, IpAddr)> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for (index, address) in addresses.iter().enumerate() {
        match share(until, addresses.len() - index, TcpStream::connect((*address, port))).await {
            Some(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok((stream, *address));
            }
            Some(Err(error)) => failed = error,
            None => failed = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

/// Runs an attempt with its share of the time, with `left` attempts to go; returns `None` if the
/// time is over. The last attempt has no limit here: the caller enforces `until`.
pub(super) async fn share<T>(until: Instant, left: usize, trying: impl Future<Output = T>) -> Option<T> {
    match u32::try_from(left) {
        Ok(left @ 2..) => timeout(until.saturating_duration_since(Instant::now()) / left, trying).await.ok(),
        _ => Some(trying.await),
    }
}
