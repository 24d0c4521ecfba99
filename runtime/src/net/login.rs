//! Logins: obtain the token that grants send, when it is first needed.
//!
//! A login is data of the policy. Its request uses the same transport as all
//! others, and a guest has no influence on it. The token is registered in the
//! vault at once, and the guest sees only what the operator allows. `sessions` holds
//! it for the other requests of the call, and `kept_tokens` keeps it for later calls.

mod expiry;
mod kept_tokens;
mod sessions;

pub use kept_tokens::KeptTokens;
pub(super) use sessions::Sessions;

use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Received, SendBody};
use crate::net::gate::auth::credential_owner_of_login;
use crate::net::headers;
use crate::net::http_event::{HttpEvent, PendingEvent, ReportEvent};
use crate::net::http_trace::Shown;
use crate::net::transport::{Route, Transport, WireRequest};
use crate::vault::{SecretKind, Vault};
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::mem;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::Message;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{DenialReason, Expires, Login, LoginBody, SecretRef};

/// The result of a login.
#[derive(Clone)]
pub(super) struct Session {
    pub token: Secret,
    /// The part of the response that the guest may see, a JSON object.
    pub shown: String,
    /// When this call stops using the token, some time before it expires.
    ends: Option<Instant>,
    /// When a new token expires, if the server says it.
    expires: Option<Instant>,
}

/// Longer than any header that servers accept.
const MAX_TOKEN: usize = 64 * 1024;

/// Returns everything in a login that its token depends on, with its secrets. Each value stands for itself, so
/// that no two logins have the same values by chance.
pub(super) fn token_depends_on(login: &Login) -> Vec<Secret> {
    let Login { name, destination, method, addresses, tls, token, expires, send, show, .. } = login;
    let pins = &tls.pin_sha256;
    // Names and values follow each other, so their number belongs to the definition.
    let (headers, body) = (login.headers.len(), mem::discriminant(&login.body));
    let definition = format!(
        "{name:?} {method:?} {addresses:?} {pins:?} {token:?} {expires:?} {send:?} {show:?} {headers} {body:?}"
    );
    let mut values = vec![Secret::new(definition), Secret::new(destination.to_url().as_str())];
    let named = |(name, value): &(String, SecretRef)| [Secret::new(name.as_str()), value.secret.clone()];
    values.extend(login.headers.iter().flat_map(named));
    match &login.body {
        LoginBody::None => {}
        LoginBody::Json(text) => values.push(text.clone()),
        LoginBody::Form(fields) => values.extend(fields.iter().flat_map(named)),
    }
    values
}

/// Makes a token known, for redaction and the tripwire.
pub(super) fn register_token(vault: &Vault, login: &Login, token: Secret) {
    vault.register_as(SecretKind::Token, &format!("token of login {}", login.name), token);
}

async fn request(
    login: &Login,
    transport: &Transport,
    event: &mut HttpEvent,
    deadline: Instant,
) -> Result<Received, HttpError> {
    let route = Route { name: format!("login `{}`", login.name), addresses: &login.addresses, tls: &login.tls };
    let addresses = transport.allowed_addresses(&route, &login.destination, event, deadline).await?;
    let (body, kind) = match &login.body {
        LoginBody::None => (SendBody::None, None),
        LoginBody::Json(text) => (bytes(text.reveal()), Some("application/json")),
        LoginBody::Form(fields) => {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            fields.iter().for_each(|(name, value)| {
                form.append_pair(name, value.secret.reveal());
            });
            (bytes(&form.finish()), Some("application/x-www-form-urlencoded"))
        }
    };
    let mut head = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    head.extend(kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
    for (name, value) in &login.headers {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            let what = "has a header whose name is invalid; use letters, digits and `-`";
            let what = format!("the login `{}` {what}", login.name);
            HttpError::failed(Who::Config, HttpErrorKind::InvalidRequest, what)
        })?;
        head.insert(known, headers::secret_value(value.secret.reveal(), name)?);
    }
    let method = headers::method(&login.method)?;
    let length = body.announced(&method).unwrap_or(0);
    if let Some(trace) = &transport.trace {
        // Any value in a login may be a credential.
        let names = head.keys().map(|name| (name.as_str(), "<redacted>")).collect();
        let body = if length > 0 { Shown::Hidden } else { Shown::Bytes(&[]) };
        trace.request(&route.name, method.as_str(), &login.destination.to_url(), &names, &body);
    }
    let (destination, credential_owner) = (login.destination.clone(), credential_owner_of_login(&login.name));
    // No other requests than those of the login use its connection.
    let wire_request = WireRequest {
        method,
        destination,
        headers: head,
        body,
        credential_owner,
        allows_reuse: true,
        holds_image: false,
    };
    event.sent = true;
    let result = transport.send(&route, addresses, wire_request, transport.caps(), deadline).await;
    if result.as_ref().err().is_none_or(|error| error.sent) {
        event.bytes_sent = rounded(length);
    }
    if let Ok(received) = &result {
        (event.address, event.bytes_received) = (received.peer.or(event.address), rounded(received.body.len() as u64));
    }
    if let Some(trace) = &transport.trace {
        match &result {
            Ok(received) => {
                let names = received.headers.iter().map(|(name, _)| (name.as_str(), "<redacted>")).collect();
                trace.response(&route.name, received.status, &names, &Shown::Hidden);
            }
            Err(error) => trace.no_response(&route.name, &error.kind.to_string()),
        }
    }
    result
}

