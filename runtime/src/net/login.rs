//! Logins: the token that grants send, got when it is first needed.
//!
//! A login is data of the policy. Its request takes the same way as all others
//! and is never the guest's to shape; the token goes into the vault at once,
//! and to the guest only what the operator lets it see. One token at a time,
//! dropped when it ends or a server says 401.

mod expiry;

use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::event::{HttpEvent, Tell, Underway};
use crate::net::exchange::{Received, SendBody};
use crate::net::headers;
use crate::net::http_trace::Shown;
use crate::net::reach::{Parcel, Reach, Way};
use crate::vault::Vault;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::Message;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{DenialReason, Expires, Login, LoginBody};

#[derive(Clone)]
pub(super) struct Session {
    pub token: Secret,
    /// What the guest may see, a JSON object.
    pub shown: String,
    ends: Option<Instant>,
}

/// By the name of the login.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Known>>);

#[derive(Default)]
struct Known {
    session: Option<Session>,
    logins: u32,
}

/// Longer than any header that a server takes.
const MAX_TOKEN: usize = 64 * 1024;

/// A server that takes none of the tokens must not make this go on forever.
const MAX_LOGINS: u32 = 100;

impl Sessions {
    /// The session of a login; `refused` is a token that a server did not take.
    pub(super) async fn get(
        &self,
        login: &Login,
        refused: Option<&Secret>,
        reach: &Reach,
        vault: &Vault,
        tell: Tell<'_>,
        deadline: Instant,
    ) -> Result<Session, HttpError> {
        let mut sessions = self.0.lock().await;
        let known = sessions.entry(login.name.clone()).or_default();
        let usable = |session: &&Session| {
            session.ends.is_none_or(|ends| ends > Instant::now()) && refused != Some(&session.token)
        };
        if let Some(session) = known.session.as_ref().filter(usable) {
            return Ok(session.clone());
        }
        known.session = None;
        known.logins += 1;
        if Check::LoginCount.on() && known.logins > MAX_LOGINS {
            let what = format!(
                "login `{}` was done {MAX_LOGINS} times in this call, and its tokens are not taken",
                login.name
            );
            return Err(HttpError::new(HttpErrorKind::Protocol, format!("iaas: {what}; look at the servers' logs")));
        }
        let session = Session::start(login, reach, vault, tell, deadline).await?;
        known.session = Some(session.clone());
        Ok(session)
    }

    pub(super) async fn drop_token(&self, login: &str) {
        if let Some(known) = self.0.lock().await.get_mut(login) {
            known.session = None;
        }
    }
}

async fn request(
    login: &Login,
    reach: &Reach,
    event: &mut HttpEvent,
    deadline: Instant,
) -> Result<Received, HttpError> {
    let way = Way { name: format!("login `{}`", login.name), addresses: &login.addresses, tls: &login.tls };
    let addresses = reach.find(&way, &login.destination, &mut event.address, deadline).await?;
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
        let known =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| HttpError::invalid("a header's name is none"))?;
        head.insert(known, headers::secret_value(value.secret.reveal(), name)?);
    }
    let method = headers::method(&login.method)?;
    let length = body.announced(&method).unwrap_or(0);
    if let Some(trace) = &reach.trace {
        // Whatever stands in a login may be a credential.
        let names = head.keys().map(|name| (name.as_str(), "<redacted>")).collect();
        let body = Shown::Hidden(usize::try_from(length).unwrap_or(usize::MAX));
        trace.request(&way.name, method.as_str(), &login.destination.to_url(), &names, &body);
    }
    let parcel = Parcel { method, destination: login.destination.clone(), headers: head, body };
    event.sent = true;
    let result = reach.send(&way, addresses, parcel, reach.caps(), deadline).await;
    if result.as_ref().err().is_none_or(|error| error.sent) {
        event.bytes_sent = length;
    }
    if let Ok(received) = &result {
        (event.address, event.bytes_received) = (received.peer.or(event.address), received.body.len() as u64);
    }
    if let Some(trace) = &reach.trace {
        match &result {
            Ok(received) => {
                let names = received.headers.iter().map(|(name, _)| (name.as_str(), "<redacted>")).collect();
                trace.response(&way.name, received.status, &names, &Shown::Hidden(received.body.len()));
            }
            Err(error) => trace.no_response(&way.name, &error.kind.to_string()),
        }
    }
    result
}

