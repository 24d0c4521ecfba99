//! The credential of a grant, or the signature of its requests. It is added last, after all checks, and is sent to the
//! grant's origin only.

use super::sending::CheckedRequest;
use super::{Gate, GrantedRequest, HttpEvent};
use crate::failure::Who;
use crate::net::client::basic_auth;
use crate::net::credentials::{KeyRing, Obtained};
use crate::net::error::{HttpError, HttpErrorKind, quoted};
use crate::net::exposure::Exposure;
use crate::net::headers::{HeaderRules, secret_value};
use crate::net::http_event::ReportEvent;
use crate::net::login::{LoginContext, LoginSource, TokenSession};
use crate::net::response::agent_settings::clean_json;
use crate::net::signing::guest_request::SignedHeaders;
use crate::net::signing::{ClockOffset, SignWith, ToSign, sign};
use crate::net::slots::FilledSecrets;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::Place;
use wasm_cpi_policy::secret::{Layer, Secret};
use wasm_cpi_policy::{Auth, DenialReason, Grant, Login, ResolvedText, SigV4};
use zeroize::Zeroizing;

/// The headers that authenticate one request.
#[derive(Default)]
pub(super) struct AuthHeaders {
    /// Names and values; empty if the grant sends no credential.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The token of a login that is in them, or the temporary keys that signed the request.
    pub token: Option<Secret>,
    /// The clock that the request was signed by; `None` if it is not signed.
    pub clock: Option<ClockOffset>,
}

impl AuthHeaders {
    fn one(name: HeaderName, value: HeaderValue, token: Option<Secret>) -> AuthHeaders {
        AuthHeaders { headers: vec![(name, value)], token, clock: None }
    }
}

/// Returns whose credentials a request carries: those of its grant, by names of the policy, and those that
/// filled slots in its headers, by their seals. Requests of different owners do not share a connection.
pub(super) fn credential_owner(grant: &Grant, secrets: &FilledSecrets) -> String {
    let named = |kind: &str, values: &[&ResolvedText]| {
        let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
        // Names do not show literal text, and another grant may have another text around the same property.
        let is_named = !names.contains(&"") && !values.iter().any(|value| value.has_literal);
        if is_named { format!("{kind} {}", names.join(" ")) } else { format!("grant {}", grant.id) }
    };
    let of_grant = match &grant.auth {
        None => String::new(),
        Some(Auth::Basic { user, password }) => named("basic", &[user, password]),
        Some(Auth::Bearer(value)) => named("bearer", &[value]),
        // The header is another one in other grants.
        Some(Auth::Header { .. }) => format!("grant {}", grant.id),
        Some(Auth::Login(name)) => format!("login {name}"),
        Some(Auth::SigV4(sigv4)) => format!("credentials {}", sigv4.credentials),
    };
    match secrets.in_headers.as_slice() {
        [] => of_grant,
        seals => format!("{of_grant} with {}", seals.join(" ")),
    }
}

/// Returns whose credentials the requests of a login carry. They share no connection with requests of a guest,
/// whose bodies a server may have left unread.
pub(in crate::net) fn credential_owner_of_login(name: &str) -> String {
    format!("requests of login {name}")
}

/// Returns whose credentials the requests for keys carry. They share no connection with requests of a guest, either.
pub(in crate::net) fn credential_owner_of_keys(name: &str) -> String {
    format!("requests of credentials {name}")
}

impl Gate {
    pub(super) fn header_rules<'a>(&'a self, request: GrantedRequest<'a>, exposure: Exposure) -> HeaderRules<'a> {
        let grant = request.grant;
        let auth = match &grant.auth {
            None => None,
            Some(Auth::Basic { .. } | Auth::Bearer(_) | Auth::SigV4(_)) => Some("authorization"),
            Some(Auth::Header { name, .. }) => Some(name.as_str()),
            Some(Auth::Login(name)) => self.policy.logins.get(name).map(|login| login.send.header.as_str()),
        };
        let slots = request.slots().filter_map(|slot| match &slot.place {
            Place::Header(name) => Some(name.as_str()),
            _ => None,
        });
        HeaderRules { grant: &grant.id, exposure, auth, slots: slots.collect(), signed: SignedHeaders::of(grant) }
    }

