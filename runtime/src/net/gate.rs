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
mod filters;
mod judged_fields;
mod message;
mod outgoing_body;
mod refused_seal;
mod request_line;
mod response;
mod reuse;
mod sending;
mod trace;

pub use crate::net::http_event::{HttpEvent, HttpOutcome};
pub use crate::net::http_record::{HttpCounts, Leak};
pub use crate::net::kept_secrets::KeptSecrets;
pub use message::{GuestBody, GuestBodyPart, GuestRequest, GuestResponse};

use crate::failure::Cause;
use crate::image::Image;
use crate::leak_latch::LeakLatch;
use crate::limits::Limits;
use crate::net::creations::Creations;
use crate::net::credentials::metadata::MetadataService;
use crate::net::error::HttpError;
use crate::net::exchange::Received;
use crate::net::http_event::{PendingEvent, request_text};
use crate::net::http_record::{HttpRecord, Outcome};
use crate::net::http_trace::Tracer;
use crate::net::login::Sessions;
use crate::net::proxy::ProxyConfig;
use crate::net::signing::ServerClock;
use crate::net::transport::Transport;
use crate::vault::Vault;
use reqwest::Method;
use sending::CheckedRequest;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::{Grant, Operation, Policy, Slot};

/// Receives the event of every request, whatever its outcome.
pub type HttpObserver = Box<dyn Fn(&HttpEvent) + Send + Sync>;

/// Method and destination of a guest's request, and the grant that allows it.
#[derive(Clone, Copy)]
struct GrantedRequest<'a> {
    grant: &'a Grant,
    method: &'a Method,
    destination: &'a Destination,
    /// The operation of the request, if the grant lists operations.
    operation: Option<&'a Operation>,
}

impl<'a> GrantedRequest<'a> {
    /// Returns the slots of the grant that are for this request.
    fn slots(self) -> impl Iterator<Item = &'a Slot> {
        let (method, path) = (self.method.as_str(), self.destination.path());
        self.grant.slots.iter().filter(move |slot| slot.applies_to(method, path, self.operation_name()))
    }

    /// Returns the request as operators read it, such as `POST https://api.test/ CreateServer`.
    fn text(self) -> String {
        let operation = self.operation.and_then(Operation::plain_name);
        request_text(self.method.as_str(), &self.destination.to_string(), operation)
    }

    /// Returns the name of the operation.
    fn operation_name(self) -> Option<&'a str> {
        self.operation.map(|operation| operation.name.as_str())
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
    /// The temporary keys that sign requests.
    key_sessions: Sessions,
    clock: ServerClock,
    metadata: MetadataService,
    trace: Option<Tracer>,
    record: HttpRecord,
    latch: Option<Arc<LeakLatch>>,
    creations: Creations,
    observer: Option<HttpObserver>,
}

/// What a gate is made of.
pub struct GateParts {
    pub policy: Arc<Policy>,
    pub vault: Arc<Vault>,
    pub limits: Limits,
    pub allow_local: bool,
    pub image: Option<Arc<Image>>,
    /// The directory of the files that the policy names, which is that of the policy.
    pub files: PathBuf,
    /// The proxies for destinations that are not connected to directly.
    pub proxy: Option<ProxyConfig>,
    /// The tokens and temporary keys of earlier calls.
    pub kept: KeptSecrets,
    /// Traces every request that is sent, and its response.
    pub trace: Option<Tracer>,
    /// Remembers a leak for the calls after this one.
    pub latch: Option<Arc<LeakLatch>>,
    /// True if it must be recorded what the requests create, so that the call can be undone.
    pub records_creations: bool,
    /// Receives every request when it has ended.
    pub observer: Option<HttpObserver>,
}

#[cfg(any(test, feature = "fuzzing"))]
impl GateParts {
    /// Returns the parts of a gate that may connect to this machine and has nothing else that is optional.
    pub fn minimal(policy: Arc<Policy>, vault: Arc<Vault>, limits: Limits) -> GateParts {
        GateParts {
            policy,
            vault,
            limits,
            allow_local: true,
            image: None,
            files: PathBuf::new(),
            proxy: None,
            kept: KeptSecrets::default(),
            trace: None,
            latch: None,
            records_creations: false,
            observer: None,
        }
    }
}

