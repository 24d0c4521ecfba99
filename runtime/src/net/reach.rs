//! From a destination that the policy allowed to its answer: the name resolved
//! once, the addresses judged, TLS as configured, one exchange with exactly
//! those addresses.
//!
//! Grants and logins have this way in common. What is sent was decided before.

use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, Exchange, Received, SendBody};
use crate::net::held::Held;
use crate::net::http_trace::Tracer;
use crate::net::own;
use crate::net::proxy::ProxyConfig;
use crate::net::proxy::tunnel::Through;
use crate::net::resolve::Resolver;
use crate::net::tls::{self, ClientIdentity, TlsError, TlsSettings};
use reqwest::Method;
use reqwest::header::HeaderMap;
use rustls::ClientConfig;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::addresses;
use wasm_cpi_policy::destination::{Destination, Host};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{DenialReason, Pem, Policy, Tls};

/// Connecting shares its time among the addresses: many would get too little.
const MAX_ADDRESSES: usize = 8;
/// For looking up the name of an endpoint that nobody asked for.
const FORBIDDEN_NAMES: Duration = Duration::from_secs(5);

pub(super) struct Reach {
    policy: Arc<Policy>,
    allow_local: bool,
    caps: Caps,
    pub(super) resolver: Resolver,
    /// Where the files lie that the policy names.
    pub(super) files: PathBuf,
    /// Who is asked to connect, for what is not reached directly.
    pub(super) proxy: Option<ProxyConfig>,
    /// Shows requests and responses, if somebody wants that.
    pub(super) trace: Option<Tracer>,
    /// Those files, once they are held open; by the names that the policy gives them.
    held: OnceLock<HashMap<String, Held>>,
    /// By what asked for it: authorities and keys are read once.
    tls: Mutex<HashMap<String, ClientConfig>>,
    /// Addresses of endpoints that no grant can open, by their names.
    forbidden: Mutex<HashMap<String, Vec<IpAddr>>>,
}

/// What a grant or a login says about the way.
pub(super) struct Way<'a> {
    /// For messages and as a key: grant `compute`.
    pub name: String,
    pub addresses: &'a addresses::Addresses,
    pub tls: &'a Tls,
}

pub(super) struct Parcel {
    pub method: Method,
    pub destination: Destination,
    pub headers: HeaderMap,
    pub body: SendBody,
}

impl Reach {
    pub(super) fn new(policy: Arc<Policy>, limits: &Limits, allow_local: bool) -> Self {
        Reach {
            policy,
            allow_local,
            caps: Caps::of(limits),
            resolver: Resolver::system(),
            files: PathBuf::new(),
            proxy: None,
            trace: None,
            held: OnceLock::new(),
            tls: Mutex::default(),
            forbidden: Mutex::default(),
        }
    }

    /// Opens every file that the policy names, and answers how many there are.
    pub(super) fn hold_files(&self) -> usize {
        let all = self.policy.http.iter().map(|grant| &grant.tls);
        let all = all.chain(self.policy.logins.values().map(|login| &login.tls)).flat_map(Tls::files);
        let held =
            self.held.get_or_init(|| all.map(|name| (name.to_owned(), Held::new(self.files.join(name)))).collect());
        held.values().for_each(Held::hold);
        held.len()
    }

    pub(super) fn caps(&self) -> Caps {
        self.caps
    }

    /// The addresses that may be connected to. `noted` is the first of them, or
    /// the one that was refused.
    pub(super) async fn find(
        &self,
        way: &Way<'_>,
        destination: &Destination,
        noted: &mut Option<IpAddr>,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, HttpError> {
        let found = match destination.host() {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolver.resolve(name, deadline).await?,
        };
        let denied = |why: String| {
            let message = format!("policy: {} does not reach {destination}: {why}", way.name);
            HttpError::denied(DenialReason::Address, message)
        };
        *noted = found.first().copied();
        let ends = addresses::ends(&found);
        // With one address of a forbidden endpoint, the others are suspect, too.
        match self.forbidden(&ends, destination.port()).await {
            Ok(None) => {}
            Ok(Some((address, what))) => {
                *noted = Some(address);
                return Err(denied(format!("{address} is {what}, which no grant can open to a guest")));
            }
            Err(what) => {
                return Err(denied(format!(
                    "it has the port of {what}, whose name cannot be resolved now, so nobody knows whether this is it; \
                     mend the name servers, or give that endpoint by its address"
                )));
            }
        }
        let own = own::among(&ends);
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            match addresses::judge(address, way.addresses, self.allow_local, &own) {
                Ok(()) => allowed.push(address),
                Err(why) => refused = refused.or(Some(why.to_string())),
            }
        }
        if allowed.is_empty() {
            return Err(denied(refused.unwrap_or_else(|| "it has no address".to_owned())));
        }
        *noted = allowed.first().copied();
        allowed.truncate(MAX_ADDRESSES);
        Ok(allowed)
    }