    /// Returns the layer of the values that the response holds: the job's, if any credential of
    /// the job was sent; the context's, if only credentials of a cpi-config were sent.
    pub(super) fn layer_of_response(&self, grant: &Grant, secret_layers: &[Layer]) -> Layer {
        Check::LayerCapture.perform_or(Layer::Call, || self.layer_of_credentials(grant, secret_layers))
    }

    fn layer_of_credentials(&self, grant: &Grant, secret_layers: &[Layer]) -> Layer {
        if grant.layer == Layer::Context {
            return Layer::Context;
        }
        let mut layers = secret_layers.to_vec();
        let named = |value: &ResolvedText| (!value.name.is_empty()).then_some(value.layer);
        match &grant.auth {
            None => {}
            Some(Auth::SigV4(sigv4)) => {
                layers.extend(self.policy.credentials.get(&sigv4.credentials).map(|credentials| credentials.layer));
            }
            Some(Auth::Basic { user, password }) => layers.extend([user, password].into_iter().filter_map(named)),
            Some(Auth::Bearer(value) | Auth::Header { value, .. }) => layers.extend(named(value)),
            Some(Auth::Login(name)) => layers.extend(self.policy.logins.get(name).map(|login| login.token_layer)),
        }
        layers.extend(grant.tls.client.is_some().then_some(grant.layer));
        let only_context = !layers.is_empty() && layers.iter().all(|layer| *layer == Layer::Context);
        if only_context { Layer::Context } else { Layer::Job }
    }

    /// Returns the headers that authenticate a request, and obtains a token or keys if that is needed. `headers` are
    /// all others, and `rejected_token` is a token that the server rejected.
    pub(super) async fn auth_headers(
        &self,
        checked: &CheckedRequest,
        headers: &HeaderMap,
        rejected_token: Option<&Secret>,
    ) -> Result<AuthHeaders, HttpError> {
        Ok(match &checked.grant.auth {
            None => AuthHeaders::default(),
            Some(Auth::Basic { user, password }) => {
                AuthHeaders::one(AUTHORIZATION, basic_auth(user.secret.reveal(), &password.secret)?, None)
            }
            Some(Auth::Bearer(token)) => {
                AuthHeaders::one(AUTHORIZATION, prefixed("Bearer ", &token.secret, "authorization")?, None)
            }
            Some(Auth::Header { name, value }) => {
                AuthHeaders::one(header(name)?, secret_value(value.secret.reveal(), name)?, None)
            }
            Some(Auth::Login(name)) => {
                let login = self.find_login(name)?;
                let session = self.log_in(login, rejected_token, checked.deadline).await?;
                let value = prefixed(&login.send.prefix, &session.token, &login.send.header)?;
                AuthHeaders::one(header(&login.send.header)?, value, Some(session.token))
            }
            Some(Auth::SigV4(sigv4)) => self.signature(sigv4, checked, headers, rejected_token).await?,
        })
    }

    async fn signature(
        &self,
        sigv4: &SigV4,
        checked: &CheckedRequest,
        headers: &HeaderMap,
        rejected_keys: Option<&Secret>,
    ) -> Result<AuthHeaders, HttpError> {
        let report = |event: &HttpEvent| self.report_event(event);
        let ring = self.key_ring(&report, checked.deadline);
        let Obtained { keys, token } = ring.keys(&sigv4.credentials, rejected_keys).await?;
        let payload_sha256 = self.payload_sha256(checked).await?;
        let (method, destination) = (&checked.method, &checked.destination);
        let to_sign = ToSign { method, destination, headers, payload_sha256: &payload_sha256 };
        let SigV4 { service, region, credentials } = sigv4;
        // The time is taken last: reading an image may take minutes.
        let offset = self.clock.offset();
        let with = SignWith { keys: &keys, credentials, service, region, offset };
        Ok(AuthHeaders { headers: sign(&to_sign, &with, &self.vault)?, token, clock: Some(offset) })
    }

