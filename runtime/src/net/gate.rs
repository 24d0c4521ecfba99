//! The gate: a guest's only way to the network.
//!
//! One request, one response, in one fixed order (see `net`): nothing is sent
//! before every check that comes before sending has passed, and nothing comes
//! back that `captures` did not look through. What leaves here, errors and
//! events included, is redacted.

mod auth;
mod message;
mod screened;
mod traced;

pub use crate::net::event::HttpEvent;
pub use crate::net::http_usage::NetUsage;
pub use message::{InboundResponse, OutboundBody, OutboundRequest};

use crate::failure::Failure;
use crate::image::{Image, ImagePart};
use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind, quoted};
use crate::net::event::Underway;
use crate::net::exchange::{Caps, Received, SendBody};
use crate::net::headers;
use crate::net::http_trace::Tracer;
use crate::net::http_usage::{HttpUsage, Outcome};
use crate::net::login::Sessions;
use crate::net::proxy::ProxyConfig;
use crate::net::reach::{Parcel, Reach, Way};
use crate::net::slots::{self, Outgoing};
use crate::vault::Vault;
use auth::Authorized;
use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::Method;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasm_cpi_policy::destination::{Destination, Invalid};
use wasm_cpi_policy::place::Message;
use wasm_cpi_policy::{DenialReason, Grant, Policy, Verdict};

/// Sees every request, whatever became of it.
pub type HttpObserver = Box<dyn Fn(&HttpEvent) + Send + Sync>;

pub struct Gate {
    policy: Arc<Policy>,
    vault: Arc<Vault>,
    limits: Limits,
    image: Option<Arc<Image>>,
    reach: Reach,
    sessions: Sessions,
    usage: HttpUsage,
    observer: Option<HttpObserver>,
}

impl Gate {
    /// Opens nothing: sockets, certificates and name servers wait for the first
    /// request. `observer` sees every request when it has ended.
    pub fn new(
        policy: Arc<Policy>,
        vault: Arc<Vault>,
        limits: &Limits,
        allow_local: bool,
        image: Option<Arc<Image>>,
        observer: Option<HttpObserver>,
    ) -> Self {
        let reach = Reach::new(Arc::clone(&policy), limits, allow_local);
        let (sessions, usage) = (Sessions::default(), HttpUsage::default());
        Gate { policy, vault, limits: limits.clone(), image, reach, sessions, usage, observer }
    }

    /// Where the files lie that the policy names: beside the policy.
    #[must_use]
    pub fn with_files_in(mut self, directory: &Path) -> Self {
        self.reach.files = directory.to_owned();
        self
    }

