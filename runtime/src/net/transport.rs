//! Sends a request to a destination that the policy allows: resolves the name once per call,
//! checks the addresses for each request, configures TLS, and makes one exchange with exactly those
//! addresses.
//!
//! Requests of guests and of logins both use it. It does not decide what is sent.

use crate::failure::Who;
use crate::limits::Limits;
use crate::net::connection_pool::ConnectionPool;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, Exchange, Received, SendBody};
use crate::net::http_event::HttpEvent;
use crate::net::http_trace::Tracer;
use crate::net::local_addresses;
use crate::net::preopened::PreopenedFile;
use crate::net::proxy::ProxyConfig;
use crate::net::proxy::tunnel::ResolvedProxy;
use crate::net::resolver::{self, Resolver};
use crate::net::tls::{self, ClientIdentity, TlsError, TlsSettings, TrustedCa};
use reqwest::Method;
use reqwest::header::HeaderMap;
use rustls::ClientConfig;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout_at;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::addresses;
use wasm_cpi_policy::destination::{Destination, Host, Scheme};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{CLOSED_SERVER, DenialReason, Pem, Policy, Tls};

/// The time to connect is divided among the addresses, so each must get enough of it.
const MAX_ADDRESSES: usize = 8;
/// The time to resolve the name of a forbidden endpoint.
const FORBIDDEN_NAMES: Duration = Duration::from_secs(5);

/// Sends the requests of one call.
pub(super) struct Transport {
    policy: Arc<Policy>,
    allow_local: bool,
    caps: Caps,
    pub(super) resolver: Resolver,
    /// The directory of the files that the policy names.
    pub(super) files: PathBuf,
    /// The proxies for destinations that are not connected to directly.
    pub(super) proxy: Option<ProxyConfig>,
    /// Traces requests and responses; `None` if `http_trace` is off.
    pub(super) trace: Option<Tracer>,
    /// The open files, by the names in the policy. Unset before `open_files`.
    preopened: OnceLock<HashMap<String, PreopenedFile>>,
    /// TLS configurations by their settings, so that certificates are read once.
    tls: Mutex<Vec<(Tls, Arc<ClientConfig>)>>,
    /// The addresses of hosts, as they were first resolved in this call. Requests that are sent at once wait
    /// for the same lookup.
    resolved: Mutex<HashMap<String, Arc<OnceCell<Vec<IpAddr>>>>>,
    pool: ConnectionPool,
    /// Addresses of endpoints that no grant can open, by the names of the endpoints.
    forbidden: Mutex<HashMap<String, Vec<IpAddr>>>,
}

/// The addresses and the TLS settings of a grant or a login.
pub(super) struct Route<'a> {
    /// The name in messages, for example "grant `compute`".
    pub name: String,
    pub addresses: &'a addresses::Addresses,
    pub tls: &'a Tls,
}

/// A request with its credentials, as it is written to the connection.
pub(super) struct WireRequest {
    pub method: Method,
    pub destination: Destination,
    pub headers: HeaderMap,
    pub body: SendBody,
    /// Whose credentials the request carries: requests of others use other connections.
    pub credential_owner: String,
    /// True if further requests can use the connection of this one.
    pub allows_reuse: bool,
    /// True if the body holds a part of the stemcell image.
    pub holds_image: bool,
}

impl Transport {
    pub(super) fn new(policy: Arc<Policy>, limits: &Limits, allow_local: bool) -> Self {
        Transport {
            policy,
            allow_local,
            caps: Caps::of(limits),
            resolver: Resolver::system(),
            files: PathBuf::new(),
            proxy: None,
            trace: None,
            preopened: OnceLock::new(),
            tls: Mutex::default(),
            resolved: Mutex::default(),
            pool: ConnectionPool::default(),
            forbidden: Mutex::default(),
        }
    }

    /// Opens every file that the policy names, and returns their number.
    pub(super) fn open_files(&self) -> usize {
        let all = self.policy.http.iter().map(|grant| &grant.tls);
        let all = all.chain(self.policy.logins.values().map(|login| &login.tls)).flat_map(Tls::files);
        let preopened = self
            .preopened
            .get_or_init(|| all.map(|name| (name.to_owned(), PreopenedFile::new(self.files.join(name)))).collect());
        preopened.values().for_each(PreopenedFile::open);
        preopened.len()
    }