    /// Returns true if there are other temporary keys now than those that a server rejected.
    pub(super) async fn has_other_keys(&self, sigv4: &SigV4, rejected: &Secret, deadline: Instant) -> bool {
        let report = |event: &HttpEvent| self.report_event(event);
        let obtained = self.key_ring(&report, deadline).keys(&sigv4.credentials, Some(rejected)).await;
        // If there are none, the guest gets the server's answer, which says more than the reason.
        obtained.is_ok_and(|obtained| obtained.token.as_ref() != Some(rejected))
    }

    fn key_ring<'a>(&'a self, report: ReportEvent<'a>, deadline: Instant) -> KeyRing<'a> {
        KeyRing {
            credentials: &self.policy.credentials,
            sessions: &self.key_sessions,
            clock: &self.clock,
            metadata: &self.metadata,
            transport: &self.transport,
            vault: &self.vault,
            trace: self.trace.as_ref(),
            report,
            deadline,
        }
    }

    async fn log_in(
        &self,
        login: &Login,
        rejected_token: Option<&Secret>,
        deadline: Instant,
    ) -> Result<TokenSession, HttpError> {
        let report = |event: &HttpEvent| self.report_event(event);
        let (transport, vault, trace) = (&self.transport, &*self.vault, self.trace.as_ref());
        let context = LoginContext { transport, vault, trace, report: &report };
        self.sessions.get(&LoginSource { login, context }, rejected_token, deadline).await
    }

    /// Drops a token that a server rejected, so that the next request gets a new one.
    pub(super) fn drop_token(&self, grant: &Grant, rejected_token: &Secret) {
        if let Some(Auth::Login(name)) = &grant.auth {
            self.sessions.drop_token(name, rejected_token);
        }
    }

    pub(super) async fn visible_session(&self, name: &str, deadline: Instant) -> Result<String, HttpError> {
        self.start_request()?;
        let login = self.find_login(name)?;
        Check::NeedsLogin.ensure(self.policy.declares_login(&login.name), || HttpError {
            hint: Some(format!(
                "the guest's author declares it in needs.json, at its top: \"logins\": [\"{}\"]",
                login.name
            )),
            ..HttpError::denied(
                DenialReason::Undeclared,
                format_args!("the guest's needs do not declare the login `{}`", login.name),
            )
        })?;
        let session = self.log_in(login, None, deadline).await?;
        let leak = self.vault.leak_in(session.shown.as_bytes());
        let leak = leak.map_err(|stopped| HttpError::failed(Who::Runtime, HttpErrorKind::Cancelled, stopped))?;
        Check::TripwireShown.reject(leak, |secret| {
            self.leaked(&secret, &format!("what the login `{name}` shows"), "narrow its `show`")
        })?;
        Ok(clean_json(&session.shown))
    }

    fn find_login(&self, name: &str) -> Result<&Login, HttpError> {
        self.policy.logins.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.policy.logins.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let what = format!("there is no login `{}`; there are: {known}", quoted(name));
            HttpError::denied(DenialReason::Undeclared, what)
        })
    }
}

fn prefixed(prefix: &str, token: &Secret, name: &str) -> Result<HeaderValue, HttpError> {
    secret_value(&Zeroizing::new(format!("{prefix}{}", token.reveal())), name)
}

fn header(name: &str) -> Result<HeaderName, HttpError> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        HttpError::failed(
            Who::Config,
            HttpErrorKind::InvalidRequest,
            "the name of the header in `auth` is invalid; use letters, digits and `-`",
        )
    })
}
