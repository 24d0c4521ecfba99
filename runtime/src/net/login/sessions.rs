//! The sessions of a call: which request obtains a token, which ones wait for it, and when none is asked for any more.
//! A token is that of a login, or stands for temporary keys.

use super::{KeptTokens, TokenSession};
use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout_at;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;
use wasm_cpi_policy::secret::Secret;

/// Ends a loop of logins if a server rejects all tokens.
const MAX_LOGINS: u32 = 100;

/// Servers lock accounts after some failed logins.
const MAX_FAILED: u32 = 3;

/// After a renewal, no other one is made for this long, if a server refuses the new token, too.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60);

/// What a token is obtained from: a login, or credentials that expire.
pub(in crate::net) trait TokenSource {
    /// Returns the name in the policy.
    fn name(&self) -> &str;

    /// Returns what messages call it, such as "login `main`".
    fn label(&self) -> String;

    /// Returns for how long before its end a token is not used.
    fn margin(&self) -> Duration;

    /// Returns true if a call asks for a new token at most once a minute because a server rejected the last one.
    fn is_renewed_once_a_minute(&self) -> bool;

    /// Makes a token known, for redaction and the tripwire.
    fn register(&self, token: &Secret);

    /// Returns the error of a failed attempt as the guest may see it.
    fn error_for_guest(&self, error: HttpError) -> HttpError;

    /// Obtains a new token, and registers it. The error says whether any byte may have been sent, and is not for
    /// guests.
    async fn obtain(&self, deadline: Instant) -> Result<TokenSession, HttpError>;
}

/// The sessions of a call, by the names of their logins or credentials.
#[derive(Default)]
pub(in crate::net) struct Sessions {
    known: Mutex<HashMap<String, Arc<SessionState>>>,
    /// The files with tokens of earlier calls, by the same names.
    kept: KeptTokens,
}

/// What is known of one name. Each has locks of its own, so that no login waits for another one.
#[derive(Default)]
struct SessionState {
    /// Locked during a login, so that other requests wait for its token.
    progress: tokio::sync::Mutex<Progress>,
    /// Locked only for a moment, also while a login holds `progress`.
    rejected: Mutex<Option<RejectedToken>>,
}

/// The session of a login, and how often it was made.
#[derive(Default)]
struct Progress {
    session: Option<TokenSession>,
    logins: u32,
    failed: u32,
    /// When a login was last made because a server rejected the token.
    renewed: Option<Instant>,
}

/// A token that a server rejected, and that the call does not use any more.
#[derive(Clone)]
struct RejectedToken {
    token: Secret,
    /// True if its file still holds it.
    is_kept: bool,
}

impl Sessions {
    pub(in crate::net) fn new(kept: KeptTokens) -> Self {
        Sessions { known: Mutex::default(), kept }
    }

    pub(in crate::net) fn keeps_tokens(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns a session: that of this call, one that an earlier call kept, or a new one.
    /// `rejected_token` is the token with which the caller's last attempt failed.
    pub(in crate::net) async fn get(
        &self,
        source: &impl TokenSource,
        rejected_token: Option<&Secret>,
        deadline: Instant,
    ) -> Result<TokenSession, HttpError> {
        let state = self.state(source.name());
        let progress = timeout_at(deadline.into(), state.progress.lock()).await;
        let mut progress = progress.map_err(|_| still_waiting(source))?;
        let dropped = lock(&state.rejected).clone();
        let is_usable = |session: &&TokenSession| {
            let token = &session.token;
            session.ends.is_none_or(|ends| ends > Instant::now())
                && rejected_token != Some(token)
                && dropped.as_ref().is_none_or(|dropped| dropped.token != *token)
        };
        if let Some(session) = progress.session.as_ref().filter(is_usable) {
            return Ok(session.clone());
        }
        let still_kept = dropped.as_ref().filter(|dropped| dropped.is_kept).map(|dropped| &dropped.token);
        let unusable_token = rejected_token.or(still_kept);
        if unusable_token.is_some() && source.is_renewed_once_a_minute() {
            progress.expect_renewal(source)?;
        }
        let kept = self.kept.find(source, unusable_token, deadline).await;
        let kept = kept.map_err(|error| source.error_for_guest(error))?;
        progress.session = None;
        // A server may still accept tokens that were replaced, so no response may show them.
        kept.tokens().iter().for_each(|token| source.register(token));
        let session = match kept.session {
            Some(session) => session,
            None => {
                progress.count_login(source)?;
                progress.renewed = unusable_token.map(|_| Instant::now()).or(progress.renewed);
                let session = match source.obtain(deadline).await {
                    Ok(session) => session,
                    Err(error) => {
                        progress.count_failure(error.sent);
                        return Err(source.error_for_guest(error));
                    }
                };
                kept.store(&session, unusable_token.is_some(), source.margin());
                session
            }
        };
        progress.session = Some(session.clone());
        *lock(&state.rejected) = None;
        Ok(session)
    }

    /// Drops a token that a server rejected. Neither the next request of this call nor later calls use it.
    pub(in crate::net) fn drop_token(&self, login: &str, rejected_token: &Secret) {
        let is_kept = self.kept.remove(login, rejected_token);
        *lock(&self.state(login).rejected) = Some(RejectedToken { token: rejected_token.clone(), is_kept });
    }

    fn state(&self, login: &str) -> Arc<SessionState> {
        Arc::clone(lock(&self.known).entry(login.to_owned()).or_default())
    }
}

impl Progress {
    /// Rejects a renewal shortly after another one.
    fn expect_renewal(&self, source: &impl TokenSource) -> Result<(), HttpError> {
        let recent = self.renewed.is_some_and(|at| at.elapsed() < RENEWAL_INTERVAL);
        Check::LoginRenewal.ensure(!recent, || {
            let what = "which is less than a minute old; look at the server's log";
            let what = format!("a server refuses the token of {}, {what}", source.label());
            HttpError::cloud(HttpErrorKind::Denied(DenialReason::Credential), what)
        })
    }

    /// Counts a login, unless there were too many.
    fn count_login(&mut self, source: &impl TokenSource) -> Result<(), HttpError> {
        let label = source.label();
        Check::LoginCount.ensure(self.logins < MAX_LOGINS, || {
            let what = "times in this call, and the servers do not accept its tokens; look at the servers' logs";
            HttpError::cloud(HttpErrorKind::Protocol, format_args!("{label} was done {MAX_LOGINS} {what}"))
        })?;
        Check::LoginFailures.ensure(self.failed < MAX_FAILED, || {
            let what = "times in this call, and is not tried again, because servers lock accounts; the log says why";
            let kind = HttpErrorKind::Denied(DenialReason::Credential);
            HttpError::cloud(kind, format_args!("{label} failed {MAX_FAILED} {what}"))
        })?;
        self.logins += 1;
        Ok(())
    }

    /// Counts a login that failed. A login of which nothing was sent was not tried.
    fn count_failure(&mut self, was_sent: bool) {
        if was_sent {
            self.failed += 1;
        } else {
            self.logins -= 1;
        }
    }
}

/// Returns the error of a request whose time ends while another request logs in.
fn still_waiting(source: &impl TokenSource) -> HttpError {
    let what = format!(
        "another request of this call has begun the {}, and that did not end within the time of this request; raise the \
         request's timeout, or look at the server",
        source.label()
    );
    let error = HttpError::failed(Who::Iaas, HttpErrorKind::Timeout, what);
    HttpError { login: Some(source.name().into()), ..error }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
