//! One request over one connection, and its response, with limits for time and
//! size. It connects only to the addresses that it is given.
//!
//! No redirect is followed, no connection is reused, nothing is decompressed,
//! retried or read from the environment. The policy was applied before: this
//! module does not know it. Errors name only the origin and path of a URL.

mod error_context;
mod request_body;

pub use request_body::SendBody;

use crate::limits::Limits;
use crate::net::error::HttpError;
#[cfg(feature = "mutation-testing")]
use crate::net::mutants;
use crate::net::proxy::tunnel::{ResolvedProxy, TunnelError};
use error_context::ErrorContext;
use request_body::Progress;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};
use rustls::ClientConfig;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::time::timeout_at;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Destination;

/// The parser accepts so many headers beyond the limit, so that the error can name the
/// limit. More headers than that are a protocol error.
const HEADERS_TO_COUNT: usize = 64;
/// If connecting takes until the deadline, the timeout of the connection must come first,
/// because its error says that nothing was sent.
const GRACE: Duration = Duration::from_millis(50);

/// The most room for what a server sends back of a request, which bounds the memory of a call.
const MAX_ROOM: u64 = 64 * 1024 * 1024;
/// The room for agent settings in a response, in the longest encoding of their bytes.
const ROOM_FOR_SETTINGS: u64 = 1024 * 1024;
/// The room for a secret in the headers of a response, which is the largest token of a login.
const ROOM_FOR_HEADERS: usize = 64 * 1024;

/// The value of `User-Agent`.
const AGENT: &str = concat!("wasm-cpi/", env!("CARGO_PKG_VERSION"));

/// The interval at which the progress of sending is checked.
const LOOK: Duration = Duration::from_millis(500);

/// A request that passed all checks, and where and how to send it.
pub struct Exchange {
    pub method: Method,
    /// Its host is also the name that the TLS certificate must be valid for.
    pub destination: Destination,
    pub headers: HeaderMap,
    pub body: SendBody,
    /// The allowed addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// The proxy that connects to these addresses; `None` connects directly.
    pub proxy: Option<ResolvedProxy>,
    pub tls: ClientConfig,
    pub caps: Caps,
    pub deadline: Instant,
}

/// The limits of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    pub connect: Duration,
    pub first_byte: Duration,
    pub idle: Duration,
    /// The maximum size of the response's body in bytes, then the name and value of the limit
    /// in the config that it comes from.
    pub body: u64,
    pub body_limit: (&'static str, u64),
    pub headers: usize,
    pub header_bytes: usize,
    /// What body and headers may have beyond their limits. The caller applies the limits to what is
    /// left of the response when it has removed what the guest must not see.
    pub room: Room,
}

/// The bytes that a response may have beyond its limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    pub body: u64,
    pub headers: usize,
}

/// A complete response.
pub struct Received {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The address that responded.
    pub peer: Option<IpAddr>,
}

impl Caps {
    pub fn of(limits: &Limits) -> Self {
        // Adding a configured duration to a time must not overflow.
        let seconds = |seconds: u64| Duration::from_secs(seconds.min(24 * 3600));
        Caps {
            connect: seconds(limits.connect_seconds),
            first_byte: seconds(limits.first_byte_seconds),
            idle: seconds(limits.idle_seconds),
            body: limits.http_response_mib.saturating_mul(1024 * 1024),
            body_limit: ("http_response_mib", limits.http_response_mib),
            headers: usize::try_from(limits.http_headers).unwrap_or(usize::MAX),
            header_bytes: usize::try_from(limits.header_kib.saturating_mul(1024)).unwrap_or(usize::MAX),
            room: Room::default(),
        }
    }

    /// Returns the same limits for a response of which a part will be removed. A server may send
    /// back all that a request holds, with its secrets, and that must not reach a limit.
    pub fn with_room(self, limits: &Limits) -> Self {
        let request = limits.http_request_mib.saturating_mul(1024 * 1024);
        let body = request.saturating_mul(2).min(MAX_ROOM).saturating_add(ROOM_FOR_SETTINGS);
        let room = Room { body, headers: self.header_bytes.saturating_add(ROOM_FOR_HEADERS) };
        Caps { room: Check::ResponseRoom.choose(room, Room::default()), ..self }
    }

    /// Returns the error of a response whose body is larger than its limit.
    pub fn body_too_long(&self, target: impl fmt::Display) -> HttpError {
        HttpError::limit(self.body_limit.0, self.body_limit.1, format_args!("the response to {target}"))
    }

    /// Returns the error of a response whose headers are larger than their limit.
    pub fn headers_too_long(&self, target: impl fmt::Display) -> HttpError {
        let what = format_args!("the headers of the response to {target}");
        HttpError::limit("header_kib", self.header_bytes / 1024, what)
    }
}

/// Resolves one name to the addresses that were checked, and no other name.
struct FixedAddresses {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Resolve for FixedAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        #[cfg(feature = "mutation-testing")]
        if Check::ResolveOnce.is_off() {
            return Box::pin(mutants::resolve_again(name.as_str().to_owned()));
        }
        let known = if name.as_str().eq_ignore_ascii_case(&self.host) { self.addresses.clone() } else { Vec::new() };
        Box::pin(std::future::ready(Ok(Box::new(known.into_iter()) as Addrs)))
    }
}

impl Exchange {
    /// Sends the request and returns the complete response.
    pub async fn run(self) -> Result<Received, HttpError> {
        let Exchange { method, destination, mut headers, body, addresses, proxy, tls, caps, deadline } = self;
        let context = ErrorContext::new(&method, &destination);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(context.no_time_left());
        }
        let (peer, ways) = (addresses.first().copied(), (addresses.clone(), tls.clone()));
        let client =
            client(&destination, addresses, tls, &caps, left).map_err(|error| context.client_not_built(&error))?;

