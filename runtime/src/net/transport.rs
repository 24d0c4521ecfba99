//! Sends a request to addresses that were judged: chooses the proxy, configures TLS, and makes one exchange.
//!
//! Requests of guests, of logins and for credentials use it. It does not decide what is sent.

use crate::limits::Limits;
use crate::net::addresses::AddressJudge;
use crate::net::connection_pool::ConnectionPool;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, Exchange, Received, SendBody, WireRequest};
use crate::net::proxy::ProxyConfig;
use crate::net::proxy::tunnel::ResolvedProxy;
use crate::net::tls_configs::TlsConfigs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::addresses::Addresses;
use wasm_cpi_policy::destination::{Destination, Scheme};
use wasm_cpi_policy::{Policy, Tls};

/// Sends the requests of one call.
pub(super) struct Transport {
    pub(super) addresses: AddressJudge,
    pub(super) tls: TlsConfigs,
    /// The proxies for destinations that are not connected to directly.
    proxy: Option<ProxyConfig>,
    caps: Caps,
    pool: ConnectionPool,
}

/// The addresses and the TLS settings of a grant, a login or credentials.
pub(super) struct Route<'a> {
    /// The name in messages, for example "grant `compute`".
    pub name: String,
    pub addresses: &'a Addresses,
    pub tls: &'a Tls,
}

impl Transport {
    /// Creates a transport without opening anything. `files` is the directory of the files that the policy names.
    pub(super) fn new(
        policy: Arc<Policy>,
        limits: &Limits,
        allow_local: bool,
        files: PathBuf,
        proxy: Option<ProxyConfig>,
    ) -> Self {
        Transport {
            addresses: AddressJudge::new(policy, allow_local),
            tls: TlsConfigs::new(files),
            proxy,
            caps: Caps::of(limits),
            pool: ConnectionPool::default(),
        }
    }

    pub(super) fn caps(&self) -> Caps {
        self.caps
    }

    /// Sends the request with this body to these addresses and returns the response.
    pub(super) async fn send(
        &self,
        route: &Route<'_>,
        addresses: Vec<IpAddr>,
        request: WireRequest,
        body: SendBody,
        caps: Caps,
        deadline: Instant,
    ) -> Result<Received, HttpError> {
        let reached = self.resolve_proxy(&request.destination, addresses, deadline).await?;
        self.send_to(reached, route, request, body, caps, deadline).await
    }

    /// Sends the host's own request to a link-local address, which no grant can reach, and never through a proxy.
    pub(super) async fn send_to_link(
        &self,
        route: &Route<'_>,
        address: IpAddr,
        request: WireRequest,
        caps: Caps,
        deadline: Instant,
    ) -> Result<Received, HttpError> {
        let reached = match Check::MetadataDirect.perform(|| ()) {
            Some(()) => (None, vec![address]),
            None => self.resolve_proxy(&request.destination, vec![address], deadline).await?,
        };
        self.send_to(reached, route, request, SendBody::None, caps, deadline).await
    }

    async fn send_to(
        &self,
        (proxy, addresses): (Option<ResolvedProxy>, Vec<IpAddr>),
        route: &Route<'_>,
        request: WireRequest,
        body: SendBody,
        caps: Caps,
        deadline: Instant,
    ) -> Result<Received, HttpError> {
        let tls = match request.destination.scheme() {
            Scheme::Http => None,
            Scheme::Https => Some((route.tls.clone(), self.tls.config(route)?)),
        };
        let host = request.destination.host().to_string();
        let result = Exchange { request, addresses, proxy, tls, caps, deadline }.run(body, &self.pool).await;
        if result.as_ref().is_err_and(is_unconnected) {
            self.addresses.forget(&host);
        }
        result
    }

    /// Returns the proxy for this destination with its addresses, `None` if the connection is direct, and those of
    /// the destination's addresses that it is asked for. The proxy's name is resolved once in a call, also if the proxy
    /// cannot be reached: no guest may reach the proxy's addresses, which are compared as they were first resolved.
    async fn resolve_proxy(
        &self,
        destination: &Destination,
        addresses: Vec<IpAddr>,
        deadline: Instant,
    ) -> Result<(Option<ResolvedProxy>, Vec<IpAddr>), HttpError> {
        let proxy = self.proxy.as_ref().and_then(|proxy| proxy.proxy_for(destination, &addresses));
        let Some((proxy, addresses)) = proxy else { return Ok((None, addresses)) };
        let proxy_addresses = self.addresses.lookup(&proxy.host, deadline).await?;
        Ok((Some(ResolvedProxy { proxy: proxy.clone(), addresses: proxy_addresses }), addresses))
    }
}

/// Returns true if no connection was opened for the request. The server may then have moved to other addresses, which
/// are judged like the first ones. After a byte was sent, the name keeps the addresses that it had, so a guest cannot
/// have it resolved again by not waiting for a response.
fn is_unconnected(error: &HttpError) -> bool {
    !error.sent && matches!(error.kind, HttpErrorKind::Connect | HttpErrorKind::Timeout)
}
