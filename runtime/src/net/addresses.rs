//! The addresses of a request: resolves each name once per call, and again only after no connection to its addresses
//! could be opened. Judges the addresses for each request.

use super::transport::Route;
use crate::net::error::HttpError;
use crate::net::local_addresses;
use crate::net::resolver::{self, Resolver};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout_at;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::addresses;
use wasm_cpi_policy::destination::{Destination, Host};
use wasm_cpi_policy::{CLOSED_SERVER, DenialReason, Policy};

/// The time to connect is divided among the addresses, so each must get enough of it.
const MAX_ADDRESSES: usize = 8;
/// The time for resolving the name of a forbidden endpoint.
const FORBIDDEN_LOOKUP_TIME: Duration = Duration::from_secs(5);

/// Decides which addresses the requests of one call may connect to.
pub(super) struct AddressJudge {
    policy: Arc<Policy>,
    allow_local: bool,
    pub(super) resolver: Resolver,
    /// The addresses of hosts, as they were first resolved in this call. Requests that are sent at once wait
    /// for the same lookup.
    resolved: Mutex<HashMap<String, Arc<OnceCell<Vec<IpAddr>>>>>,
    /// Addresses of endpoints that no grant can open, by the names of the endpoints.
    forbidden: Mutex<HashMap<String, Vec<IpAddr>>>,
}

/// What was decided about the addresses of a destination.
pub(super) struct JudgedAddresses {
    /// The first allowed address. If none is allowed, the forbidden address or the first one.
    pub address: Option<IpAddr>,
    /// A further address of the name that the request may not reach.
    pub denied: Option<IpAddr>,
    /// The addresses that may be connected to, or why there are none.
    pub allowed: Result<Vec<IpAddr>, HttpError>,
}

/// Whether an address belongs to an endpoint that no grant can open.
enum Forbidden<'a> {
    No,
    /// The address of the endpoint with this name.
    At(IpAddr, &'a str),
    /// The endpoint of this name cannot be resolved now.
    Unknown(&'a str),
}

impl AddressJudge {
    pub(super) fn new(policy: Arc<Policy>, allow_local: bool) -> Self {
        let (resolver, resolved, forbidden) = (Resolver::system(), Mutex::default(), Mutex::default());
        AddressJudge { policy, allow_local, resolver, resolved, forbidden }
    }

    /// Resolves the destination and judges its addresses.
    pub(super) async fn resolve(
        &self,
        route: &Route<'_>,
        destination: &Destination,
        deadline: Instant,
    ) -> JudgedAddresses {
        match self.lookup(destination.host(), deadline).await {
            Ok(found) => self.judge(route, destination, found).await,
            Err(error) => JudgedAddresses { address: None, denied: None, allowed: Err(error) },
        }
    }

    async fn judge(&self, route: &Route<'_>, destination: &Destination, found: Vec<IpAddr>) -> JudgedAddresses {
        let denied = |why: &str| {
            let what = format!("{} does not reach {destination}: {why}", route.name);
            HttpError::denied(DenialReason::Address, what)
        };
        let none = |address, error| JudgedAddresses { address, denied: None, allowed: Err(error) };
        let first = found.first().copied();
        let ends = addresses::ends(&found);
        // One address of a forbidden endpoint makes all addresses suspect.
        match self.find_forbidden(&ends, destination.port()).await {
            Forbidden::No => {}
            Forbidden::At(address, what) => {
                let error = || denied(CLOSED_SERVER).with_detail(format!("{address} is {what}"));
                if let Err(error) = Check::EndpointByAddress.refuse(error) {
                    return none(Some(address), error);
                }
            }
            Forbidden::Unknown(what) => {
                let why = format!(
                    "it has the port of {what}, whose name cannot be resolved now, so the two cannot be distinguished; \
                     repair the name servers, or name that endpoint by its address in the config"
                );
                let error = denied(CLOSED_SERVER).with_detail(why).refused_by(Check::EndpointUnresolved);
                return none(first, error);
            }
        }
        let local = local_addresses::find_in(&ends);
        let mut first_denied = None;
        let mut allowed = Vec::new();
        for address in found {
            match addresses::judge(address, route.addresses, self.allow_local, &local) {
                Ok(()) => allowed.push(address),
                Err(why) => first_denied = first_denied.or(Some((address, why))),
            }
        }
        if allowed.is_empty() {
            let error = match first_denied {
                Some((_, why)) => denied(&why.to_string()).refused_by(why.check()),
                None => denied("it has no address"),
            };
            return none(first, error);
        }
        allowed.truncate(MAX_ADDRESSES);
        let denied = first_denied.map(|(address, _)| address);
        JudgedAddresses { address: allowed.first().copied(), denied, allowed: Ok(allowed) }
    }

    /// Searches these canonical addresses for one of a forbidden endpoint.
    async fn find_forbidden(&self, found: &[IpAddr], port: u16) -> Forbidden<'_> {
        let literal = |address: &IpAddr| Some(Forbidden::At(*address, self.policy.forbids(*address, port)?));
        if let Some(hit) = found.iter().find_map(literal) {
            return hit;
        }
        for (name, what) in self.policy.forbidden_names(port) {
            let theirs = self.forbidden_addresses(name).await;
            if Check::EndpointUnresolved.refuses(theirs.is_none()) {
                return Forbidden::Unknown(what);
            }
            let theirs = theirs.unwrap_or_default();
            if let Some(address) = found.iter().find(|address| theirs.contains(address)) {
                return Forbidden::At(*address, what);
            }
        }
        Forbidden::No
    }

    /// Returns the addresses of a forbidden endpoint; `None` if they cannot be determined now.
    /// The time for this does not depend on the guest's timeout.
    async fn forbidden_addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        let known = lock(&self.forbidden).get(name).cloned();
        if known.is_some() {
            return known;
        }
        let found = self.resolver.definite_addresses(name, Instant::now() + FORBIDDEN_LOOKUP_TIME).await?;
        let found: Vec<IpAddr> = found.iter().map(IpAddr::to_canonical).collect();
        lock(&self.forbidden).insert(name.to_owned(), found.clone());
        Some(found)
    }

    /// Returns the addresses of a host, which are not judged. They stay the same during a call, unless the host is
    /// forgotten.
    pub(super) async fn lookup(&self, host: &Host, deadline: Instant) -> Result<Vec<IpAddr>, HttpError> {
        let name = match host {
            Host::Ip(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let known = Arc::clone(lock(&self.resolved).entry(name.clone()).or_default());
        let found = known.get_or_try_init(|| self.resolver.resolve(name, deadline));
        // Another request may wait for the name servers for longer than this one may.
        match timeout_at(deadline.into(), found).await {
            Ok(found) => found.cloned(),
            Err(_) => Err(resolver::dns_error(name, "the time of the request ended before a name server answered")),
        }
    }

    /// Has the next request resolve this host again, because no connection to its addresses could be opened.
    pub(super) fn forget(&self, host: &str) {
        lock(&self.resolved).remove(host);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
