//! One request over one connection, one response: timed, capped, and never
//! anywhere but to the addresses it was given.
//!
//! Nothing is followed, kept, decompressed, retried or taken from the
//! environment. Who may ask for what was decided before: this module knows no
//! policy, and its errors name the origin and path alone.

mod sending;
mod trouble;

pub use sending::SendBody;

use crate::limits::Limits;
use crate::net::error::HttpError;
#[cfg(feature = "holes")]
use crate::net::mutants;
use crate::net::proxy::tunnel::{Through, Unanswered};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};
use rustls::ClientConfig;
use sending::Progress;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::time::timeout_at;
use trouble::Trouble;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Destination;

/// Headers beyond the limit that are still counted, to say so; more than that
/// is no HTTP that anybody means.
const HEADERS_TO_COUNT: usize = 64;
/// When both the connection's and the exchange's time are up, the connection's
/// is to win: it knows that nothing was sent.
const GRACE: Duration = Duration::from_millis(50);

/// What we call ourselves.
const AGENT: &str = concat!("wasm-cpi/", env!("CARGO_PKG_VERSION"));

/// How often the watch over a body that is being sent looks up.
const LOOK: Duration = Duration::from_millis(500);

pub struct Exchange {
    pub method: Method,
    /// Its host is also the name that TLS demands.
    pub destination: Destination,
    pub headers: HeaderMap,
    pub body: SendBody,
    /// What the host resolved to, as far as it may be connected to.
    pub addresses: Vec<IpAddr>,
    /// Who is asked to connect to them, if they are not reached directly.
    pub through: Option<Through>,
    pub tls: ClientConfig,
    pub caps: Caps,
    pub deadline: Instant,
}

#[derive(Clone, Copy, Debug)]
pub struct Caps {
    pub connect: Duration,
    pub first_byte: Duration,
    pub idle: Duration,
    /// Bytes of the response's body, and the limit that this comes from with
    /// its value there.
    pub body: u64,
    pub body_limit: (&'static str, u64),
    pub headers: usize,
    pub header_bytes: usize,
}

pub struct Received {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Who answered.
    pub peer: Option<IpAddr>,
}

impl Caps {
    pub fn of(limits: &Limits) -> Self {
        // Whatever was configured, adding it to a time must not overflow.
        let seconds = |seconds: u64| Duration::from_secs(seconds.min(24 * 3600));
        Caps {
            connect: seconds(limits.connect_seconds),
            first_byte: seconds(limits.first_byte_seconds),
            idle: seconds(limits.idle_seconds),
            body: limits.http_response_mib.saturating_mul(1024 * 1024),
            body_limit: ("http_response_mib", limits.http_response_mib),
            headers: usize::try_from(limits.http_headers).unwrap_or(usize::MAX),
            header_bytes: usize::try_from(limits.header_kib.saturating_mul(1024)).unwrap_or(usize::MAX),
        }
    }
}

/// Answers one name with the addresses that were judged, and no other name.
struct Judged {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        #[cfg(feature = "holes")]
        if !Check::ResolveOnce.on() {
            return Box::pin(mutants::asked_again(name.as_str().to_owned()));
        }
        let answer = if name.as_str().eq_ignore_ascii_case(&self.host) { self.addresses.clone() } else { Vec::new() };
        Box::pin(std::future::ready(Ok(Box::new(answer.into_iter()) as Addrs)))
    }
}

impl Exchange {
    pub async fn run(self) -> Result<Received, HttpError> {
        let Exchange { method, destination, mut headers, body, addresses, through, tls, caps, deadline } = self;
        let trouble = Trouble::new(&method, &destination);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(trouble.no_time());
        }
        let (peer, ways) = (addresses.first().copied(), (addresses.clone(), tls.clone()));
        let client = client(&destination, addresses, tls, &caps, left).map_err(|error| trouble.setup(&error))?;

