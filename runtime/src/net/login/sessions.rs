//! The sessions of a call: which request logs in, which ones wait for its token, and when no login is made any more.

use super::{KeptTokens, Session, for_guest, register_token};
use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::http_event::ReportEvent;
use crate::net::transport::Transport;
use crate::vault::Vault;
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

/// What is known of one login. Each has a lock of its own, so that no login waits for another one.
#[derive(Default)]
struct LoginState {
    /// Locked during a login, so that other requests wait for its token.
    attempts: tokio::sync::Mutex<Attempts>,
    refused: Mutex<Option<RefusedToken>>,
}

#[derive(Default)]
struct Attempts {
    session: Option<Session>,
    logins: u32,
    failed: u32,
}

/// A token that a server refused, and that the call does not use any more.
#[derive(Clone)]
struct RefusedToken {
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
    /// `refused` is a token that a server rejected.
    pub(in crate::net) async fn get(
        &self,
        login: &Login,
        refused: Option<&Secret>,
        transport: &Transport,
        vault: &Vault,
        report: ReportEvent<'_>,
        deadline: Instant,
    ) -> Result<Session, HttpError> {
        let state = self.state(&login.name);
        let attempts = timeout_at(deadline.into(), state.attempts.lock()).await;
        let mut attempts = attempts.map_err(|_| still_waiting(login))?;
        let dropped = lock(&state.refused).clone();
        let is_usable = |session: &&Session| {
            let token = &session.token;
            session.ends.is_none_or(|ends| ends > Instant::now())
                && refused != Some(token)
                && dropped.as_ref().is_none_or(|dropped| dropped.token != *token)
        };
        if let Some(session) = attempts.session.as_ref().filter(is_usable) {
            return Ok(session.clone());
        }
        attempts.session = None;
        let refused = refused.or(dropped.as_ref().filter(|dropped| dropped.is_kept).map(|dropped| &dropped.token));
        let kept = self.kept.find(login, refused, deadline).await.map_err(|error| for_guest(login, error))?;
        // A server may still accept tokens that were replaced, so no response may show them.
        kept.tokens().into_iter().for_each(|token| register_token(vault, login, token));
        let session = match kept.session {
            Some(session) => session,
            None => {
                attempts.start(login)?;
                let started = Session::start(login, transport, vault, report, deadline).await;
                let session = started.map_err(|error| attempts.fail(login, error))?;
                kept.store(&session, refused.is_some());
                session
            }
        };
        attempts.session = Some(session.clone());
        *lock(&state.refused) = None;
        Ok(session)
    }

    /// Drops a token that a server refused. Neither the next request of this call nor later calls use it.
    pub(in crate::net) fn drop_token(&self, login: &str, refused: &Secret) {
        let is_kept = self.kept.remove(login, refused);
        *lock(&self.state(login).refused) = Some(RefusedToken { token: refused.clone(), is_kept });
    }

    fn state(&self, login: &str) -> Arc<LoginState> {
        Arc::clone(lock(&self.known).entry(login.to_owned()).or_default())
    }
}

impl Attempts {
    /// Counts a login, unless there were too many.
    fn start(&mut self, login: &Login) -> Result<(), HttpError> {
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

    /// Counts a login that failed, and returns its error for the guest. A login of which nothing was sent was not
    /// tried.
    fn fail(&mut self, login: &Login, error: HttpError) -> HttpError {
        if error.sent {
            self.failed += 1;
        } else {
            self.logins -= 1;
        }
        for_guest(login, error)
    }
}

/// Returns the error of a request whose time ends while another request logs in.
fn still_waiting(login: &Login) -> HttpError {
    let what = format!(
        "another request of the call makes the login `{}`, which did not end within the time of this request; raise \
         the request's timeout, or look at the login's server",
        login.name
    );
    let error = HttpError::failed(Who::Iaas, HttpErrorKind::Timeout, what);
    HttpError { login: Some(login.name.as_str().into()), ..error }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
