//! Resolves names without the C library, because the program is static and the
//! library's name service switch loads code at run time.
//!
//! Like the C library, it reads the hosts file and then asks the name servers of
//! `resolv.conf` in their order. Unlike it, it takes at most five seconds and
//! returns at most 32 addresses. Whether an address is allowed is checked later.

pub(crate) mod files;
#[cfg(test)]
mod tests;

use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::preopened::PreopenedFile;
use domain::base::iana::{Rcode, Rtype};
use domain::base::name::Name;
use domain::base::{Message, ParsedRecord};
use domain::rdata::{A, Aaaa};
use domain::resolv::StubResolver;
use domain::resolv::stub::conf::{ResolvConf, ResolvOptions, ServerConf, Transport};
use files::Servers;
use futures_util::future::{BoxFuture, FutureExt, select};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
#[cfg(test)]
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;

const MAX_ADDRESSES: usize = 32;
const MAX_TIME: Duration = Duration::from_secs(5);
/// The time to wait for the second address family once the first has been answered. Some
/// name servers never answer the query for one of the two.
const SECOND_ANSWER: Duration = Duration::from_millis(500);
const MAX_FILE: usize = 1024 * 1024;

/// The files of this machine, opened once per process.
static SYSTEM: LazyLock<[Arc<PreopenedFile>; 2]> =
    LazyLock::new(|| ["/etc/hosts", "/etc/resolv.conf"].map(|path| Arc::new(PreopenedFile::new(path))));

/// Resolves the names of hosts.
#[derive(Clone, Debug)]
pub struct Resolver {
    hosts: Arc<PreopenedFile>,
    conf: Arc<PreopenedFile>,
    port: u16,
}

/// The reason why a name server returned no address.
enum QueryError {
    /// The name has no address.
    NoAddress,
    /// The query failed; another server may succeed.
    Failed(String),
}

/// The reason why a lookup found no address.
struct LookupError {
    /// True if the name certainly has no address, false if the lookup failed.
    definite: bool,
    why: String,
}

impl LookupError {
    fn temporary(why: String) -> LookupError {
        LookupError { definite: false, why }
    }
}

impl Resolver {
    /// Uses the files of this machine, which are read at each lookup.
    pub fn system() -> Self {
        let [hosts, conf] = SYSTEM.clone();
        Resolver { hosts, conf, port: 53 }
    }

    /// Opens the files of this machine, for lookups after lock-down. Returns their number.
    pub fn open_system_files() -> usize {
        SYSTEM.iter().for_each(|file| file.open());
        SYSTEM.len()
    }

    #[cfg(test)]
    pub(super) fn with_files(hosts: PathBuf, conf: PathBuf, port: u16) -> Self {
        let [hosts, conf] = [hosts, conf].map(|path| Arc::new(PreopenedFile::new(path)));
        Resolver { hosts, conf, port }
    }

