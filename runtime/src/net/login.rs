//! Logins: obtain the token that grants send, when it is first needed.
//!
//! A login is data of the policy. Its request uses the same transport as all
//! others, and a guest has no influence on it. The token is registered in the
//! vault at once, and the guest sees only what the operator allows. `request` sends the
//! request, `sessions` holds the token for the other requests of the call, and
//! `kept_tokens` keeps it for later calls.

mod error;
mod expiry;
mod kept_tokens;
mod request;
mod sessions;

pub use kept_tokens::KeptTokens;
pub(super) use sessions::Sessions;

use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::Received;
use crate::net::headers;
use crate::net::http_event::{PendingEvent, ReportEvent};
use crate::net::http_trace::Tracer;
use crate::net::response;
use crate::net::transport::Transport;
use crate::vault::{SecretKind, Vault};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::mem;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::Message;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{DenialReason, Expires, Login, LoginBody, ResolvedText};

/// What the logins of a call use.
pub(super) struct LoginContext<'a> {
    pub transport: &'a Transport,
    pub vault: &'a Vault,
    /// Traces requests and responses; `None` if `http_trace` is off.
    pub trace: Option<&'a Tracer>,
    pub report: ReportEvent<'a>,
}

/// The result of a login.
#[derive(Clone)]
pub(super) struct LoginSession {
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

/// Returns everything in a login that its token depends on, with its secrets. Each value is separate, so
/// that no two logins have the same values by chance.
fn token_depends_on(login: &Login) -> Vec<Secret> {
    let Login { name, destination, method, addresses, tls, token, expires, send, show, .. } = login;
    let pins = &tls.pin_sha256;
    // Names and values follow each other, so their number belongs to the definition.
    let (headers, body) = (login.headers.len(), mem::discriminant(&login.body));
    let definition = format!(
        "{name:?} {method:?} {addresses:?} {pins:?} {token:?} {expires:?} {send:?} {show:?} {headers} {body:?}"
    );
    let mut values = vec![Secret::new(definition), Secret::new(destination.to_url().as_str())];
    let named = |(name, value): &(String, ResolvedText)| [Secret::new(name.as_str()), value.secret.clone()];
    values.extend(login.headers.iter().flat_map(named));
    match &login.body {
        LoginBody::None => {}
        LoginBody::Json(text) => values.push(text.clone()),
        LoginBody::Form(fields) => values.extend(fields.iter().flat_map(named)),
    }
    values
}

/// Makes a token known, for redaction and the tripwire.
fn register_token(vault: &Vault, login: &Login, token: Secret) {
    vault.register_as(SecretKind::Token, &format!("token of login {}", login.name), token);
}

impl LoginSession {
    /// Logs in. The error says whether any byte of the login's request may have been sent, and is not for guests.
    async fn start(login: &Login, context: &LoginContext<'_>, deadline: Instant) -> Result<LoginSession, HttpError> {
        let mut pending = PendingEvent::new(context.report);
        let event = &mut pending.event;
        (event.method, event.target) = (login.method.clone(), login.destination.to_string());
        event.login = Some(login.name.clone());
        let result = request::send(login, context, event, deadline).await;
        event.conclude(result.as_ref().map(|received| received.status));
        let session = result
            .and_then(|received| LoginSession::read(login, &received, context.vault).map_err(HttpError::after_sending));
        // The message is part of the detail, because the guest gets another one.
        if let Err(error) = &session {
            (event.check, event.detail) = (error.check, error.explained());
        }
        session
    }

    fn read(login: &Login, received: &Received, vault: &Vault) -> Result<LoginSession, HttpError> {
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
            let mut value = value.unwrap_or(Value::Null);
            response::blank_shown(&mut value);
            shown.insert(name.clone(), value);
        }
        let after = |time: Duration| Instant::now().checked_add(time);
        let (ends, expires) = (lifetime.map(expiry::usable).and_then(after), lifetime.and_then(after));
        Ok(LoginSession { token, shown: Value::Object(shown).to_string(), ends, expires })
    }
}