    /// Asks these proxies to connect to what is not reached directly.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Option<ProxyConfig>) -> Self {
        self.reach.proxy = proxy;
        self
    }

    /// Shows every request that is sent, and its response.
    #[must_use]
    pub fn with_trace(mut self, trace: Option<Tracer>) -> Self {
        self.reach.trace = trace;
        self
    }

    /// Opens what requests may have to read, before nothing can be opened any
    /// more. Answers how many files there are.
    pub fn hold_files(&self) -> usize {
        self.reach.hold_files()
    }

    #[cfg(test)]
    pub(super) fn with_resolver(mut self, resolver: crate::net::resolve::Resolver) -> Self {
        self.reach.resolver = resolver;
        self
    }

    pub async fn send(&self, request: OutboundRequest, deadline: Instant) -> Result<InboundResponse, HttpError> {
        let tell = |event: &HttpEvent| self.tell(event);
        let mut underway = Underway::new(&tell);
        let event = &mut underway.event;
        let result = self.pass(request, deadline, event).await.map_err(|error| self.redacted(error));
        event.outcome = result.as_ref().map(|response| response.status).map_err(|error| error.kind);
        event.sent = result.as_ref().err().is_none_or(|error| error.sent);
        result
    }

    /// What the operator lets the guest see of a login's answer, a JSON object.
    pub async fn session(&self, name: &str, deadline: Instant) -> Result<String, HttpError> {
        self.session_of(name, deadline).await.map_err(|error| self.redacted(error))
    }

    /// Why the call must end, if the guest's requests are the reason.
    pub fn ended(&self) -> Option<Failure> {
        self.usage.ended()
    }

    /// Requests that changed something, or may have.
    pub fn changes(&self) -> Vec<String> {
        self.usage.changes()
    }

    /// Names of the sealed values that a server took in a slot, or may have: an answer can get lost.
    pub fn sent(&self) -> Vec<String> {
        self.usage.filled()
    }

    pub fn usage(&self) -> NetUsage {
        self.usage.usage()
    }

    async fn pass(
        &self,
        request: OutboundRequest,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<InboundResponse, HttpError> {
        self.begin()?;
        let method = headers::method(&request.method)?;
        method.as_str().clone_into(&mut event.method);
        headers::check(&request.headers, &self.limits)?;
        let destination = destination(&request.url, &self.limits)?;
        event.target = self.vault.redact(&destination.to_string());
        let own = request.timeout_ms.map(|ms| Instant::now() + Duration::from_millis(u64::from(ms.max(1))));
        let deadline = own.map_or(deadline, |own| own.min(deadline));
        if deadline <= Instant::now() {
            return Err(HttpError::new(HttpErrorKind::Cancelled, "runtime: the call has no time left for requests"));
        }

        let mut headers = request.headers;
        let (mut body, part) = self.body(request.body)?;
        let message = Message { headers: &headers, body: &body };
        let granted = match self.policy.judge(&destination, method.as_str(), &message) {
            Verdict::Allowed(granted) => granted,
            Verdict::Denied(denial) => {
                return Err(HttpError::denied(denial.reason, format!("policy: {}", denial.message)));
            }
        };
        let grant = granted.as_ref();
        event.grant = Some(grant.id.clone());
        headers::check_credentials(
            &headers,
            destination.query(),
            headers::form(&headers, &body),
            &self.rules(grant, &method, &destination),
            &self.vault,
        )?;
        let shown = self.shown(grant, &method, &destination, &headers, &body);
        let url = destination.to_url();
        let (text, path) = (method.as_str(), destination.path());
        let outgoing = Outgoing { method: text, path, url: url.as_str(), headers: &mut headers, body: &mut body };
        let filled = slots::fill(&self.vault, &grant.slots, grant.layer, outgoing)
            .map_err(|error| HttpError::denied(DenialReason::Slot, error.message))?;

        event.seals.clone_from(&filled.names);

        let (method, destination) = (&method, &destination);
        let ready = Ready { grant, method, destination, headers: &headers, body: body.into(), part, shown };
        let safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
        // Noted before it is sent: the call may end while it is on its way.
        let change = (!safe).then(|| self.usage.changing(format!("{method} {}", event.target)));
        let received = self.exchange(&ready, deadline, event).await;
        if let Some(number) = change {
            let outcome = match &received {
                Ok(received) => Outcome::Answered(received.status),
                Err(error) if error.sent => Outcome::Unanswered,
                Err(_) => Outcome::NotSent,
            };
            self.usage.changed(number, outcome);
        }
        let arrived = match &received {
            Ok(received) => matches!(received.status, 200..=299 | 500..=599),
            Err(error) => error.sent,
        };
        if arrived {
            self.usage.arrived(filled.names);
        }
        let received = received?;
        let layer = self.layer_of_answer(grant, &filled.layers);
        let screened =
            self.screen(grant, layer, method, destination, received, event).map_err(HttpError::after_sending);
        self.trace_answer(grant, &screened);
        screened
    }

    fn tell(&self, event: &HttpEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    fn begin(&self) -> Result<(), HttpError> {
        match self.ended() {
            Some(failure) => Err(HttpError::new(HttpErrorKind::Cancelled, failure.to_string())),
            None => self.usage.begin(&self.limits),
        }
    }

    /// The body as bytes, or the image's part in its place.
    fn body(&self, body: OutboundBody) -> Result<(Vec<u8>, Option<ImagePart>), HttpError> {
        let bytes = match body {
            OutboundBody::None => return Ok((Vec::new(), None)),
            // Said now: nobody is looked up or logged in to for nothing.
            OutboundBody::Image(_) if self.image.is_none() => return Err(HttpError::invalid(NO_IMAGE)),
            OutboundBody::Image(part) => return Ok((Vec::new(), Some(part))),
            OutboundBody::Bytes(bytes) => bytes,
        };
        let length = bytes.len() as u64;
        if length > self.limits.http_request_mib.saturating_mul(1024 * 1024) {
            return Err(HttpError::limit("http_request_mib", self.limits.http_request_mib, "the body of a request"));
        }
        if length > self.usage.left(&self.limits) {
            return Err(HttpError::limit("http_total_mib", self.limits.http_total_mib, TOTAL));
        }
        Ok((bytes, None))
    }

    /// Sends, and once more with a new token if the old one was not taken.
    async fn exchange(
        &self,
        ready: &Ready<'_>,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<Received, HttpError> {
        let grant = ready.grant;
        let way = Way { name: format!("grant `{}`", grant.id), addresses: &grant.addresses, tls: &grant.tls };
        let addresses = self.reach.find(&way, ready.destination, &mut event.address, deadline).await?;
        let mut refused = None;
        loop {
            let authorized = self.authorize(grant, refused.as_ref(), deadline).await;
            // The first attempt was sent, whatever becomes of the second.
            let later = |error: HttpError| HttpError { sent: error.sent || refused.is_some(), ..error };
            let Authorized { header, token } = authorized.map_err(later)?;
            let mut head = headers::to_map(ready.headers)?;
            let auth = header.as_ref().map(|(name, _)| name.clone());
            head.extend(header);
            let (body, length) = self.outgoing(ready).await.map_err(later)?;
            let parcel =
                Parcel { method: ready.method.clone(), destination: ready.destination.clone(), headers: head, body };
            self.trace_sending(ready, auth.as_ref(), length);
            event.sent = true;
            let result = self.reach.send(&way, addresses.clone(), parcel, self.caps(), deadline).await.map_err(later);
            if result.as_ref().err().is_none_or(|error| error.sent) {
                self.usage.sent(length, ready.part.is_none());
                event.bytes_sent += length;
            }
            let received = result.inspect_err(|error| self.trace_failure(grant, error))?;
            event.address = received.peer.or(event.address);
            self.usage.received(received.body.len() as u64);
            event.bytes_received += received.body.len() as u64;
            match token {
                Some(token) if received.status == 401 && refused.is_none() && ready.part.is_none() => {
                    self.trace_second_try(grant);
                    refused = Some(token)
                }
                Some(_) if received.status == 401 => {
                    self.forget(grant).await;
                    return Ok(received);
                }
                _ => return Ok(received),
            }
        }
    }

    async fn outgoing(&self, ready: &Ready<'_>) -> Result<(SendBody, u64), HttpError> {
        let Some(part) = &ready.part else {
            let body = if ready.body.is_empty() { SendBody::None } else { SendBody::Bytes(ready.body.clone()) };
            return Ok((body, ready.body.len() as u64));
        };
        let image = self.image.as_ref().ok_or_else(|| HttpError::invalid(NO_IMAGE))?;
        let (length, pieces) = image.body(part).await.map_err(HttpError::invalid)?;
        Ok((SendBody::Stream { length, pieces: pieces.boxed() }, length))
    }

    fn caps(&self) -> Caps {
        let (caps, left) = (self.reach.caps(), self.usage.left(&self.limits));
        if left < caps.body {
            Caps { body: left, body_limit: ("http_total_mib", self.limits.http_total_mib), ..caps }
        } else {
            caps
        }
    }
}

const NO_IMAGE: &str =
    "there is no image in this call; only `create_stemcell` has one, for modules whose needs declare `image`";

const TOTAL: &str = "the sum of all bodies of the call";

/// A request that passed every check but the one on addresses.
struct Ready<'a> {
    grant: &'a Grant,
    method: &'a Method,
    destination: &'a Destination,
    headers: &'a [(String, String)],
    body: Bytes,
    /// Instead of the body.
    part: Option<ImagePart>,
    /// Where requests are traced.
    shown: Option<traced::AsSent>,
}

fn destination(url: &str, limits: &Limits) -> Result<Destination, HttpError> {
    Destination::parse(url, limits.url_bytes).map_err(|invalid| match invalid {
        Invalid::TooLong { .. } => HttpError::limit("url_bytes", limits.url_bytes, "the URL of a request"),
        Invalid::Scheme(_) => HttpError::denied(DenialReason::Scheme, format!("policy: {invalid}")),
        Invalid::Form(_) => HttpError::invalid(quoted(&invalid.to_string())),
    })
}
