//! Logins: obtain the token that grants send, when it is first needed.
//!
//! A login is data of the policy. Its request uses the same transport as all
//! others, and a guest has no influence on it. The token is registered in the
//! vault at once, and the guest sees only what the operator allows. `request` sends the
//! request, `sessions` holds the token for the other requests of the call, and
//! `kept_tokens` keeps it for later calls.

mod error;
pub(super) mod expiry;
mod kept_tokens;
mod request;
mod sessions;

pub(super) use kept_tokens::KeptTokens;
pub(super) use sessions::{Sessions, TokenSource};

use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::Received;
use crate::net::headers;
use crate::net::http_event::{PendingEvent, ReportEvent};
use crate::net::http_trace::Tracer;
use crate::net::response;
use crate::net::transport::Transport;
use crate::token_store::MARGIN;
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

/// A token that was obtained: that of a login, or the text of temporary keys.
#[derive(Clone)]
pub(super) struct TokenSession {
    pub token: Secret,
    /// The part of a login's response that the guest may see, a JSON object.
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
pub(super) fn token_depends_on(login: &Login) -> Vec<Secret> {
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
pub(super) fn register_token(vault: &Vault, login: &Login, token: Secret) {
    vault.register_as(SecretKind::Token, &format!("token of login {}", login.name), token);
}

/// A login, and what it uses.
pub(super) struct LoginSource<'a> {
    pub login: &'a Login,
    pub context: LoginContext<'a>,
}

impl TokenSource for LoginSource<'_> {
    fn name(&self) -> &str {
        &self.login.name
    }

    fn label(&self) -> String {
        format!("login `{}`", self.login.name)
    }

    fn margin(&self) -> Duration {
        MARGIN
    }

    fn is_renewed_once_a_minute(&self) -> bool {
        // Only later calls wait; in one call, the number of logins is limited.
        false
    }

    fn register(&self, token: &Secret) {
        register_token(self.context.vault, self.login, token.clone());
    }

    fn error_for_guest(&self, error: HttpError) -> HttpError {
        error::error_for_guest(self.login, error)
    }

    async fn obtain(&self, deadline: Instant) -> Result<TokenSession, HttpError> {
        let LoginSource { login, context } = self;
        let mut pending = PendingEvent::new(context.report);
        let event = &mut pending.event;
        (event.method, event.target) = (login.method.clone(), login.destination.to_string());
        event.login = Some(login.name.clone());
        let result = request::send(login, context, event, deadline).await;
        event.conclude(result.as_ref().map(|received| received.status));
        let session = result
            .and_then(|received| TokenSession::read(login, &received, context.vault).map_err(HttpError::after_sending));
        // The message is part of the detail, because the guest gets another one.
        if let Err(error) = &session {
            (event.check, event.detail) = (error.check, error.explained());
        }
        session
    }
}

impl TokenSession {
    fn read(login: &Login, received: &Received, vault: &Vault) -> Result<TokenSession, HttpError> {
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
        Ok(TokenSession::new(token, Value::Object(shown).to_string(), lifetime, MARGIN))
    }

    /// Returns the session of a new token with this lifetime, which is not used for `margin` before its end.
    pub(super) fn new(token: Secret, shown: String, lifetime: Option<Duration>, margin: Duration) -> TokenSession {
        let after = |time: Duration| Instant::now().checked_add(time);
        let usable = |lifetime| expiry::usable(lifetime, margin);
        let (ends, expires) = (lifetime.map(usable).and_then(after), lifetime.and_then(after));
        TokenSession { token, shown, ends, expires }
    }
}