impl Gate {
    /// Creates a gate without opening anything: sockets, certificates and name servers wait
    /// for the first request.
    pub fn new(parts: GateParts) -> Self {
        let GateParts { policy, vault, limits, image, trace, latch, observer, .. } = parts;
        Gate {
            transport: Transport::new(Arc::clone(&policy), &limits, parts.allow_local, parts.files, parts.proxy),
            sessions: Sessions::new(parts.kept.tokens),
            key_sessions: Sessions::new(parts.kept.keys),
            clock: ServerClock::default(),
            metadata: MetadataService::default(),
            record: HttpRecord::default(),
            creations: if parts.records_creations { Creations::recording() } else { Creations::default() },
            policy,
            vault,
            limits,
            image,
            trace,
            latch,
            observer,
        }
    }

    /// Returns true if the call may write the files of kept tokens.
    pub fn keeps_tokens(&self) -> bool {
        self.sessions.keeps_tokens() || self.key_sessions.keeps_tokens()
    }

    /// Opens the files that requests may read, because no file can be opened after lock-down.
    /// Returns their number.
    pub fn open_files(&self) -> usize {
        self.transport.tls.open_files(&self.policy)
    }

    /// Asks for keys of the machine at this address, where the server of a test is.
    #[cfg(test)]
    pub(super) fn with_metadata_at(mut self, address: std::net::SocketAddr) -> Self {
        self.metadata.instead = Some(address);
        self
    }

    #[cfg(test)]
    pub(super) fn with_resolver(mut self, resolver: crate::net::resolver::Resolver) -> Self {
        self.transport.addresses.resolver = resolver;
        self
    }

    /// Sends a guest's request, if all checks pass, and returns the screened response. Sets `sent` once any byte may
    /// have been sent, for a caller that abandons the request.
    pub async fn send(
        &self,
        request: GuestRequest,
        deadline: Instant,
        sent: &AtomicBool,
    ) -> Result<GuestResponse, HttpError> {
        let report = |event: &HttpEvent| self.report_event(event);
        let mut pending = PendingEvent::new(&report);
        let event = &mut pending.event;
        let result = self.process(request, deadline, sent, event).await;
        event.conclude(result.as_ref().map(|response| response.status));
        self.record.record_end(result.as_ref().err());
        #[cfg(feature = "mutation-testing")]
        let result = result.map_err(|error| crate::net::mutants::redact_for_guest(&self.vault, error));
        result
    }

    /// Returns the part of a login's response that the guest may see, a JSON object.
    pub async fn session(&self, name: &str, deadline: Instant) -> Result<String, HttpError> {
        let shown = self.visible_session(name, deadline).await;
        let shown = shown.map_err(|error| HttpError { login: Some(name.into()), ..error });
        self.record.record_end(shown.as_ref().err());
        shown
    }

    /// Keeps why the last request failed, or that it succeeded.
    pub fn record_end(&self, result: Result<(), &HttpError>) {
        self.record.record_end(result.err());
    }

    /// Returns the leak because of which the call has to end, if there was one.
    pub fn leak(&self) -> Option<Leak> {
        self.record.leak()
    }

    /// Returns why the last request failed, for operators.
    pub fn last_failure(&self) -> Cause {
        self.record.last_failure()
    }

    /// Returns the requests that changed something, or may have.
    pub fn changes(&self) -> Vec<String> {
        self.record.changes()
    }

    /// Returns the error responses of servers that the guest did not see, for operators.
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

    /// Checks and sends a request, and returns the response as the guest may see it. Each fact is in the event as soon
    /// as it is known, because the call may end while this waits.
    async fn process(
        &self,
        request: GuestRequest,
        deadline: Instant,
        sent: &AtomicBool,
        event: &mut HttpEvent,
    ) -> Result<GuestResponse, HttpError> {
        let checked = self.check(request, deadline, event)?;
        let received = self.send_and_record(&checked, sent, event).await?;
        self.complete_response(&checked, received, event)
    }

    /// Sends a request, and records whether it may have changed something and which secrets it delivered.
    async fn send_and_record(
        &self,
        checked: &CheckedRequest,
        sent: &AtomicBool,
        event: &mut HttpEvent,
    ) -> Result<Received, HttpError> {
        // Recorded before it is sent, because the call may end before the response.
        let change = (!checked.is_read()).then(|| self.record.record_change(checked.granted().text()));
        let received = self.send_with_token(checked, sent, event).await;
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