        if Check::IdentityRequested.on() {
            headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        }
        if let Some(length) = body.announced(&method) {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        let progress = Progress::new(&caps);
        let mut request = client.request(method, destination.to_url()).headers(headers);
        if let Some(body) = body.watched(progress.clone()) {
            request = request.body(body);
        }

        let Some(through) = through else {
            let sending = async { request.send().await.map_err(Failed::Client) };
            let response = await_head(sending, &progress, &trouble, deadline).await?;
            return receive(response, &caps, &trouble, deadline).await.map_err(HttpError::after_sending);
        };
        let until = Instant::now() + caps.connect.min(left);
        let connecting = through.connect(&destination, &ways.0, ways.1, until);
        let connection = match timeout_at(until.into(), connecting).await {
            Ok(connected) => connected.map_err(|error| trouble.tunnel(&error))?,
            Err(_) => return Err(trouble.no_tunnel(&through.proxy)),
        };
        let request = request.build().map_err(|error| trouble.setup(&error))?;
        let sent = connection.send(request, &destination, AGENT, caps.headers.saturating_add(HEADERS_TO_COUNT));
        let sending = async { sent.await.map_err(Failed::Tunnel) };
        let response = await_head(sending, &progress, &trouble, deadline).await?;
        let received = receive(response, &caps, &trouble, deadline).await.map_err(HttpError::after_sending)?;
        Ok(Received { peer, ..received })
    }
}

/// Who had the request when it failed.
enum Failed {
    Client(reqwest::Error),
    Tunnel(Unanswered),
}

#[expect(clippy::disallowed_methods, reason = "the one place where a client is made, with all of that off")]
fn client(
    destination: &Destination,
    addresses: Vec<IpAddr>,
    tls: ClientConfig,
    caps: &Caps,
    left: Duration,
) -> Result<Client, reqwest::Error> {
    let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, destination.port())).collect();
    let redirects = if Check::Redirects.on() { Policy::none() } else { Policy::default() };
    let builder = Client::builder();
    let builder = if Check::ProxyEnvironment.on() { builder.no_proxy() } else { builder };
    builder
        .user_agent(AGENT)
        .redirect(redirects)
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(caps.headers.saturating_add(HEADERS_TO_COUNT))
        .pool_max_idle_per_host(0)
        .connect_timeout(caps.connect.min(left))
        .dns_resolver(Judged { host: destination.host().to_string(), addresses })
        .tls_backend_preconfigured(tls)
        .build()
}

/// Sends, and waits for the response's head as long as the peer moves.
async fn await_head(
    sending: impl Future<Output = Result<Response, Failed>>,
    progress: &Progress,
    trouble: &Trouble,
    deadline: Instant,
) -> Result<Response, HttpError> {
    let mut sending = Box::pin(sending);
    loop {
        // A piece of the body can move the stall in either direction.
        let look = (Instant::now() + LOOK).min(progress.stalls_at()).min(deadline + GRACE);
        match timeout_at(look.into(), &mut sending).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(Failed::Client(error))) => return Err(trouble.sending(&error, progress)),
            Ok(Err(Failed::Tunnel(error))) => return Err(trouble.tunnelled(&error, progress)),
            Err(_) if Instant::now() >= deadline + GRACE => return Err(trouble.out_of_time().after_sending()),
            Err(_) if Instant::now() >= progress.stalls_at() => return Err(trouble.stalled(progress).after_sending()),
            Err(_) => {}
        }
    }
}

async fn receive(
    mut response: Response,
    caps: &Caps,
    trouble: &Trouble,
    deadline: Instant,
) -> Result<Received, HttpError> {
    if Check::SwitchedProtocol.on() && response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(trouble.protocol("it switched to another protocol, which nobody asked for"));
    }
    let headers = head(response.headers(), caps, trouble)?;
    let too_long = || HttpError::limit(caps.body_limit.0, caps.body_limit.1, format_args!("the response to {trouble}"));
    if response.content_length().is_some_and(|length| length > caps.body) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    loop {
        let until = deadline.min(Instant::now() + caps.idle);
        let chunk = match timeout_at(until.into(), response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break,
            Ok(Err(error)) if Check::Truncation.on() => return Err(trouble.receiving(&error)),
            Ok(Err(_)) => break,
            Err(_) if Instant::now() >= deadline => return Err(trouble.out_of_time()),
            Err(_) => return Err(trouble.idle(caps.idle)),
        };
        if chunk.len() as u64 > caps.body - body.len() as u64 {
            return Err(too_long());
        }
        body.extend_from_slice(&chunk);
    }
    let peer = response.remote_addr().map(|address| address.ip());
    Ok(Received { status: response.status().as_u16(), headers, body, peer })
}

fn head(headers: &HeaderMap, caps: &Caps, trouble: &Trouble) -> Result<Vec<(String, String)>, HttpError> {
    let what = |what: &str| format!("{what} of the response to {trouble}");
    if headers.len() > caps.headers {
        return Err(HttpError::limit("http_headers", caps.headers, what("the number of headers")));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > caps.header_bytes {
        return Err(HttpError::limit("header_kib", caps.header_bytes / 1024, what("the headers")));
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect())
}