    pub(super) fn caps(&self) -> Caps {
        self.caps
    }

    /// Resolves the destination and returns the addresses that may be connected to. Sets the
    /// address of the event to the first of them, or to the refused one. An answer may also mix
    /// allowed with refused addresses; the event then names the first refused one as well.
    pub(super) async fn allowed_addresses(
        &self,
        route: &Route<'_>,
        destination: &Destination,
        event: &mut HttpEvent,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, HttpError> {
        let found = match destination.host() {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolve_once(name, deadline).await?,
        };
        let denied = |why: &str| {
            let what = format!("{} does not reach {destination}: {why}", route.name);
            HttpError::denied(DenialReason::Address, what)
        };
        event.address = found.first().copied();
        let ends = addresses::ends(&found);
        // One address of a forbidden endpoint makes all addresses suspect.
        match self.find_forbidden(&ends, destination.port()).await {
            Ok(found) => Check::EndpointByAddress.reject(found, |(address, what)| {
                event.address = Some(address);
                denied(CLOSED_SERVER).with_detail(format!("{address} is {what}"))
            })?,
            Err(what) => {
                let why = format!(
                    "it has the port of {what}, whose name cannot be resolved now, so the two cannot be distinguished; \
                     repair the name servers, or name that endpoint by its address in the config"
                );
                return Err(denied(CLOSED_SERVER).with_detail(why).refused_by(Check::EndpointUnresolved));
            }
        }
        let local = local_addresses::find_in(&ends);
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            match addresses::judge(address, route.addresses, self.allow_local, &local) {
                Ok(()) => allowed.push(address),
                Err(why) => refused = refused.or(Some((address, why))),
            }
        }
        if allowed.is_empty() {
            return Err(match refused {
                Some((_, why)) => denied(&why.to_string()).refused_by(why.check()),
                None => denied("it has no address"),
            });
        }
        event.address = allowed.first().copied();
        event.refused_address = refused.map(|(address, _)| address);
        allowed.truncate(MAX_ADDRESSES);
        Ok(allowed)
    }

    /// Returns the first of these canonical addresses that is a forbidden endpoint, with its
    /// name. The error is the name of an endpoint that cannot be resolved.
    async fn find_forbidden(&self, found: &[IpAddr], port: u16) -> Result<Option<(IpAddr, &str)>, &str> {
        let literal = |address: &IpAddr| Some((*address, self.policy.forbids(*address, port)?));
        if let Some(hit) = found.iter().find_map(literal) {
            return Ok(Some(hit));
        }
        for (name, what) in self.policy.forbidden_names(port) {
            let theirs = self.forbidden_addresses(name).await;
            if Check::EndpointUnresolved.refuses(theirs.is_none()) {
                return Err(what);
            }
            let theirs = theirs.unwrap_or_default();
            if let Some(address) = found.iter().find(|address| theirs.contains(address)) {
                return Ok(Some((*address, what)));
            }
        }
        Ok(None)
    }

