//! The sessions of a call: which request logs in, which ones wait for its token, and when no login is made any more.

use super::error::error_for_guest;
use super::{KeptTokens, LoginContext, LoginSession, register_token};
use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::time::timeout_at;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{DenialReason, Login};

/// Ends a loop of logins if a server rejects all tokens.
const MAX_LOGINS: u32 = 100;

/// Servers lock accounts after some failed logins.
const MAX_FAILED: u32 = 3;

/// The sessions of a call, by the names of their logins.
#[derive(Default)]
pub(in crate::net) struct Sessions {
    known: Mutex<HashMap<String, Arc<LoginState>>>,
    /// The files with tokens of earlier calls, by the names of their logins.
    kept: KeptTokens,
}

/// What is known of one login. Each has locks of its own, so that no login waits for another one.
#[derive(Default)]
struct LoginState {
    /// Locked during a login, so that other requests wait for its token.
    progress: tokio::sync::Mutex<LoginProgress>,
    /// Locked only for a moment, also while a login holds `progress`.
    rejected: Mutex<Option<RejectedToken>>,
}

/// The session of a login, and how often it was made.
#[derive(Default)]
struct LoginProgress {
    session: Option<LoginSession>,
    logins: u32,
    failed: u32,
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

    /// Returns the session of a login: that of this call, one that an earlier call kept, or a new one.
    /// `rejected_token` is the token with which the caller's last attempt failed.
    pub(in crate::net) async fn get(
        &self,
        login: &Login,
        rejected_token: Option<&Secret>,
        context: &LoginContext<'_>,
        deadline: Instant,
    ) -> Result<LoginSession, HttpError> {
        let state = self.state(&login.name);
        let progress = timeout_at(deadline.into(), state.progress.lock()).await;
        let mut progress = progress.map_err(|_| still_waiting(login))?;
        let dropped = lock(&state.rejected).clone();
        let is_usable = |session: &&LoginSession| {
            let token = &session.token;
            session.ends.is_none_or(|ends| ends > Instant::now())
                && rejected_token != Some(token)
                && dropped.as_ref().is_none_or(|dropped| dropped.token != *token)
        };
        if let Some(session) = progress.session.as_ref().filter(is_usable) {
            return Ok(session.clone());
        }
        progress.session = None;
        let still_kept = dropped.as_ref().filter(|dropped| dropped.is_kept).map(|dropped| &dropped.token);
        let unusable_token = rejected_token.or(still_kept);
        let kept = self.kept.find(login, unusable_token, deadline).await;
        let kept = kept.map_err(|error| error_for_guest(login, error))?;
        // A server may still accept tokens that were replaced, so no response may show them.
        kept.tokens().into_iter().for_each(|token| register_token(context.vault, login, token));
        let session = match kept.session {
            Some(session) => session,
            None => {
                progress.count_login(login)?;
                let session = match LoginSession::start(login, context, deadline).await {
                    Ok(session) => session,
                    Err(error) => {
                        progress.count_failure(error.sent);
                        return Err(error_for_guest(login, error));
                    }
                };
                kept.store(&session, unusable_token.is_some());
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

    fn state(&self, login: &str) -> Arc<LoginState> {
        Arc::clone(lock(&self.known).entry(login.to_owned()).or_default())
    }
}

impl LoginProgress {
    /// Counts a login, unless there were too many.
    fn count_login(&mut self, login: &Login) -> Result<(), HttpError> {
        Check::LoginCount.ensure(self.logins < MAX_LOGINS, || {
            let what = "times in this call, and the servers do not accept its tokens; look at the servers' logs";
            let what = format!("login `{}` was done {MAX_LOGINS} {what}", login.name);
            HttpError::cloud(HttpErrorKind::Protocol, what)
        })?;
        Check::LoginFailures.ensure(self.failed < MAX_FAILED, || {
            let what = "times in this call, and is not tried again, because servers lock accounts; the log says why";
            let kind = HttpErrorKind::Denied(DenialReason::Credential);
            HttpError::cloud(kind, format_args!("login `{}` failed {MAX_FAILED} {what}", login.name))
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
fn still_waiting(login: &Login) -> HttpError {
    let what = format!(
        "another request of this call is logging in with `{}`, and that did not end within the time of this \
         request; raise the request's timeout, or look at the login's server",
        login.name
    );
    let error = HttpError::failed(Who::Iaas, HttpErrorKind::Timeout, what);
    HttpError { login: Some(login.name.as_str().into()), ..error }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
