//! The metadata service of the machine, version 2: a token first, then the name of the role, then its keys.
//!
//! The address is fixed and link-local, so it needs neither a name server nor a proxy, and only this machine's
//! platform can answer. Guests cannot reach it, whatever a policy grants.

use super::{Answer, KeyRing, To, credential_owner};
use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Received, WireRequest};
use crate::net::headers::secret_value;
use crate::net::transport::Route;
use crate::vault::SecretKind;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};
use wasm_cpi_policy::addresses::Addresses;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{CredentialSource, Credentials, DenialReason, Tls};

const IPV4: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
const IPV6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0e_c2, 0, 0, 0, 0, 0, 0x254));

/// The header of the token. The protocol has its name from the platform that defined it.
const TOKEN: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token");
const TOKEN_LIFETIME: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
/// The token is needed for two requests.
const TOKEN_SECONDS: &str = "60";
const MAX_TOKEN: usize = 1024;

const TOKEN_PATH: &str = "/latest/api/token";
const KEYS_PATH: &str = "/latest/meta-data/iam/security-credentials/";

/// The service is on the same machine, or there is none.
const TIME_TO_ANSWER: Duration = Duration::from_secs(2);
const TIME_IN_ALL: Duration = Duration::from_secs(6);

/// Where the metadata service is. Only tests can set another place.
#[derive(Default)]
pub(in crate::net) struct MetadataService {
    #[cfg(test)]
    pub instead: Option<SocketAddr>,
}

impl MetadataService {
    fn address(&self, ipv6: bool) -> SocketAddr {
        #[cfg(test)]
        if let Some(instead) = self.instead {
            return instead;
        }
        SocketAddr::new(if ipv6 { IPV6 } else { IPV4 }, 80)
    }
}

/// One exchange with the service.
struct Visit<'a> {
    ring: KeyRing<'a>,
    credentials: &'a Credentials,
    address: SocketAddr,
    deadline: Instant,
}

/// Returns the keys of the machine's role.
pub(super) async fn ask(ring: KeyRing<'_>, credentials: &Credentials, deadline: Instant) -> Result<Answer, HttpError> {
    let ipv6 = matches!(credentials.source, CredentialSource::Metadata { ipv6: true });
    let address = ring.metadata.address(ipv6);
    let deadline = deadline.min(Instant::now() + TIME_IN_ALL);
    let visit = Visit { ring, credentials, address, deadline };
    let token = visit.token().await?;
    let role = visit.role(&token).await?;
    visit.keys(&token, &role).await
}

impl Visit<'_> {
    async fn token(&self) -> Result<Secret, HttpError> {
        let lifetime = HeaderMap::from_iter([(TOKEN_LIFETIME, HeaderValue::from_static(TOKEN_SECONDS))]);
        let received = self.send(Method::PUT, TOKEN_PATH, lifetime).await.map_err(|error| {
            let remedy = "is this machine a VM of the cloud? In a container, the service answers only if its hop limit is \
                          2 or more";
            HttpError { message: format!("{}; {remedy}", error.message), ..error }
        })?;
        let token = self.text(received, "a token")?;
        let fits = |token: &str| (1..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
        if !fits(&token) {
            return Err(unusable("its token is not one line of text"));
        }
        let token = Secret::new(token);
        let name = format!("metadata token of credentials {}", self.credentials.name);
        self.ring.vault.register_as(SecretKind::Token, &name, token.clone());
        Ok(token)
    }

    async fn role(&self, token: &Secret) -> Result<String, HttpError> {
        let received = self.send(Method::GET, KEYS_PATH, authenticated(token)?).await?;
        let role = self.text(received, "the name of the role")?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
        let dots = role.bytes().all(|byte| byte == b'.');
        if dots || role.len() > 128 || !role.bytes().all(is_name) {
            return Err(unusable("the name of its role is not one line of letters, digits and `+=,.@_-`"));
        }
        Ok(role)
    }

    async fn keys(&self, token: &Secret, role: &str) -> Result<Answer, HttpError> {
        let received = self.send(Method::GET, &format!("{KEYS_PATH}{role}"), authenticated(token)?).await?;
        let text = self.text(received, "keys")?;
        let keys = wasm_cpi_policy::strict_json::parse(&text, 4).map_err(|_| unusable("its keys are not JSON"))?;
        let part = |name: &str| keys.get(name).and_then(Value::as_str).unwrap_or_default();
        if part("Code") != "Success" {
            return Err(unusable("it has no keys now; look at the role of this machine"));
        }
        Answer::new(part("AccessKeyId"), part("SecretAccessKey"), part("Token"), part("Expiration"))
            .map_err(|why| unusable(&format!("its keys {why}")))
    }

    /// Returns the text of a successful answer.
    fn text(&self, received: Received, what: &str) -> Result<String, HttpError> {
        let status = received.status;
        let refused = |why: &str| {
            let kind = HttpErrorKind::Denied(DenialReason::Credential);
            Err(HttpError::cloud(kind, format_args!("the metadata service answered with HTTP {status}: {why}"))
                .after_sending())
        };
        match status {
            200 => String::from_utf8(received.body)
                .map(|text| text.trim().to_owned())
                .map_err(|_| unusable(&format!("{what} is not text"))),
            401 => refused("it did not accept its own token; a proxy or a firewall may be between"),
            403 => refused("it is turned off for this machine, or refuses the request; turn on its version 2"),
            404 => refused("this machine has no role; give it one (an instance profile), or use other credentials"),
            _ => refused("this is not the metadata service of a cloud, or it has a fault"),
        }
    }

    async fn send(&self, method: Method, path: &str, headers: HeaderMap) -> Result<Received, HttpError> {
        let url = format!("http://{}{path}", self.address);
        let destination = Destination::parse(&url, 4096).map_err(|_| unusable("its address is not valid"))?;
        let route = Route {
            name: format!("credentials `{}`", self.credentials.name),
            addresses: &Addresses::Public,
            tls: &Tls::default(),
        };
        let wire_request = WireRequest {
            method,
            destination,
            headers,
            credential_owner: credential_owner(self.credentials),
            allows_reuse: true,
            holds_image: false,
        };
        let to = To::Link(self.address.ip(), TIME_TO_ANSWER);
        let sent = self.ring.exchange(self.credentials, &route, wire_request, to, self.deadline).await;
        sent.map_err(|error| {
            let message = format!("{}: the metadata service does not answer", error.who);
            HttpError { message, detail: format!("{url}: {}", error.explained()), ..error }
        })
    }
}

fn authenticated(token: &Secret) -> Result<HeaderMap, HttpError> {
    Ok(HeaderMap::from_iter([(TOKEN, secret_value(token.reveal(), TOKEN.as_str())?)]))
}

fn unusable(why: &str) -> HttpError {
    HttpError::failed(Who::Iaas, HttpErrorKind::Protocol, format_args!("the metadata service cannot be used: {why}"))
        .after_sending()
}