    /// The first of these, in canonical form, that is an endpoint which no grant
    /// can open; or an endpoint of which nobody can tell.
    async fn forbidden(&self, found: &[IpAddr], port: u16) -> Result<Option<(IpAddr, &str)>, &str> {
        if !Check::EndpointByAddress.on() {
            return Ok(None);
        }
        let literal = |address: &IpAddr| Some((*address, self.policy.forbids(*address, port)?));
        if let Some(hit) = found.iter().find_map(literal) {
            return Ok(Some(hit));
        }
        for (name, what) in self.policy.forbidden_names(port) {
            let theirs = match self.addresses_of(name).await {
                None if Check::EndpointUnresolved.on() => return Err(what),
                theirs => theirs.unwrap_or_default(),
            };
            if let Some(address) = found.iter().find(|address| theirs.contains(address)) {
                return Ok(Some((*address, what)));
            }
        }
        Ok(None)
    }

    /// Of a forbidden endpoint's name, asked for until there is an answer. The time
    /// for that is not the guest's to choose.
    async fn addresses_of(&self, name: &str) -> Option<Vec<IpAddr>> {
        let known = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if known.is_some() {
            return known;
        }
        let found = self.resolver.known(name, Instant::now() + FORBIDDEN_NAMES).await?;
        let found: Vec<IpAddr> = found.iter().map(IpAddr::to_canonical).collect();
        self.forbidden.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), found.clone());
        Some(found)
    }

    pub(super) async fn send(
        &self,
        way: &Way<'_>,
        mut addresses: Vec<IpAddr>,
        parcel: Parcel,
        caps: Caps,
        deadline: Instant,
    ) -> Result<Received, HttpError> {
        let tls = self.tls(way, &parcel.destination)?;
        let through = self.through(&parcel.destination, &mut addresses, deadline).await?;
        let Parcel { method, destination, headers, body } = parcel;
        Exchange { method, destination, headers, body, addresses, through, tls, caps, deadline }.run().await
    }

    /// The proxy towards these addresses, by its own, if there is one; they are left
    /// with those that it is to be asked for.
    async fn through(
        &self,
        destination: &Destination,
        addresses: &mut Vec<IpAddr>,
        deadline: Instant,
    ) -> Result<Option<Through>, HttpError> {
        let Some(proxy) = self.proxy.as_ref().and_then(|proxy| proxy.towards(destination, addresses)) else {
            return Ok(None);
        };
        let addresses = match &proxy.host {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolver.resolve(name, deadline).await?,
        };
        Ok(Some(Through { proxy: proxy.clone(), addresses }))
    }

    fn tls(&self, way: &Way<'_>, destination: &Destination) -> Result<ClientConfig, HttpError> {
        let mut known = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = known.get(&way.name) {
            return Ok(config.clone());
        }
        let config = self.build(way.tls, destination).map_err(|error| {
            let message = format!("config: {} cannot use TLS as the policy says: {error}", way.name);
            HttpError::new(HttpErrorKind::Tls, message)
        })?;
        known.insert(way.name.clone(), config.clone());
        Ok(config)
    }

    fn build(&self, tls: &Tls, destination: &Destination) -> Result<ClientConfig, TlsError> {
        let ca = tls.ca.as_ref().map(|pem| self.text(pem, tls::pem_in)).transpose()?;
        let client = match &tls.client {
            None => None,
            Some(client) => Some((self.text(&client.cert, tls::pem_in)?, self.text(&client.key, tls::key_in)?)),
        };
        let client = client.as_ref().map(|(cert, key)| ClientIdentity { chain: cert.reveal(), key });
        let settings = TlsSettings { ca: ca.as_ref().map(Secret::reveal), client, pins: &tls.pin_sha256 };
        tls::for_scheme(destination.scheme(), &settings)
    }

    fn text(&self, pem: &Pem, read: fn(&Held) -> Result<String, TlsError>) -> Result<Secret, TlsError> {
        match pem {
            Pem::Inline(text) => Ok(text.clone()),
            Pem::File(name) => match self.held.get().and_then(|held| held.get(name)) {
                Some(held) => read(held).map(Secret::new),
                None => read(&Held::new(self.files.join(name))).map(Secret::new),
            },
        }
    }
}
