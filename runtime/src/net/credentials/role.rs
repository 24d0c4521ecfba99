//! Assumes a role: asks a security token service for temporary keys, in a request that other keys sign.

use super::{Answer, KeyRing, Obtained, To, credential_owner};
use crate::net::error::{HttpError, HttpErrorKind, quoted};
use crate::net::exchange::{Received, SendBody, WireRequest};
use crate::net::signing::{ClockOffset, Keys, SignWith, ToSign, is_expired, refusal_code, sign};
use crate::net::transport::Route;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use std::time::Instant;
use wasm_cpi_policy::place::{Message, Place, write_form};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{AssumedRole, Credentials, DenialReason};
use wasm_cpi_sigv4::sha256_hex;

/// The name by which the service signs.
const SERVICE: &str = "sts";
const VERSION: &str = "2011-06-15";
/// How long the keys are valid. Every role allows one hour.
const SECONDS: &str = "3600";
const ANSWER: &str = "/AssumeRoleResponse/AssumeRoleResult/Credentials";

/// Returns the keys of a role.
pub(super) async fn assume(
    ring: KeyRing<'_>,
    credentials: &Credentials,
    role: &AssumedRole,
    deadline: Instant,
) -> Result<Answer, HttpError> {
    let request = RoleRequest { ring, credentials, role, deadline };
    let (mut refused, mut has_new_time): (Option<Secret>, bool) = (None, false);
    loop {
        let Obtained { keys, token } = ring.keys(&role.with, refused.as_ref()).await.map_err(|error| {
            // The request for the role has not been sent, and the other credentials explain why.
            HttpError { sent: refused.is_some(), ..error }
        })?;
        let offset = ring.clock.offset();
        let received = request.send(&keys, offset).await?;
        if !has_new_time && ring.clock.corrects(&received, role.destination.scheme(), offset) {
            has_new_time = true;
            continue;
        }
        match token {
            Some(token) if refused.is_none() && is_expired(&received) => {
                // If there are no new keys, the answer says more than the reason.
                let renewed = ring.keys(&role.with, Some(&token)).await;
                if renewed.is_ok_and(|renewed| renewed.token.as_ref() != Some(&token)) {
                    refused = Some(token);
                    continue;
                }
                return request.read(&received);
            }
            _ => return request.read(&received),
        }
    }
}

struct RoleRequest<'a> {
    ring: KeyRing<'a>,
    credentials: &'a Credentials,
    role: &'a AssumedRole,
    deadline: Instant,
}

impl RoleRequest<'_> {
    async fn send(&self, keys: &Keys, offset: ClockOffset) -> Result<Received, HttpError> {
        let RoleRequest { ring, credentials, role, deadline } = self;
        let name = format!("credentials `{}`", credentials.name);
        let route = Route { name, addresses: &role.addresses, tls: &role.tls };
        let body = form(role);
        let method = Method::POST;
        let mut headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("text/xml")),
            (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        ]);
        let payload_sha256 = sha256_hex(body.as_bytes());
        let to_sign = ToSign {
            method: &method,
            destination: &role.destination,
            headers: &headers,
            payload_sha256: &payload_sha256,
        };
        let with = SignWith { keys, credentials: &role.with, service: SERVICE, region: &role.region, offset };
        let signature = sign(&to_sign, &with, ring.vault)?;
        headers.extend(signature);
        let wire_request = WireRequest {
            method,
            destination: role.destination.clone(),
            headers,
            credential_owner: credential_owner(credentials),
            allows_reuse: true,
            holds_image: false,
        };
        let body = SendBody::Bytes(body.into_bytes().into());
        ring.exchange(credentials, &route, wire_request, To::Judged(body), *deadline).await
    }

    fn read(&self, received: &Received) -> Result<Answer, HttpError> {
        let status = received.status;
        let what = format!("the request for the role was answered with HTTP {status}");
        if !(200..=299).contains(&status) {
            let code = refusal_code(received).map(|code| quoted(&code));
            let code = code.map_or_else(String::new, |code| format!(" ({code})"));
            let properties = self.credentials.properties.join(", ");
            let remedy = "check that the role trusts the credentials that assume it";
            let remedy = if properties.is_empty() {
                remedy.to_owned()
            } else {
                format!("{remedy}, and the properties {properties}")
            };
            let kind = match status {
                400..=403 => HttpErrorKind::Denied(DenialReason::Credential),
                _ => HttpErrorKind::Protocol,
            };
            return Err(HttpError::cloud(kind, format_args!("{what}{code}; {remedy}")).after_sending());
        }
        let message = Message { headers: &received.headers, body: &received.body };
        let unusable =
            |why: &str| HttpError::cloud(HttpErrorKind::Protocol, format_args!("{what}, {why}")).after_sending();
        let part = |name: &str| match Place::Xml(format!("{ANSWER}/{name}")).read(&message) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(unusable(&format!("without `{name}`"))),
            Err(error) => Err(unusable(&format!("and its `{name}` cannot be read: {error}"))),
        };
        let (id, secret) = (part("AccessKeyId")?, part("SecretAccessKey")?);
        let (token, expiration) = (part("SessionToken")?, part("Expiration")?);
        Answer::new(&id, &secret, &token, &expiration).map_err(|why| unusable(&format!("and its keys {why}")))
    }
}

/// Returns the body of the request.
fn form(role: &AssumedRole) -> String {
    write_form([
        ("Action", "AssumeRole"),
        ("Version", VERSION),
        ("RoleArn", &role.role),
        ("RoleSessionName", &role.session_name),
        ("DurationSeconds", SECONDS),
    ])
}
