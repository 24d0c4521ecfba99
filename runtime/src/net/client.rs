//! The host's own requests to servers that the operator's config names. They use
//! the same resolver, TLS and exchange as guests' requests, but no policy.
//!
//! A URL here must never hold text of a guest.

use crate::failure::Failure;
use crate::failure::Who;
use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, Exchange, SendBody};
use crate::net::resolver::Resolver;
use crate::net::tls::{self, TlsSettings};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use std::time::Instant;
use wasm_cpi_policy::destination::{Destination, Host};
use wasm_cpi_policy::secret::Secret;
use zeroize::Zeroizing;

const MAX_URL: u64 = 8192;

/// Sends the host's own requests.
pub struct HostClient {
    resolver: Resolver,
    /// PEM of the only trusted authorities; `None` trusts the public ones.
    ca: Option<String>,
    caps: Caps,
}

impl HostClient {
    /// Creates a client. `ca` is a PEM text, or the path of a PEM file.
    pub fn new(ca: Option<&str>, limits: &Limits) -> Result<Self, Failure> {
        let ca = ca.map(tls::pem_or_file).transpose().map_err(|error| Failure::config(error.to_string()))?;
        Ok(HostClient { resolver: Resolver::system(), ca, caps: Caps::of(limits) })
    }

    /// Sends a request and returns status and body, whatever the status is.
    pub async fn request(
        &self,
        method: &str,
        url: &str,
        basic: Option<(&str, &Secret)>,
        body: Option<Vec<u8>>,
        deadline: Instant,
        max_body: u64,
    ) -> Result<(u16, Vec<u8>), HttpError> {
        let unusable = |what: &str| HttpError::failed(Who::Config, HttpErrorKind::InvalidRequest, what);
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| unusable("the HTTP method of a host request is invalid"))?;
        let destination = Destination::parse(url, MAX_URL)
            .map_err(|error| unusable(&format!("the URL of a configured endpoint is invalid: {error}")))?;
        let addresses = match destination.host() {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => self.resolver.resolve(name, deadline).await?,
        };
        let mut headers = HeaderMap::new();
        if let Some((user, password)) = basic {
            headers.insert(AUTHORIZATION, basic_auth(user, password)?);
        }
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let settings = TlsSettings { ca: self.ca.as_deref(), ..TlsSettings::default() };
        let tls = tls::for_scheme(destination.scheme(), &settings)
            .map_err(|error| HttpError::failed(Who::Config, HttpErrorKind::Tls, error))?;
        let caps = Caps { body: max_body, body_limit: ("registry_kib", max_body / 1024), ..self.caps };
        let body = body.map_or(SendBody::None, |bytes| SendBody::Bytes(bytes.into()));
        // Servers of BOSH itself are always connected to directly.
        let proxy = None;
        let exchange = Exchange { method, destination, headers, body, addresses, proxy, tls, caps, deadline };
        let received = exchange.run().await?;
        Ok((received.status, received.body))
    }
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