        Check::IdentityRequested
            .perform(|| headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity")));
        if let Some(length) = body.announced(&method) {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        let progress = Progress::new(&caps);
        let mut request = client.request(method, destination.to_url()).headers(headers);
        if let Some(body) = body.monitored(progress.clone()) {
            request = request.body(body);
        }

        let Some(proxy) = proxy else {
            let sending = async { request.send().await.map_err(Failed::Client) };
            let response = await_head(sending, &progress, &context, deadline).await?;
            return receive(response, &caps, &context, deadline).await.map_err(HttpError::after_sending);
        };
        let until = Instant::now() + caps.connect.min(left);
        let connecting = proxy.connect(&destination, &ways.0, ways.1, until);
        let connection = match timeout_at(until.into(), connecting).await {
            Ok(connected) => connected.map_err(|error| context.tunnel_failed(&error))?,
            Err(_) => return Err(context.tunnel_timed_out(&proxy.proxy)),
        };
        let request = request.build().map_err(|error| context.client_not_built(&error))?;
        let sent = connection.send(request, &destination, AGENT, caps.headers.saturating_add(HEADERS_TO_COUNT));
        let sending = async { sent.await.map_err(Failed::Tunnel) };
        let response = await_head(sending, &progress, &context, deadline).await?;
        let received = receive(response, &caps, &context, deadline).await.map_err(HttpError::after_sending)?;
        Ok(Received { peer, ..received })
    }
}

/// The error of the client that sent the request: directly, or through a proxy's tunnel.
enum Failed {
    Client(reqwest::Error),
    Tunnel(TunnelError),
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only place that builds a client, without redirects, proxies and retries"
)]
fn client(
    destination: &Destination,
    addresses: Vec<IpAddr>,
    tls: ClientConfig,
    caps: &Caps,
    left: Duration,
) -> Result<Client, reqwest::Error> {
    let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, destination.port())).collect();
    Check::ProxyEnvironment
        .perform(|| Client::builder().no_proxy())
        .unwrap_or_else(Client::builder)
        .user_agent(AGENT)
        .redirect(Check::Redirects.choose(Policy::none(), Policy::default()))
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(caps.headers.saturating_add(HEADERS_TO_COUNT))
        .pool_max_idle_per_host(0)
        .connect_timeout(caps.connect.min(left))
        .dns_resolver(FixedAddresses { host: destination.host().to_string(), addresses })
        .tls_backend_preconfigured(tls)
        .build()
}

/// Sends the request and waits for the head of the response, as long as the server makes progress.
async fn await_head(
    sending: impl Future<Output = Result<Response, Failed>>,
    progress: &Progress,
    context: &ErrorContext,
    deadline: Instant,
) -> Result<Response, HttpError> {
    let mut sending = Box::pin(sending);
    loop {
        // Each piece of the body can move `stalls_at` in either direction.
        let look = (Instant::now() + LOOK).min(progress.stalls_at()).min(deadline + GRACE);
        match timeout_at(look.into(), &mut sending).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(Failed::Client(error))) => return Err(context.send_failed(&error, progress)),
            Ok(Err(Failed::Tunnel(error))) => return Err(context.tunnelled_send_failed(&error, progress)),
            Err(_) if Instant::now() >= deadline + GRACE => return Err(context.deadline_reached().after_sending()),
            Err(_) if Instant::now() >= progress.stalls_at() => return Err(context.stalled(progress).after_sending()),
            Err(_) => {}
        }
    }
}

async fn receive(
    mut response: Response,
    caps: &Caps,
    context: &ErrorContext,
    deadline: Instant,
) -> Result<Received, HttpError> {
    Check::SwitchedProtocol.ensure(response.status() != StatusCode::SWITCHING_PROTOCOLS, || {
        context.protocol("the server switched to another protocol, which the request did not ask for")
    })?;
    let has = |name| response.headers().contains_key(name);
    Check::FramingTwice.ensure(!(has(CONTENT_LENGTH) && has(TRANSFER_ENCODING)), || {
        context.protocol("it has both Content-Length and Transfer-Encoding, so its end is ambiguous")
    })?;
    let headers = head(response.headers(), caps, context)?;
    let most = caps.body.saturating_add(caps.room.body);
    if response.content_length().is_some_and(|length| length > most) {
        return Err(caps.body_too_long(context));
    }
    let mut body = Vec::new();
    loop {
        let until = deadline.min(Instant::now() + caps.idle);
        let chunk = match timeout_at(until.into(), response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break,
            Ok(Err(error)) => {
                Check::Truncation.ensure(false, || context.receive_failed(&error))?;
                break;
            }
            Err(_) if Instant::now() >= deadline => return Err(context.deadline_reached()),
            Err(_) => return Err(context.idle_timed_out(caps.idle)),
        };
        if chunk.len() as u64 > most - body.len() as u64 {
            return Err(caps.body_too_long(context));
        }
        body.extend_from_slice(&chunk);
    }
    let peer = response.remote_addr().map(|address| address.ip());
    Ok(Received { status: response.status().as_u16(), headers, body, peer })
}

fn head(headers: &HeaderMap, caps: &Caps, context: &ErrorContext) -> Result<Vec<(String, String)>, HttpError> {
    if headers.len() > caps.headers {
        let what = format_args!("the number of headers of the response to {context}");
        return Err(HttpError::limit("http_headers", caps.headers, what));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > caps.header_bytes.saturating_add(caps.room.headers) {
        return Err(caps.headers_too_long(context));
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect())
}