    /// Returns the addresses of a forbidden endpoint; `None` if they cannot be determined now.
    /// The time for this does not depend on the guest's timeout.
    async fn forbidden_addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        let known = lock(&self.forbidden).get(name).cloned();
        if known.is_some() {
            return known;
        }
        let found = self.resolver.definite_addresses(name, Instant::now() + FORBIDDEN_NAMES).await?;
        let found: Vec<IpAddr> = found.iter().map(IpAddr::to_canonical).collect();
        lock(&self.forbidden).insert(name.to_owned(), found.clone());
        Some(found)
    }

    /// Returns the addresses of a host, which stay the same during a call unless no server can be reached
    /// at them.
    async fn resolve_once(&self, name: &str, deadline: Instant) -> Result<Vec<IpAddr>, HttpError> {
        let known = Arc::clone(lock(&self.resolved).entry(name.to_owned()).or_default());
        let found = known.get_or_try_init(|| self.resolver.resolve(name, deadline));
        // Another request may wait for the name servers for longer than this one may.
        match timeout_at(deadline.into(), found).await {
            Ok(found) => found.cloned(),
            Err(_) => Err(resolver::dns_error(name, "the time of the request ended before a name server answered")),
        }
    }

    /// Sends the request to these addresses and returns the response.
    pub(super) async fn send(
        &self,
        route: &Route<'_>,
        mut addresses: Vec<IpAddr>,
        wire_request: WireRequest,
        caps: Caps,
        deadline: Instant,
    ) -> Result<Received, HttpError> {
        let tls = match wire_request.destination.scheme() {
            Scheme::Http => None,
            Scheme::Https => Some((route.tls.clone(), self.tls_config(route)?)),
        };
        let proxy = self.resolve_proxy(&wire_request.destination, &mut addresses, deadline).await?;
        let WireRequest { method, destination, headers, body, credential_owner, allows_reuse, holds_image } =
            wire_request;
        let host = destination.host().to_string();
        let exchange = Exchange {
            method,
            destination,
            headers,
            addresses,
            proxy,
            tls,
            credential_owner,
            allows_reuse,
            holds_image,
            caps,
            deadline,
        };
        let result = exchange.run(body, &self.pool).await;
        // The server may have moved to other addresses, which are judged like the first ones.
        if result.as_ref().is_err_and(|error| matches!(error.kind, HttpErrorKind::Connect | HttpErrorKind::Timeout)) {
            lock(&self.resolved).remove(&host);
        }
        result
    }

    /// Returns the proxy for this destination with its addresses; `None` if the connection is
    /// direct. Removes from `addresses` those that no proxy can connect to.
    async fn resolve_proxy(
        &self,
        destination: &Destination,
        addresses: &mut Vec<IpAddr>,
        deadline: Instant,
    ) -> Result<Option<ResolvedProxy>, HttpError> {
        let Some(proxy) = self.proxy.as_ref().and_then(|proxy| proxy.proxy_for(destination, addresses)) else {
            return Ok(None);
        };
        let addresses = match &proxy.host {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolve_once(name, deadline).await?,
        };
        Ok(Some(ResolvedProxy { proxy: proxy.clone(), addresses }))
    }

    fn tls_config(&self, route: &Route<'_>) -> Result<Arc<ClientConfig>, HttpError> {
        let mut known = lock(&self.tls);
        if let Some((_, config)) = known.iter().find(|(settings, _)| settings == route.tls) {
            return Ok(Arc::clone(config));
        }
        let config = self.build_tls_config(route.tls).map_err(|error| {
            let message = format!("{} cannot use TLS as the policy says; the log says why", route.name);
            let failed = HttpError::failed(Who::Config, HttpErrorKind::Tls, message).with_detail(error.to_string());
            HttpError { check: error.check(), ..failed }
        })?;
        let config = Arc::new(config);
        known.push((route.tls.clone(), Arc::clone(&config)));
        Ok(config)
    }

    fn build_tls_config(&self, tls: &Tls) -> Result<ClientConfig, TlsError> {
        let ca = tls.ca.as_ref().map(|pem| self.read_pem(pem, tls::pem_in)).transpose()?;
        let client = match &tls.client {
            None => None,
            Some(client) => Some((self.read_pem(&client.cert, tls::pem_in)?, self.read_pem(&client.key, tls::key_in)?)),
        };
        let client = client.as_ref().map(|(cert, key)| ClientIdentity { chain: cert.reveal(), key });
        let ca = ca.as_ref().map(|ca| TrustedCa { setting: "tls.ca", pem: ca.reveal() });
        let settings = TlsSettings { ca, client, pins: &tls.pin_sha256 };
        tls::client_config(&settings)
    }

    /// Returns the texts of these certificates and keys; `None` if one cannot be read.
    pub(super) fn certificates(&self, tls: &Tls) -> Option<Vec<Secret>> {
        let client = tls.client.iter().flat_map(|client| [&client.cert, &client.key]);
        tls.ca.iter().chain(client).map(|pem| self.read_pem(pem, tls::pem_in).ok()).collect()
    }

    fn read_pem(&self, pem: &Pem, read: fn(&PreopenedFile) -> Result<String, TlsError>) -> Result<Secret, TlsError> {
        match pem {
            Pem::Inline(text) => Ok(text.clone()),
            Pem::File(name) => match self.preopened.get().and_then(|files| files.get(name)) {
                Some(preopened) => read(preopened).map(Secret::new),
                None => read(&PreopenedFile::new(self.files.join(name))).map(Secret::new),
            },
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
