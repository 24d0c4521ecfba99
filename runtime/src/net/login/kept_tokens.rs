//! The tokens that earlier calls obtained, and that later calls can use: those of logins, and temporary keys.
//!
//! A call that makes a new login holds the lock of its file meanwhile, so that other calls wait for its
//! token instead of logging in as well. What fails here only costs a login.

use super::{TokenSession, TokenSource};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::token_store::{TokenFile, TokenLock, TokenRecord};
use jiff::Timestamp;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;
use wasm_cpi_policy::secret::Secret;

/// The longest wait for the login of another call.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// The pause between two attempts to get the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Calls make at most one new login in this time because a server rejected a kept token.
const RENEWAL_INTERVAL_SECONDS: i64 = 60;

/// The files of the tokens of a call, by the names of the logins or credentials.
#[derive(Default)]
pub(in crate::net) struct KeptTokens(HashMap<String, TokenFile>);

/// What was found of a login, and the right to replace it.
pub(super) struct KeptLogin<'a> {
    pub session: Option<TokenSession>,
    /// The file, if this call has its lock.
    locked: Option<(&'a TokenFile, TokenLock<'a>)>,
    /// The last record of the file.
    last: Option<TokenRecord>,
}

impl KeptTokens {
    /// Returns the tokens that these files keep.
    pub(in crate::net) fn new(files: HashMap<String, TokenFile>) -> KeptTokens {
        KeptTokens(files)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the token that an earlier call kept, or the lock of its file for a new login. `rejected_token` is one
    /// that a server rejected in this call.
    pub(super) async fn find(
        &self,
        source: &impl TokenSource,
        rejected_token: Option<&Secret>,
        deadline: Instant,
    ) -> Result<KeptLogin<'_>, HttpError> {
        let found = |session, locked, last| KeptLogin { session, locked, last };
        let Some(file) = self.0.get(source.name()) else { return Ok(found(None, None, None)) };
        let record = file.read();
        if let Some(session) = record.as_ref().and_then(|record| usable(record, rejected_token, source.margin())) {
            return Ok(found(Some(session), None, record));
        }
        let Some(lock) = wait_for_lock(file, deadline).await else { return Ok(found(None, None, record)) };
        // Another call may have logged in meanwhile.
        let Some(record) = file.read() else { return Ok(found(None, Some((file, lock)), None)) };
        if let Some(session) = usable(&record, rejected_token, source.margin()) {
            return Ok(found(Some(session), None, Some(record)));
        }
        let now = Timestamp::now().as_second();
        Check::LoginRenewal.ensure(rejected_token.is_none() || !was_renewed(&record, now), || {
            let what = format!(
                "a server refuses the tokens of {}, and there was a new login less than a minute ago; look at the \
                 server's log, and at the rights of the login's user",
                source.label()
            );
            HttpError::cloud(HttpErrorKind::Denied(DenialReason::Credential), what)
        })?;
        if rejected_token == Some(&record.token) {
            // The login may fail, and later calls must not repeat it at once.
            let _ = file.write(&TokenRecord::without_token(now).after(Some(&record), now));
        }
        Ok(found(None, Some((file, lock)), Some(record)))
    }

    /// Removes a token that a server rejected from its file, so that later calls log in. It stays if
    /// there was such a login within the last minute, or if another call replaces it now. Returns true if it stays.
    pub(super) fn remove(&self, login: &str, rejected_token: &Secret) -> bool {
        let Some(file) = self.0.get(login) else { return false };
        let lock = file.try_lock();
        let Some(record) = file.read().filter(|record| record.token == *rejected_token) else { return false };
        let now = Timestamp::now().as_second();
        let is_removable = matches!(lock, Ok(Some(_))) && !was_renewed(&record, now);
        !is_removable || file.write(&TokenRecord::without_token(now).after(Some(&record), now)).is_err()
    }
}

impl KeptLogin<'_> {
    /// Returns the tokens of the file that a server may still accept, also those that are not used any more.
    pub(super) fn tokens(&self) -> Vec<Secret> {
        let now = Timestamp::now().as_second();
        let tokens = self.last.as_ref().map(|last| last.valid_tokens(now)).unwrap_or_default();
        tokens.into_iter().map(|one| one.token).collect()
    }

    /// Keeps the token of a new login, if it says when it expires. `renewed` is true if a server rejected the
    /// last one.
    pub(super) fn store(self, session: &TokenSession, renewed: bool, margin: Duration) {
        let (Some((file, _lock)), Some(expires)) = (self.locked, session.expires) else { return };
        let now = Timestamp::now().as_second();
        let lifetime = expires.saturating_duration_since(Instant::now());
        let last_rejection = if renewed { Some(now) } else { self.last.as_ref().and_then(|last| last.last_rejection) };
        let record = TokenRecord::new(session.token.clone(), session.shown.clone(), now, lifetime, last_rejection)
            .after(self.last.as_ref(), now);
        if record.usable_for(now, margin).is_none() {
            return;
        }
        // A full disk leaves half a record, which counts as none.
        let _ = file.write(&record);
    }
}

/// Returns true if there was a login within the last minute because a server rejected a kept token.
fn was_renewed(record: &TokenRecord, now: i64) -> bool {
    record.last_rejection.is_some_and(|at| at <= now && now - at < RENEWAL_INTERVAL_SECONDS)
}

/// Returns the session of a record, if it can still be used.
fn usable(record: &TokenRecord, rejected_token: Option<&Secret>, margin: Duration) -> Option<TokenSession> {
    let left = record.usable_for(Timestamp::now().as_second(), margin)?;
    if rejected_token == Some(&record.token) {
        return None;
    }
    let ends = Some(Instant::now().checked_add(left)?);
    Some(TokenSession { token: record.token.clone(), shown: record.shown.clone(), ends, expires: None })
}

async fn wait_for_lock(file: &TokenFile, deadline: Instant) -> Option<TokenLock<'_>> {
    let until = deadline.min(Instant::now() + MAX_WAIT);
    loop {
        match file.try_lock() {
            Ok(Some(lock)) => return Some(lock),
            Ok(None) if Instant::now() < until => tokio::time::sleep(POLL_INTERVAL).await,
            Ok(None) | Err(_) => return None,
        }
    }
}
