//! The host's own requests to servers that the operator's config names. They use
//! the same resolver, TLS and limits as guests' requests, but no policy, and one
//! connection for each request.
//!
//! A URL here must never hold text of a guest.

use crate::failure::{Failure, Who};
use crate::limits::{Limits, NamedLimit};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{
    Caps, ErrorContext, HEADERS_TO_COUNT, Progress, SendBody, SendFailure, USER_AGENT, await_head, receive,
    request_uncompressed,
};
use crate::net::resolver::Resolver;
use crate::net::tls::{self, TlsSettings, TrustedCa};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use rustls::ClientConfig;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::{Destination, Host};
use wasm_cpi_policy::secret::Secret;
use zeroize::Zeroizing;

const MAX_URL: u64 = 8192;

/// Sends the host's own requests.
pub struct HostClient {
    resolver: Resolver,
    /// The setting that `ca` comes from.
    ca_setting: &'static str,
    /// PEM of the only trusted authorities; `None` trusts the public ones.
    ca: Option<String>,
    caps: Caps,
}

/// A request of the host.
pub struct HostRequest<'a> {
    pub method: &'a str,
    pub url: &'a str,
    /// User and password for basic authentication.
    pub basic: Option<(&'a str, &'a Secret)>,
    /// A JSON document.
    pub body: Option<Vec<u8>>,
    pub deadline: Instant,
    /// The most bytes of the response's body.
    pub max_body_bytes: u64,
    /// The limit in the config that `max_body_bytes` comes from.
    pub body_limit: NamedLimit,
}

impl HostClient {
    /// Creates a client. `ca` is a PEM text, or the path of a PEM file, and `ca_setting` is its name in the config.
    pub fn new(ca_setting: &'static str, ca: Option<&str>, limits: &Limits) -> Result<Self, Failure> {
        let ca = ca
            .map(tls::pem_or_file)
            .transpose()
            .map_err(|error| Failure { check: error.check(), ..Failure::config(format!("`{ca_setting}`: {error}")) })?;
        Ok(HostClient { resolver: Resolver::system(), ca_setting, ca, caps: Caps::of(limits) })
    }

    /// Sends a request and returns status and body, whatever the status is.
    pub async fn request(&self, request: HostRequest<'_>) -> Result<(u16, Vec<u8>), HttpError> {
        let HostRequest { method, url, basic, body, deadline, max_body_bytes, body_limit } = request;
        let unusable = |what: &str| HttpError::failed(Who::Config, HttpErrorKind::InvalidRequest, what);
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| unusable("the HTTP method of a host request is invalid"))?;
        let destination = Destination::parse(url, MAX_URL)
            .map_err(|error| unusable(&format!("the URL of a configured endpoint is invalid: {error}")))?;
        let addresses = match destination.host() {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolver.resolve(name, deadline).await?,
        };
        let headers = request_headers(basic, body.is_some())?;
        let tls = self.tls_config(&destination)?;
        let caps = Caps { max_body_bytes, body_limit, ..self.caps };
        let context = ErrorContext::new(&method, &destination);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(context.no_time_left());
        }
        let client =
            client(&destination, addresses, tls, &caps, left).map_err(|error| context.client_not_built(&error))?;
        let body = body.map_or(SendBody::None, |bytes| SendBody::Bytes(bytes.into()));
        let length = body.announced(&method);
        let progress = Progress::while_connecting(&caps, length.unwrap_or(0));
        let mut request = client.request(method, destination.to_url()).headers(headers);
        if let Some(length) = length {
            request = request.header(CONTENT_LENGTH, length);
        }
        if let Some(body) = body.monitored(progress.clone()) {
            request = request.body(body);
        }
        let sending = async { request.send().await.map_err(SendFailure::Client) };
        let response = await_head(sending, &progress, &context, deadline).await?;
        let received = receive(response, &caps, &context, deadline).await.map_err(HttpError::after_sending)?;
        Ok((received.status, received.body))
    }

    fn tls_config(&self, destination: &Destination) -> Result<ClientConfig, HttpError> {
        let ca = self.ca.as_deref().map(|pem| TrustedCa { setting: self.ca_setting, pem });
        let settings = TlsSettings { ca, ..TlsSettings::default() };
        tls::for_scheme(destination.scheme(), &settings).map_err(|error| HttpError {
            check: error.check(),
            ..HttpError::failed(Who::Config, HttpErrorKind::Tls, error)
        })
    }
}

fn request_headers(basic: Option<(&str, &Secret)>, has_body: bool) -> Result<HeaderMap, HttpError> {
    let mut headers = HeaderMap::new();
    if let Some((user, password)) = basic {
        headers.insert(AUTHORIZATION, basic_auth(user, password)?);
    }
    if has_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    request_uncompressed(&mut headers);
    Ok(headers)
}

/// Resolves one name to its addresses, and no other name.
struct FixedAddresses {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Resolve for FixedAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        let known = if name.as_str().eq_ignore_ascii_case(&self.host) { self.addresses.clone() } else { Vec::new() };
        Box::pin(std::future::ready(Ok(Box::new(known.into_iter()) as Addrs)))
    }
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
        // Servers of BOSH itself are always connected to directly.
        .perform(|| Client::builder().no_proxy())
        .unwrap_or_else(Client::builder)
        .user_agent(USER_AGENT)
        .redirect(Check::Redirects.choose(Policy::none(), Policy::default()))
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(caps.max_headers.saturating_add(HEADERS_TO_COUNT))
        .pool_max_idle_per_host(0)
        .connect_timeout(caps.connect.min(left))
        .dns_resolver(FixedAddresses { host: destination.host().to_string(), addresses })
        .tls_backend_preconfigured(tls)
        .build()
}

/// Returns the value of an `Authorization` header, which debug output does not show.
pub(super) fn basic_auth(user: &str, password: &Secret) -> Result<HeaderValue, HttpError> {
    let pair = Zeroizing::new(format!("{user}:{}", password.reveal()));
    let value = Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        HttpError::failed(Who::Config, HttpErrorKind::InvalidRequest, "the user name cannot be sent as basic auth")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
