//! The gate: the only access of a guest to the network.
//!
//! Each request passes the same steps in the same order (see `net`). Nothing is
//! sent before all checks have passed, and every response passes the steps of `response`.
//!
//! What the guest gets does not depend on secrets: the messages of errors have fixed words and the
//! guest's own ones, and limits count what the guest wrote, not what replaced its seals.

pub(super) mod auth;
pub mod blocks;
mod bodies;
mod checking;
mod judged_fields;
mod message;
mod refused_seal;
mod response;
mod reuse;
mod sending;
mod trace;

pub use crate::net::http_event::{HttpEvent, NOTHING_TO_SEND};
pub use crate::net::http_record::{HttpCounts, Leak};
pub use message::{GuestBody, GuestBodyPart, GuestRequest, GuestResponse};

use crate::failure::Cause;
use crate::image::Image;
use crate::leak_latch::LeakLatch;
use crate::limits::Limits;
use crate::net::creations::Creations;
use crate::net::error::HttpError;
use crate::net::exchange::Received;
use crate::net::http_event::PendingEvent;
use crate::net::http_record::{HttpRecord, Outcome};
use crate::net::http_trace::Tracer;
use crate::net::login::{self, KeptTokens, Sessions};
use crate::net::proxy::ProxyConfig;
use crate::net::transport::Transport;
use crate::token_store::{TokenStore, TokenStoreError};
use crate::vault::Vault;
use reqwest::Method;
use sending::CheckedRequest;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::{Grant, Policy, Slot};

/// Receives the event of every request, whatever its outcome.
pub type HttpObserver = Box<dyn Fn(&HttpEvent) + Send + Sync>;

/// Method and destination of a guest's request, and the grant that allows it.
#[derive(Clone, Copy)]
struct GrantedRequest<'a> {
    grant: &'a Grant,
    method: &'a Method,
    destination: &'a Destination,
}

impl<'a> GrantedRequest<'a> {
    /// Returns the slots of the grant that are for this request.
    fn slots(self) -> impl Iterator<Item = &'a Slot> {
        let GrantedRequest { grant, method, destination } = self;
        grant.slots.iter().filter(|slot| slot.method == method.as_str() && slot.path.matches(destination.path()))
    }
}

/// Sends the requests of one guest.
pub struct Gate {
    policy: Arc<Policy>,
    vault: Arc<Vault>,
    limits: Limits,
    image: Option<Arc<Image>>,
    transport: Transport,
    sessions: Sessions,
    record: HttpRecord,
    latch: Option<Arc<LeakLatch>>,
    creations: Creations,
    observer: Option<HttpObserver>,
}

impl Gate {
    /// Creates a gate without opening anything: sockets, certificates and name servers wait
    /// for the first request. `observer` receives every request when it has ended.
    pub fn new(
        policy: Arc<Policy>,
        vault: Arc<Vault>,
        limits: &Limits,
        allow_local: bool,
        image: Option<Arc<Image>>,
        observer: Option<HttpObserver>,
    ) -> Self {
        let transport = Transport::new(Arc::clone(&policy), limits, allow_local);
        let (sessions, record, creations) = (Sessions::default(), HttpRecord::default(), Creations::default());
        let (limits, latch) = (limits.clone(), None);
        Gate { policy, vault, limits, image, transport, sessions, record, latch, creations, observer }
    }

    /// Sets the directory of the files that the policy names, which is that of the policy.
    #[must_use]
    pub fn with_files_in(mut self, directory: &Path) -> Self {
        self.transport.files = directory.to_owned();
        self
    }