    /// Returns the addresses of a host. IPv4 addresses come first, because endpoints of clouds
    /// without a working IPv6 route are far more common than the opposite.
    pub async fn resolve(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, HttpError> {
        self.look_up(host, deadline).await.map_err(|error| dns_error(host, &error.why))
    }

    /// Returns the addresses of a host, an empty list if it certainly has none, or `None` if the
    /// lookup failed.
    pub(super) async fn definite_addresses(&self, host: &str, deadline: Instant) -> Option<Vec<IpAddr>> {
        match self.look_up(host, deadline).await {
            Err(LookupError { definite: false, .. }) => None,
            found => Some(found.unwrap_or_default()),
        }
    }

    async fn look_up(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, LookupError> {
        let is_localhost = host == "localhost" || host.ends_with(".localhost");
        if Check::LocalhostName.choose(is_localhost, false) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let mut found = files::addresses_in_hosts(&read(&self.hosts), host);
        if found.is_empty() {
            let budget = MAX_TIME.min(deadline.saturating_duration_since(Instant::now()));
            found = match tokio::time::timeout(budget, self.query_servers(host, budget)).await {
                Ok(found) => found?,
                Err(_) => {
                    return Err(LookupError::temporary(format!(
                        "no name server answered within {:.1} s",
                        budget.as_secs_f32()
                    )));
                }
            };
        }
        found.sort_by_key(IpAddr::is_ipv6);
        found.dedup();
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }

    /// Queries every server for every name that the host can mean, more than once, because a
    /// lost datagram must not fail a call.
    async fn query_servers(&self, host: &str, budget: Duration) -> Result<Vec<IpAddr>, LookupError> {
        let servers = Servers::parse(&read(&self.conf));
        let mut names = vec![host.to_owned()];
        if !host.contains('.') {
            names.extend(servers.search.iter().map(|suffix| format!("{host}.{suffix}")));
        }
        let rounds = if servers.addresses.len() == 1 { 3 } else { 2 };
        let timeout = budget / (rounds * servers.addresses.len() as u32);
        let mut error = LookupError { definite: true, why: String::new() };
        for name in names {
            let name = parse_absolute_name(&name).map_err(|why| LookupError { definite: true, why })?;
            let mut failed = None;
            let tries = servers.addresses.iter().cycle().take(servers.addresses.len() * rounds as usize);
            for address in tries {
                let server = SocketAddr::new(*address, self.port);
                match query_server(server, servers.tcp_only, &name, timeout).await {
                    Ok(found) => return Ok(found),
                    Err(QueryError::NoAddress) => {
                        error.why = format!("the name server {address} reports that the name has no address");
                        failed = None;
                        break;
                    }
                    Err(QueryError::Failed(reason)) => failed = Some(format!("name server {address}: {reason}")),
                }
            }
            if let Some(why) = failed {
                error = LookupError::temporary(why);
            }
        }
        Err(error)
    }
}

async fn query_server(
    server: SocketAddr,
    tcp_only: bool,
    name: &Name<Vec<u8>>,
    timeout: Duration,
) -> Result<Vec<IpAddr>, QueryError> {
    let transport = if tcp_only { Transport::Tcp } else { Transport::UdpTcp };
    let stub = StubResolver::from_conf(ResolvConf {
        servers: vec![ServerConf::new(server, transport)],
        options: ResolvOptions { timeout, ..ResolvOptions::default() },
    });
    let both = select(query(&stub, name, Rtype::A, timeout), query(&stub, name, Rtype::AAAA, timeout));
    let (first, second) = both.await.into_inner();
    match first {
        Ok(mut found) => {
            if let Ok(Ok(more)) = tokio::time::timeout(SECOND_ANSWER, second).await {
                found.extend(more);
            }
            Ok(found)
        }
        Err(miss) => match (miss, second.await) {
            (_, Ok(found)) => Ok(found),
            (QueryError::NoAddress, Err(QueryError::NoAddress)) => Err(QueryError::NoAddress),
            (QueryError::Failed(why), _) | (_, Err(QueryError::Failed(why))) => Err(QueryError::Failed(why)),
        },
    }
}

/// Sends one query. `Ok` holds at least one address.
fn query<'a>(
    stub: &'a StubResolver,
    name: &'a Name<Vec<u8>>,
    kind: Rtype,
    timeout: Duration,
) -> BoxFuture<'a, Result<Vec<IpAddr>, QueryError>> {
    async move {
        let answer = match tokio::time::timeout(timeout, stub.query((name, kind))).await {
            Ok(Ok(answer)) => answer.into_message(),
            Ok(Err(error)) => return Err(QueryError::Failed(error.to_string())),
            Err(_) => return Err(QueryError::Failed("no answer".into())),
        };
        match answer.header().rcode() {
            Rcode::NOERROR => {}
            Rcode::NXDOMAIN => return Err(QueryError::NoAddress),
            other => return Err(QueryError::Failed(format!("it answered {other}"))),
        }
        let found = addresses(&answer).ok_or_else(|| QueryError::Failed("its response is malformed".into()))?;
        if found.is_empty() { Err(QueryError::NoAddress) } else { Ok(found) }
    }
    .boxed()
}

/// Returns the addresses of the queried name, or of the name that it is an alias of. Ignores
/// all other records. Returns `None` if the response is malformed.
pub(crate) fn addresses(answer: &Message<bytes::Bytes>) -> Option<Vec<IpAddr>> {
    let owner = answer.canonical_name()?;
    let mut found = Vec::new();
    for record in answer.answer().ok()? {
        let record: ParsedRecord<'_, bytes::Bytes> = record.ok()?;
        if Check::DnsOwner.refuses(record.owner() != owner) || found.len() == MAX_ADDRESSES {
            continue;
        }
        if let Ok(Some(a)) = record.to_record::<A>() {
            found.push(a.data().addr().into());
        } else if let Ok(Some(aaaa)) = record.to_record::<Aaaa>() {
            found.push(aaaa.data().addr().into());
        }
    }
    Some(found)
}

/// Rejects characters that host names do not have, because the parser of `domain` reads escapes.
fn parse_absolute_name(name: &str) -> Result<Name<Vec<u8>>, String> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    plain.then(|| format!("{name}.").parse().ok()).flatten().ok_or_else(|| "it is not a valid DNS name".to_owned())
}

fn read(file: &PreopenedFile) -> String {
    String::from_utf8_lossy(&file.read(MAX_FILE).unwrap_or_default()).into_owned()
}

pub(super) fn dns_error(host: &str, why: &str) -> HttpError {
    HttpError::failed(
        Who::Iaas,
        HttpErrorKind::Dns,
        format_args!(
            "the name `{host}` could not be resolved; check the name, and the name servers in /etc/resolv.conf"
        ),
    )
    .with_detail(why)
}
