//! Names to addresses, without the C library: the binary is static, and its
//! name service switch would load code at run time.
//!
//! Like the C library, it asks the hosts file and then the name servers of
//! `resolv.conf`, in their order; unlike it, in five seconds at most and for 32
//! addresses at most. It judges nothing: `addresses` does, on what this answers.

pub(crate) mod files;
#[cfg(test)]
mod tests;

use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::held::Held;
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
/// Some name servers never answer the question for one of the two families:
/// once one answer is here, the other gets this long.
const SECOND_ANSWER: Duration = Duration::from_millis(500);
const MAX_FILE: usize = 1024 * 1024;

/// This machine's own files, one of each per process.
static SYSTEM: LazyLock<[Arc<Held>; 2]> =
    LazyLock::new(|| ["/etc/hosts", "/etc/resolv.conf"].map(|path| Arc::new(Held::new(path))));

#[derive(Clone, Debug)]
pub struct Resolver {
    hosts: Arc<Held>,
    conf: Arc<Held>,
    port: u16,
}

/// Why a server gave no address.
enum Miss {
    /// It knows that there is none.
    NoAddress,
    /// It does not know, another one may.
    Failed(String),
}

/// Why there is no address.
struct Unresolved {
    /// Somebody who knows says that there is none.
    certain: bool,
    why: String,
}

impl Unresolved {
    fn now(why: String) -> Unresolved {
        Unresolved { certain: false, why }
    }
}

impl Resolver {
    /// With this machine's own files. They are read at each lookup, not here.
    pub fn system() -> Self {
        let [hosts, conf] = SYSTEM.clone();
        Resolver { hosts, conf, port: 53 }
    }

    /// Opens this machine's files, for lookups when nothing can be opened any more.
    /// Answers how many there are.
    pub fn hold_system() -> usize {
        SYSTEM.iter().for_each(|file| file.hold());
        SYSTEM.len()
    }

    #[cfg(test)]
    pub(super) fn with_files(hosts: PathBuf, conf: PathBuf, port: u16) -> Self {
        let [hosts, conf] = [hosts, conf].map(|path| Arc::new(Held::new(path)));
        Resolver { hosts, conf, port }
    }

    /// The addresses of a host: IPv4 first, as clouds' endpoints without a
    /// working IPv6 route are far commoner than the opposite.
    pub async fn resolve(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, HttpError> {
        self.look_up(host, deadline).await.map_err(|unresolved| failed(host, &unresolved.why))
    }

    /// The same; none if it is known that there is none, `None` if nobody knows.
    pub(super) async fn known(&self, host: &str, deadline: Instant) -> Option<Vec<IpAddr>> {
        match self.look_up(host, deadline).await {
            Err(Unresolved { certain: false, .. }) => None,
            found => Some(found.unwrap_or_default()),
        }
    }

    async fn look_up(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, Unresolved> {
        if Check::LocalhostName.on() && (host == "localhost" || host.ends_with(".localhost")) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let mut found = files::in_hosts(&read(&self.hosts), host);
        if found.is_empty() {
            let budget = MAX_TIME.min(deadline.saturating_duration_since(Instant::now()));
            found = match tokio::time::timeout(budget, self.ask_all(host, budget)).await {
                Ok(found) => found?,
                Err(_) => return Err(Unresolved::now(format!("no answer within {:.1} s", budget.as_secs_f32()))),
            };
        }
        found.sort_by_key(IpAddr::is_ipv6);
        found.dedup();
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }

    /// Every name that the host can mean, at every server, more than once: a
    /// lost datagram must not fail a call.
    async fn ask_all(&self, host: &str, budget: Duration) -> Result<Vec<IpAddr>, Unresolved> {
        let servers = Servers::parse(&read(&self.conf));
        let mut names = vec![host.to_owned()];
        if !host.contains('.') {
            names.extend(servers.search.iter().map(|suffix| format!("{host}.{suffix}")));
        }
        let rounds = if servers.addresses.len() == 1 { 3 } else { 2 };
        let patience = budget / (rounds * servers.addresses.len() as u32);
        let mut unresolved = Unresolved { certain: true, why: String::new() };
        for name in names {
            let name = absolute(&name).map_err(|why| Unresolved { certain: true, why })?;
            let mut failed = None;
            let tries = servers.addresses.iter().cycle().take(servers.addresses.len() * rounds as usize);
            for address in tries {
                let server = SocketAddr::new(*address, self.port);
                match ask(server, servers.tcp_only, &name, patience).await {
                    Ok(found) => return Ok(found),
                    Err(Miss::NoAddress) => {
                        unresolved.why = format!("{address} says that it has no address");
                        failed = None;
                        break;
                    }
                    Err(Miss::Failed(reason)) => failed = Some(format!("name server {address}: {reason}")),
                }
            }
            if let Some(why) = failed {
                unresolved = Unresolved::now(why);
            }
        }
        Err(unresolved)
    }
}

async fn ask(
    server: SocketAddr,
    tcp_only: bool,
    name: &Name<Vec<u8>>,
    patience: Duration,
) -> Result<Vec<IpAddr>, Miss> {
    let transport = if tcp_only { Transport::Tcp } else { Transport::UdpTcp };
    let stub = StubResolver::from_conf(ResolvConf {
        servers: vec![ServerConf::new(server, transport)],
        options: ResolvOptions { timeout: patience, ..ResolvOptions::default() },
    });
    let both = select(one(&stub, name, Rtype::A, patience), one(&stub, name, Rtype::AAAA, patience));
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
            (Miss::NoAddress, Err(Miss::NoAddress)) => Err(Miss::NoAddress),
            (Miss::Failed(why), _) | (_, Err(Miss::Failed(why))) => Err(Miss::Failed(why)),
        },
    }
}

