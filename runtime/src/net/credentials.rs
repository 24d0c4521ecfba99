//! The keys that sign requests: those of properties, of the machine's metadata service, or of an assumed role.
//!
//! Temporary keys are obtained when they are first needed, and kept like the token of a login. No guest has any
//! influence on the requests that obtain them, and no grant can reach the metadata service.

pub(super) mod metadata;
mod role;

use crate::failure::Who;
use crate::limits::NamedLimit;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, Received, SendBody, WireRequest};
use crate::net::gate::auth::credential_owner_of_keys;
use crate::net::http_event::{HttpEvent, PendingEvent, ReportEvent};
use crate::net::http_trace::{Shown, Tracer};
use crate::net::login::{Sessions, TokenSession, TokenSource, expiry};
use crate::net::signing::{Keys, KeysError, ServerClock};
use crate::net::transport::{Route, Transport};
use crate::vault::Vault;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use metadata::MetadataService;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{CredentialSource, Credentials, DenialReason, Tls};

/// Temporary keys are not used for this long before they expire.
const MARGIN: Duration = Duration::from_secs(300);
/// The answers with keys are small.
const MAX_ANSWER: u64 = 64 * 1024;

/// Everything that keys are obtained with in one request.
#[derive(Clone, Copy)]
pub(super) struct KeyRing<'a> {
    pub credentials: &'a BTreeMap<String, Credentials>,
    pub sessions: &'a Sessions,
    pub clock: &'a ServerClock,
    pub metadata: &'a MetadataService,
    pub transport: &'a Transport,
    pub vault: &'a Vault,
    /// Traces requests and responses; `None` if `http_trace` is off.
    pub trace: Option<&'a Tracer>,
    pub report: ReportEvent<'a>,
    pub deadline: Instant,
}

/// Keys, and the text under which they are kept if they are temporary.
#[derive(Clone)]
pub(super) struct Obtained {
    pub keys: Keys,
    pub token: Option<Secret>,
}

impl<'a> KeyRing<'a> {
    /// Returns the keys of credentials. `rejected` are temporary keys that a server rejected.
    pub(super) fn keys(
        self,
        name: &'a str,
        rejected: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Obtained, HttpError>> {
        Box::pin(async move {
            let Some(credentials) = self.credentials.get(name) else {
                let what = format!("the policy has no credentials `{name}`");
                return Err(HttpError::failed(Who::Config, HttpErrorKind::InvalidRequest, what));
            };
            if let CredentialSource::Static { access_key_id, secret_access_key, session_token } = &credentials.source {
                let keys = Keys {
                    access_key_id: access_key_id.secret.clone(),
                    secret_access_key: secret_access_key.secret.clone(),
                    session_token: session_token.as_ref().map(|token| token.secret.clone()),
                };
                return Ok(Obtained { keys, token: None });
            }
            let source = TemporaryKeys { ring: self, credentials };
            let session = self.sessions.get(&source, rejected, self.deadline).await?;
            let keys = Keys::from_token(&session.token).ok_or_else(|| {
                let what =
                    format!("the kept keys of the credentials `{name}` are damaged; run `wasm-cpi forget-tokens`");
                HttpError::failed(Who::Runtime, HttpErrorKind::Protocol, what)
            })?;
            Ok(Obtained { keys, token: Some(session.token) })
        })
    }

    /// Sends a request for keys, and reports and traces it. Nothing of it is shown but the names of its headers.
    async fn exchange(
        self,
        credentials: &Credentials,
        route: &Route<'_>,
        wire_request: WireRequest,
        to: To,
        deadline: Instant,
    ) -> Result<Received, HttpError> {
        let mut pending = PendingEvent::new(self.report);
        let event = &mut pending.event;
        (event.method, event.target) = (wire_request.method.to_string(), wire_request.destination.to_string());
        event.credentials = Some(credentials.name.clone());
        let result = self.send(route, wire_request, to, event, deadline).await;
        event.conclude(result.as_ref().map(|received| received.status));
        if let Err(error) = &result {
            (event.check, event.detail) = (error.check, error.explained());
        }
        result
    }

    async fn send(
        self,
        route: &Route<'_>,
        wire_request: WireRequest,
        to: To,
        event: &mut HttpEvent,
        deadline: Instant,
    ) -> Result<Received, HttpError> {
        let WireRequest { method, destination, headers, .. } = &wire_request;
        if let Some(trace) = self.trace {
            let names = headers.keys().map(|name| (name.as_str(), "<redacted>")).collect();
            trace.request(&route.name, method.as_str(), &destination.to_url(), &names, &Shown::Hidden);
        }
        let result = match to {
            To::Link(address, connect) => {
                event.address = Some(address);
                let caps = Caps { connect, first_byte: connect, idle: connect, ..self.caps() };
                event.sent = true;
                self.transport.send_to_link(route, address, wire_request, caps, deadline).await
            }
            To::Judged(body) => {
                let judged = self.transport.addresses.resolve(route, destination, deadline).await;
                let allowed = event.record_addresses(judged)?;
                event.sent = true;
                self.transport.send(route, allowed, wire_request, body, self.caps(), deadline).await
            }
        };
        if let Ok(received) = &result {
            event.address = Some(received.peer);
        }
        if let Some(trace) = self.trace {
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

    fn caps(self) -> Caps {
        let body_limit = NamedLimit { name: "http_response_mib", value: 1 };
        Caps { max_body_bytes: MAX_ANSWER, body_limit, ..self.transport.caps() }
    }
}

/// Where a request for keys goes.
enum To {
    /// To a link-local address, with this much time to connect and to answer.
    Link(IpAddr, Duration),
    /// To addresses of its host that the policy allows, with this body.
    Judged(SendBody),
}

/// Credentials that expire, as a source of tokens: a token is the text of the keys.
struct TemporaryKeys<'a> {
    ring: KeyRing<'a>,
    credentials: &'a Credentials,
}

/// The answer of a server with keys.
struct Answer {
    keys: Keys,
    lifetime: Duration,
}

impl Answer {
    /// Reads the parts of an answer. The error follows "the keys".
    fn new(id: &str, secret: &str, token: &str, expiration: &str) -> Result<Answer, &'static str> {
        let keys = Keys::from_server(id, secret, token).map_err(|error| match error {
            KeysError::Incomplete => "are not complete",
            KeysError::Form => "have characters that no header can hold, or are too long",
        })?;
        let lifetime = expiry::until(expiration, Timestamp::now()).ok_or("have no time at which they expire")?;
        if lifetime.is_zero() {
            return Err("have expired; check the clock of this machine");
        }
        Ok(Answer { keys, lifetime })
    }
}

impl TokenSource for TemporaryKeys<'_> {
    fn name(&self) -> &str {
        &self.credentials.name
    }