fn bytes(text: &str) -> SendBody {
    SendBody::Bytes(text.as_bytes().to_vec().into())
}

/// Where a login goes, and whom it met there, is between operator and log. The
/// guest's own request has not been sent, which is what counts for it.
fn for_guest(login: &str, error: HttpError) -> HttpError {
    let (who, what) = error.message.split_once(": ").unwrap_or(("iaas", &error.message));
    let message = match error.kind {
        _ if !Check::LoginPlace.on() => format!("{who}: login `{login}`: {what}"),
        HttpErrorKind::Denied(DenialReason::Address) => {
            format!(
                "policy: login `{login}` does not reach its address; the log says which, and its `addresses` what may be"
            )
        }
        HttpErrorKind::Limit(limit) => {
            format!("limit: login `{login}` reached `{limit}`; raise `limits.{limit}` if that is right")
        }
        kind => format!("{who}: login `{login}` failed ({kind}); the log says where and why"),
    };
    HttpError { message, sent: false, ..error }
}

impl Session {
    async fn start(
        login: &Login,
        reach: &Reach,
        vault: &Vault,
        tell: Tell<'_>,
        deadline: Instant,
    ) -> Result<Session, HttpError> {
        let result = {
            let mut underway = Underway::new(tell);
            let event = &mut underway.event;
            (event.method, event.target) = (login.method.clone(), vault.redact(&login.destination.to_string()));
            event.login = Some(login.name.clone());
            let result = request(login, reach, event, deadline).await;
            event.outcome = result.as_ref().map(|received| received.status).map_err(|error| error.kind);
            event.sent = result.as_ref().err().is_none_or(|error| error.sent);
            event.why = result.as_ref().err().map(|error| vault.redact(&error.message)).unwrap_or_default();
            result
        };
        Session::read(login, &result.map_err(|error| for_guest(&login.name, error))?, vault)
    }

    fn read(login: &Login, received: &Received, vault: &Vault) -> Result<Session, HttpError> {
        let (name, status) = (&login.name, received.status);
        let what = format!("login `{name}` was answered with HTTP {status}");
        match status {
            200..=299 => {}
            _ if !Check::LoginStatus.on() => {}
            400..=403 => {
                let remedy = "check the properties that it takes its credentials from";
                return Err(HttpError::denied(DenialReason::Credential, format!("iaas: {what}; {remedy}")));
            }
            _ => {
                return Err(HttpError::new(HttpErrorKind::Protocol, format!("iaas: {what}; look at the server's log")));
            }
        }
        let message = Message { headers: &received.headers, body: &received.body };
        let unusable = |why: String| HttpError::new(HttpErrorKind::Protocol, format!("iaas: {what}, {why}"));
        let token = match login.token.read(&message) {
            Ok(Some(token)) if Check::LoginTokenSize.on() && token.len() > MAX_TOKEN => {
                return Err(unusable(format!("with a token of {} bytes", token.len())));
            }
            Ok(Some(token)) if !token.is_empty() => Secret::new(token),
            Ok(_) => return Err(unusable(format!("without a token in `{}`; check the login's `token`", login.token))),
            Err(error) => return Err(unusable(format!("and its token cannot be read: {error}"))),
        };
        vault.keep(&format!("token of login {name}"), token.clone());
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
        let ends = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime));
        Ok(Session { token, shown: Value::Object(shown).to_string(), ends })
    }
}