/// One question; `Ok` holds at least one address.
fn one<'a>(
    stub: &'a StubResolver,
    name: &'a Name<Vec<u8>>,
    kind: Rtype,
    patience: Duration,
) -> BoxFuture<'a, Result<Vec<IpAddr>, Miss>> {
    async move {
        let answer = match tokio::time::timeout(patience, stub.query((name, kind))).await {
            Ok(Ok(answer)) => answer.into_message(),
            Ok(Err(error)) => return Err(Miss::Failed(error.to_string())),
            Err(_) => return Err(Miss::Failed("no answer".into())),
        };
        match answer.header().rcode() {
            Rcode::NOERROR => {}
            Rcode::NXDOMAIN => return Err(Miss::NoAddress),
            other => return Err(Miss::Failed(format!("it answered {other}"))),
        }
        let found = addresses(&answer).ok_or_else(|| Miss::Failed("its answer makes no sense".into()))?;
        if found.is_empty() { Err(Miss::NoAddress) } else { Ok(found) }
    }
    .boxed()
}

/// The addresses of the asked name, or of what it is an alias of; other
/// records in the answer do not count.
pub(crate) fn addresses(answer: &Message<bytes::Bytes>) -> Option<Vec<IpAddr>> {
    let owner = answer.canonical_name()?;
    let mut found = Vec::new();
    for record in answer.answer().ok()? {
        let record: ParsedRecord<'_, bytes::Bytes> = record.ok()?;
        if (Check::DnsOwner.on() && record.owner() != owner) || found.len() == MAX_ADDRESSES {
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

/// The parser of `domain` reads escapes, which no host's name has.
fn absolute(name: &str) -> Result<Name<Vec<u8>>, String> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    plain.then(|| format!("{name}.").parse().ok()).flatten().ok_or_else(|| "it is no name for the DNS".to_owned())
}

fn read(file: &Held) -> String {
    String::from_utf8_lossy(&file.read(MAX_FILE).unwrap_or_default()).into_owned()
}

fn failed(host: &str, why: &str) -> HttpError {
    HttpError::new(
        HttpErrorKind::Dns,
        format!(
            "iaas: the name `{host}` was not resolved: {why}; check the name, and the name servers in /etc/resolv.conf"
        ),
    )
}
