//! The connection pool of one call: connections that are kept for further requests.
//!
//! A request uses a kept connection only if it has the same key and its address is allowed for the
//! request. So every check of a new connection also holds for a kept one.

use crate::net::connection::Connection;
use crate::net::proxy::Proxy;
use rustls::ClientConfig;
use rustls::client::Resumption;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Tls;

/// A kept connection is closed after this time without a request.
const MAX_IDLE: Duration = Duration::from_secs(30);
/// The most connections that are kept at once.
const MAX_KEPT: usize = 16;
/// The number of TLS sessions to resume for each key and address.
const SESSIONS_PER_KEY: usize = 2;

/// What two requests must have in common in order to share a connection, beside its address.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ConnectionKey {
    /// Scheme, host and port.
    pub origin: String,
    /// The TLS settings; `None` for http://.
    pub tls: Option<Tls>,
    /// The proxy that connected; `None` if the connection is direct.
    pub proxy: Option<Proxy>,
    /// Whose credentials the requests carry: the name of a login or of the secrets. A server may
    /// remember on a connection who has authenticated.
    pub credential_owner: String,
}

impl ConnectionKey {
    /// Returns true if a connection with the other key may carry this request.
    fn matches(&self, other: &ConnectionKey) -> bool {
        let tls = Check::KeptTls.accepts(self.tls == other.tls);
        let owner = Check::KeptIdentity.accepts(self.credential_owner == other.credential_owner);
        self.origin == other.origin && self.proxy == other.proxy && tls && owner
    }
}

/// The kept connections, and what resumes TLS sessions of closed ones.
#[derive(Default)]
pub struct ConnectionPool(Mutex<State>);

#[derive(Default)]
struct State {
    /// Connections without a request in progress, the oldest first.
    idle: Vec<IdleConnection>,
    /// TLS configurations by key and address. Each has its own sessions, because a resumed session
    /// skips the check of the server's certificate.
    configs: Vec<(ConnectionKey, IpAddr, Arc<ClientConfig>)>,
}

struct IdleConnection {
    key: ConnectionKey,
    connection: Connection,
    until: Instant,
}

impl ConnectionPool {
    /// Returns a kept connection to one of these addresses that can carry a request with this key. Closes those on
    /// which the server sent something unasked. The HTTP library refuses those, too, before it sends anything.
    pub(super) async fn take(&self, key: &ConnectionKey, addresses: &[IpAddr]) -> Option<Connection> {
        loop {
            let mut connection = self.take_newest(key, addresses)?;
            if connection.stream.is_quiet().await {
                return Some(connection);
            }
        }
    }

    fn take_newest(&self, key: &ConnectionKey, addresses: &[IpAddr]) -> Option<Connection> {
        let mut state = self.lock();
        let now = Instant::now();
        state.idle.retain(|idle| idle.until > now);
        let fits = |idle: &IdleConnection| {
            let allowed = addresses.contains(&idle.connection.address);
            key.matches(&idle.key) && Check::KeptAddress.accepts(allowed)
        };
        let index = state.idle.iter().rposition(fits)?;
        Some(state.idle.remove(index).connection)
    }

    /// Keeps the connection for further requests with this key. `server_limit` is the time after which the
    /// server closes it, if it said so.
    pub(super) fn put(&self, key: ConnectionKey, connection: Connection, server_limit: Option<Duration>) {
        // A server counts from the end of its response, so it closes earlier than it seems from here.
        let limit = server_limit.map_or(MAX_IDLE, |limit| limit.saturating_sub(Duration::from_secs(1)).min(MAX_IDLE));
        let mut state = self.lock();
        if state.idle.len() >= MAX_KEPT {
            state.idle.remove(0);
        }
        state.idle.push(IdleConnection { key, connection, until: Instant::now() + limit });
    }

    /// Returns the TLS configuration for a new connection: that of the settings, with the sessions of
    /// this key and address alone.
    pub(super) fn tls_config(
        &self,
        key: &ConnectionKey,
        address: IpAddr,
        settings: &Arc<ClientConfig>,
    ) -> Arc<ClientConfig> {
        let mut state = self.lock();
        let known = state.configs.iter().find(|(k, a, _)| k.matches(key) && *a == address);
        if let Some((_, _, config)) = known {
            return Arc::clone(config);
        }
        let mut config = ClientConfig::clone(settings);
        config.resumption = Resumption::in_memory_sessions(SESSIONS_PER_KEY);
        let config = Arc::new(config);
        state.configs.push((key.clone(), address, Arc::clone(&config)));
        config
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
