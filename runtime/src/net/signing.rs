//! Signs requests with version 4 signatures, and reads from responses why a signature was refused.
//!
//! A request is signed as it is sent: after its slots were filled, with the time of each attempt, with all headers
//! that the guest set, and with the digest of its body. The secret key stays here; the server computes the same
//! signature. Headers that the host adds later (`Accept`, `User-Agent` and the framing) are not signed.

mod clock;
pub(in crate::net) mod guest_request;
mod keys;
mod refusal;

pub(in crate::net) use clock::{ClockOffset, ServerClock};
pub(in crate::net) use keys::{Keys, KeysError};
pub(in crate::net) use refusal::{is_expired, refusal_code};

use crate::net::error::HttpError;
use crate::net::headers::secret_value;
use crate::vault::{SecretKind, Vault};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_sigv4::{PathRules, Request, Scope, SigningKey};

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const PAYLOAD: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// A request to sign. Its headers are those of the guest, or of the host's own request.
pub(in crate::net) struct ToSign<'a> {
    pub method: &'a Method,
    pub destination: &'a Destination,
    pub headers: &'a HeaderMap,
    /// The SHA-256 digest of the body, in hexadecimal digits.
    pub payload_sha256: &'a str,
}

/// What a request is signed with.
pub(in crate::net) struct SignWith<'a> {
    pub keys: &'a Keys,
    /// The name of the credentials, for redaction.
    pub credentials: &'a str,
    pub service: &'a str,
    pub region: &'a str,
    pub offset: ClockOffset,
}

/// Returns the headers that sign a request.
pub(in crate::net) fn sign(
    request: &ToSign<'_>,
    with: &SignWith<'_>,
    vault: &Vault,
) -> Result<Vec<(HeaderName, HeaderValue)>, HttpError> {
    let timestamp = with.offset.now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let host = request.destination.host_header();
    let mut headers = vec![
        (DATE, secret_value(&timestamp, DATE.as_str())?),
        (PAYLOAD, secret_value(request.payload_sha256, PAYLOAD.as_str())?),
    ];
    if let Some(token) = &with.keys.session_token {
        headers.push((TOKEN, secret_value(token.reveal(), TOKEN.as_str())?));
    }
    let sent = request.headers.iter().chain(headers.iter().map(|(name, value)| (name, value)));
    // Every value was made from a text, which need not be ASCII.
    let text = |value| std::str::from_utf8(HeaderValue::as_bytes(value)).unwrap_or_default();
    let mut signed: Vec<(&str, &str)> = sent.map(|(name, value)| (name.as_str(), text(value))).collect();
    signed.push(("host", &host));
    let scope = Scope { timestamp: &timestamp, region: with.region, service: with.service };
    let key = SigningKey::derive(with.keys.secret_access_key.reveal(), &scope);
    let name = format!("signing key of credentials {}", with.credentials);
    vault.register_as(SecretKind::Token, &name, Secret::new(key.to_hex().as_str()));
    let canonical = Request {
        method: request.method.as_str(),
        path: request.destination.path(),
        path_rules: PathRules::of_service(with.service),
        query: request.destination.query().unwrap_or_default(),
        headers: &signed,
        payload_sha256: request.payload_sha256,
    };
    let value = canonical.authorization(with.keys.access_key_id.reveal(), &key, &scope);
    // A server could return it, and a guest that has it could test guesses at the secret key.
    if let Some((_, signature)) = value.rsplit_once("Signature=") {
        vault.register_signature(signature);
    }
    headers.push((AUTHORIZATION, secret_value(&value, AUTHORIZATION.as_str())?));
    Ok(headers)
}