/// Returns the length of a login's body as logs show it: an exact one would measure its secrets.
fn rounded(length: u64) -> u64 {
    length.next_multiple_of(1024)
}

fn bytes(text: &str) -> SendBody {
    SendBody::Bytes(text.as_bytes().to_vec().into())
}

/// Returns the error of a failed login as the guest may see it: its kind and fixed words. What the
/// server said, the login's URL and addresses are in the detail. The guest's own request has not
/// been sent.
fn for_guest(login: &Login, error: HttpError) -> HttpError {
    let message = Check::LoginPlace.choose(without_place(&login.name, &error), error.explained());
    let detail = match error.kind {
        // This text names the login and its destination itself.
        HttpErrorKind::Denied(DenialReason::Address) => error.explained(),
        _ => format!("login `{}`, {} {}: {}", login.name, login.method, login.destination, error.explained()),
    };
    HttpError { message, detail, sent: false, login: Some(login.name.as_str().into()), ..error }
}

fn without_place(login: &str, error: &HttpError) -> String {
    let who = error.who;
    match error.kind {
        HttpErrorKind::Denied(DenialReason::Address) => {
            format!(
                "policy: login `{login}` may not reach the address of its server; the log, and the end of the call's \
                 error, name that address and what to do"
            )
        }
        HttpErrorKind::Limit(limit) => {
            format!("limit: login `{login}` reached `{limit}`; raise `limits.{limit}` if that is legitimate")
        }
        // No login was refused, and its text names no place.
        _ if error.check == Some(Check::LoginRenewal) => error.message.clone(),
        HttpErrorKind::Denied(DenialReason::Credential) => {
            format!("{who}: login `{login}` was refused; check the properties that it takes its credentials from")
        }
        kind => format!("{who}: login `{login}` failed ({kind}); the log says where and why"),
    }
}

impl Session {
    /// Logs in. The error says whether any byte of the login's request may have been sent, and is not for guests.
    async fn start(
        login: &Login,
        transport: &Transport,
        vault: &Vault,
        report: ReportEvent<'_>,
        deadline: Instant,
    ) -> Result<Session, HttpError> {
        let mut pending = PendingEvent::new(report);
        let event = &mut pending.event;
        (event.method, event.target) = (login.method.clone(), login.destination.to_string());
        event.login = Some(login.name.clone());
        let result = request(login, transport, event, deadline).await;
        event.conclude(result.as_ref().map(|received| received.status));
        let session =
            result.and_then(|received| Session::read(login, &received, vault).map_err(HttpError::after_sending));
        // The message is part of the detail, because the guest gets another one.
        if let Err(error) = &session {
            (event.check, event.detail) = (error.check, error.explained());
        }
        session
    }

    fn read(login: &Login, received: &Received, vault: &Vault) -> Result<Session, HttpError> {
        let status = received.status;
        let what = format!("it was answered with HTTP {status}");
        let iaas = |what: String| HttpError::cloud(HttpErrorKind::Protocol, what);
        Check::LoginStatus.ensure((200..=299).contains(&status), || match status {
            400..=403 => {
                let remedy = format!("check the properties {}", login.properties.join(", "));
                let kind = HttpErrorKind::Denied(DenialReason::Credential);
                HttpError::cloud(kind, format_args!("{what}; {remedy}"))
            }
            _ => iaas(format!("{what}; look at the server's log")),
        })?;
        let message = Message { headers: &received.headers, body: &received.body };
        let unusable = |why: String| iaas(format!("{what}, {why}"));
        let token = match login.token.read(&message) {
            Ok(Some(token)) if !token.is_empty() => {
                let what =
                    || unusable(format!("with a token of {} bytes; at most {MAX_TOKEN} are accepted", token.len()));
                Check::LoginTokenSize.ensure(token.len() <= MAX_TOKEN, what)?;
                let sendable = headers::secret_value(&token, &login.send.header).is_ok();
                Check::LoginTokenForm.ensure(sendable, || {
                    unusable("with a token that no header can hold; check the login's `token`".to_owned())
                })?;
                Secret::new(token)
            }
            Ok(_) => return Err(unusable(format!("without a token in `{}`; check the login's `token`", login.token))),
            Err(error) => return Err(unusable(format!("and its token cannot be read: {error}"))),
        };
        register_token(vault, login, token.clone());
        let text = |place: &wasm_cpi_policy::place::Place| place.read(&message).ok().flatten();
        let lifetime: Option<Duration> = match &login.expires {
            None => None,
            Some(Expires::At(place)) => text(place).and_then(|text| expiry::until(&text, Timestamp::now())),
            Some(Expires::InSeconds(place)) => text(place).and_then(|text| expiry::in_seconds(&text)),
        };
        let mut shown = Map::new();
        for (name, place) in &login.show {
            let value = place.read_value(&message);
            let value = value
                .map_err(|error| unusable(format!("and what the login shows as `{name}` cannot be read: {error}")))?;
            shown.insert(name.clone(), value.unwrap_or(Value::Null));
        }
        let after = |time: Duration| Instant::now().checked_add(time);
        let (ends, expires) = (lifetime.map(expiry::usable).and_then(after), lifetime.and_then(after));
        Ok(Session { token, shown: Value::Object(shown).to_string(), ends, expires })
    }
}
