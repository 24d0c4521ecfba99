//! The host's own requests, to what the operator's config names: the same
//! resolver, TLS and exchange as guests' requests, without a policy.
//!
//! Nothing that a guest says may become a URL here.

use crate::failure::Failure;
use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, Exchange, SendBody};
use crate::net::resolve::Resolver;
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

pub struct HostClient {
    resolver: Resolver,
    /// PEM, in place of the public authorities.
    ca: Option<String>,
    caps: Caps,
}

impl HostClient {
    /// `ca` is a PEM text, or the path of a file that holds one.
    pub fn new(ca: Option<&str>, limits: &Limits) -> Result<Self, Failure> {
        let ca = ca.map(tls::pem_or_file).transpose().map_err(|error| Failure::config(error.to_string()))?;
        Ok(HostClient { resolver: Resolver::system(), ca, caps: Caps::of(limits) })
    }

    /// Answers status and body, whatever the status is.
    pub async fn request(
        &self,
        method: &str,
        url: &str,
        basic: Option<(&str, &Secret)>,
        body: Option<Vec<u8>>,
        deadline: Instant,
        max_body: u64,
    ) -> Result<(u16, Vec<u8>), HttpError> {
        let unusable = |what: &str| HttpError::new(HttpErrorKind::InvalidRequest, format!("config: {what}"));
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| unusable("no such HTTP method"))?;
        let destination = Destination::parse(url, MAX_URL)
            .map_err(|error| unusable(&format!("of a configured endpoint, {error}")))?;
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
            .map_err(|error| HttpError::new(HttpErrorKind::Tls, format!("config: {error}")))?;
        let caps = Caps { body: max_body, body_limit: ("registry_kib", max_body / 1024), ..self.caps };
        let body = body.map_or(SendBody::None, |bytes| SendBody::Bytes(bytes.into()));
        // What BOSH itself runs is near: no proxy is asked for it.
        let through = None;
        let exchange = Exchange { method, destination, headers, body, addresses, through, tls, caps, deadline };
        let received = exchange.run().await?;
        Ok((received.status, received.body))
    }
}

/// The value of an `Authorization` header, kept out of debug output.
pub(super) fn basic_auth(user: &str, password: &Secret) -> Result<HeaderValue, HttpError> {
    let pair = Zeroizing::new(format!("{user}:{}", password.reveal()));
    let value = Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        HttpError::new(HttpErrorKind::InvalidRequest, "config: the user name cannot be sent as basic auth")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