    fn label(&self) -> String {
        format!("request for the credentials `{}`", self.credentials.name)
    }

    fn margin(&self) -> Duration {
        MARGIN
    }

    fn is_renewed_once_a_minute(&self) -> bool {
        true
    }

    fn register(&self, token: &Secret) {
        register_keys(self.ring.vault, &self.credentials.name, token);
    }

    fn error_for_guest(&self, error: HttpError) -> HttpError {
        error_for_guest(&self.credentials.name, error)
    }

    async fn obtain(&self, deadline: Instant) -> Result<TokenSession, HttpError> {
        let answer = match &self.credentials.source {
            CredentialSource::AssumedRole(role) => role::assume(self.ring, self.credentials, role, deadline).await?,
            // Static keys are never asked for.
            CredentialSource::Metadata { .. } | CredentialSource::Static { .. } => {
                metadata::ask(self.ring, self.credentials, deadline).await?
            }
        };
        answer.keys.register(self.ring.vault, &self.credentials.name);
        Ok(TokenSession::new(answer.keys.to_token(), "{}".to_owned(), Some(answer.lifetime), MARGIN))
    }
}

/// Makes kept keys known, for redaction and the tripwire.
pub(super) fn register_keys(vault: &Vault, credentials: &str, token: &Secret) {
    if let Some(keys) = Keys::from_token(token) {
        keys.register(vault, credentials);
    }
}

/// Returns everything in temporary credentials that their keys depend on, with secrets. Each value stands for itself,
/// so that no two credentials have the same values by chance.
pub(super) fn keys_depend_on(credentials: &BTreeMap<String, Credentials>, one: &Credentials) -> Vec<Secret> {
    let mut values = vec![Secret::new("credentials"), Secret::new(one.name.as_str())];
    match &one.source {
        CredentialSource::Static { access_key_id, secret_access_key, session_token } => {
            values.push(Secret::new("static"));
            let parts = [access_key_id, secret_access_key].into_iter().chain(session_token);
            values.extend(parts.map(|part| part.secret.clone()));
        }
        CredentialSource::Metadata { ipv6 } => values.push(Secret::new(format!("metadata {ipv6}"))),
        CredentialSource::AssumedRole(role) => {
            let definition = format!(
                "assume_role {:?} {:?} {:?} {:?} {:?}",
                role.role, role.region, role.session_name, role.addresses, role.tls.pin_sha256
            );
            values.extend([Secret::new(definition), Secret::new(role.destination.to_url().as_str())]);
            values.extend(credentials.get(&role.with).into_iter().flat_map(|with| keys_depend_on(credentials, with)));
        }
    }
    values
}

/// Returns the TLS settings of the requests for these keys; `None` if they have none.
pub(super) fn tls_of(one: &Credentials) -> Option<&Tls> {
    one.assumed_role().map(|role| &role.tls)
}

/// Returns the error of keys that could not be obtained, as the guest may see it: its kind and fixed words. The guest's
/// own request has not been sent.
fn error_for_guest(name: &str, error: HttpError) -> HttpError {
    let who = error.who;
    let message = match error.kind {
        // No request was made, and the text names no place.
        _ if error.check == Some(Check::LoginRenewal) => error.message.clone(),
        HttpErrorKind::Limit(limit) => {
            format!("limit: the credentials `{name}` reached `{limit}`; raise `limits.{limit}` if that is legitimate")
        }
        HttpErrorKind::Denied(DenialReason::Credential) => {
            format!("{who}: the credentials `{name}` were refused; the log says where and why")
        }
        kind => format!("{who}: the credentials `{name}` cannot be obtained ({kind}); the log says where and why"),
    };
    let detail = format!("credentials `{name}`: {}", error.explained());
    let login = Some(format!("credentials {name}").into());
    HttpError { message, detail, sent: false, login, ..error }
}

/// Returns the owner of the connections on which keys are asked for. No guest's request uses them.
fn credential_owner(credentials: &Credentials) -> String {
    credential_owner_of_keys(&credentials.name)
}