    /// Sets the proxies for destinations that are not connected to directly.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Option<ProxyConfig>) -> Self {
        self.transport.proxy = proxy;
        self
    }

    /// Keeps tokens of logins in files of this store. `owner` says whose they are: the guest and its job.
    /// Call it last, because a token depends on the proxy and on the policy's files. Tokens of earlier calls are
    /// secrets from now on: a server may show them to a call that does not use their login.
    pub fn keep_tokens(&mut self, store: &TokenStore, owner: &[&[u8]]) -> Result<(), TokenStoreError> {
        let mut files = HashMap::new();
        for login in self.policy.logins.values() {
            // A login whose certificates cannot be read fails later, with its own error.
            let Some(certificates) = self.transport.certificates(&login.tls) else { continue };
            let proxy = self.transport.proxy.as_ref().map(ProxyConfig::token_key_parts).unwrap_or_default();
            let values = login::token_depends_on(login);
            let values = values.iter().chain(&certificates).chain(&proxy).map(|value| value.reveal().as_bytes());
            let all: Vec<&[u8]> = owner.iter().copied().chain(values).collect();
            let file = store.file(&all)?;
            let kept = file.read().filter(|record| record.is_valid_at(jiff::Timestamp::now().as_second()));
            if let Some(record) = kept {
                Check::TokenKnown.perform(|| login::register_token(&self.vault, login, record.token));
            }
            files.insert(login.name.clone(), file);
        }
        self.sessions = Sessions::new(KeptTokens::new(files));
        Ok(())
    }

    /// Returns true if the call may write the files of kept tokens.
    pub fn keeps_tokens(&self) -> bool {
        self.sessions.keeps_tokens()
    }

    /// Traces every request that is sent, and its response.
    #[must_use]
    pub fn with_trace(mut self, trace: Option<Tracer>) -> Self {
        self.transport.trace = trace;
        self
    }

    /// Sets what remembers a leak for the calls after this one.
    #[must_use]
    pub fn with_latch(mut self, latch: Option<Arc<LeakLatch>>) -> Self {
        self.latch = latch;
        self
    }

    /// Records what the requests create, so that the call can be undone.
    #[must_use]
    pub fn with_creations(mut self) -> Self {
        self.creations = Creations::recording();
        self
    }

    /// Opens the files that requests may read, because no file can be opened after lock-down.
    /// Returns their number.
    pub fn open_files(&self) -> usize {
        self.transport.open_files()
    }

    #[cfg(test)]
    pub(super) fn with_resolver(mut self, resolver: crate::net::resolver::Resolver) -> Self {
        self.transport.resolver = resolver;
        self
    }

    /// Sends a guest's request, if all checks pass, and returns the screened response.
    pub async fn send(&self, request: GuestRequest, deadline: Instant) -> Result<GuestResponse, HttpError> {
        let report = |event: &HttpEvent| self.report_event(event);
        let mut pending = PendingEvent::new(&report);
        let event = &mut pending.event;
        let result = self.process(request, deadline, event).await;
        event.conclude(result.as_ref().map(|response| response.status));
        self.record.record_error(result.as_ref().err());
        #[cfg(feature = "mutation-testing")]
        let result = result.map_err(|error| crate::net::mutants::redact_for_guest(&self.vault, error));
        result
    }

    /// Returns the part of a login's response that the guest may see, a JSON object.
    pub async fn session(&self, name: &str, deadline: Instant) -> Result<String, HttpError> {
        let shown = self.visible_session(name, deadline).await;
        let shown = shown.map_err(|error| HttpError { login: Some(name.into()), ..error });
        self.record.record_error(shown.as_ref().err());
        shown
    }

    /// Records that this error is the one to explain if the guest fails.
    pub fn record_error(&self, error: &HttpError) {
        self.record.record_error(Some(error));
    }

    /// Returns the leak because of which the call has to end, if there was one.
    pub fn leak(&self) -> Option<Leak> {
        self.record.leak()
    }

    /// Returns why the last request failed, for people.
    pub fn last_failure(&self) -> Cause {
        self.record.last_failure()
    }

    /// Returns the requests that changed something, or may have.
    pub fn changes(&self) -> Vec<String> {
        self.record.changes()
    }

    /// Returns the error responses of servers that the guest did not see, for people.
    pub fn hidden_errors(&self) -> Vec<String> {
        self.record.hidden_errors()
    }

    /// Returns true if the traffic proves that requests of this call created the resource.
    pub fn has_created(&self, cid: &str) -> bool {
        self.creations.has_created(cid)
    }

    /// Returns the names of the sealed values that a server received in a slot, or may have
    /// received: a response can get lost.
    pub fn delivered_secrets(&self) -> Vec<String> {
        self.record.delivered()
    }

    /// Returns what would allow the last request that was denied, for operators.
    pub fn hint(&self) -> Option<String> {
        self.record.hint()
    }

    /// Returns the number of requests so far, and the sizes of their bodies.
    pub fn counts(&self) -> HttpCounts {
        self.record.counts()
    }

    async fn process(
        &self,
        request: GuestRequest,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<GuestResponse, HttpError> {
        let checked = self.check(request, deadline, event)?;
        let received = self.send_and_record(&checked, event).await?;
        self.complete_response(&checked, received, event)
    }

    /// Sends a request, and records whether it may have changed something and which secrets it delivered.
    async fn send_and_record(&self, checked: &CheckedRequest, event: &mut HttpEvent) -> Result<Received, HttpError> {
        let method = &checked.method;
        // Recorded before it is sent, because the call may end before the response.
        let change =
            (!checking::is_read(method)).then(|| self.record.record_change(format!("{method} {}", event.target)));
        let received = self.send_with_token(checked, event).await;
        if let Some(number) = change {
            self.record.record_outcome(number, Outcome::of(&received));
        }
        let may_be_handled = match &received {
            Ok(received) => matches!(received.status, 200..=299 | 500..=599),
            Err(error) => error.sent,
        };
        if may_be_handled {
            self.record.record_delivered(&checked.secrets.names);
        }
        received
    }

    fn report_event(&self, event: &HttpEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    fn start_request(&self) -> Result<(), HttpError> {
        self.record.start_request(&self.limits)
    }
}
