//! Sends a request that passed the checks: finds the addresses, logs in, and tries again with a new token.

use super::auth::{AuthHeaders, credential_owner};
use super::blocks::MAX_AT_ONCE;
use super::checking::is_safe_method;
use super::message::ImageContent;
use super::outgoing_body::BodyToSend;
use super::trace::TracedRequest;
use super::{Gate, GrantedRequest, HttpEvent};
use crate::net::creations::{Evidence, Words};
use crate::net::error::HttpError;
use crate::net::exchange::{Received, WireRequest};
use crate::net::headers;
use crate::net::http_record::Reservation;
use crate::net::signing::{ClockOffset, is_expired};
use crate::net::slots::FilledSecrets;
use crate::net::transport::Route;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderName;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{Auth, Grant, Operation, Operations};

/// A request that passed every check except the one on addresses. Secrets fill its slots.
pub(super) struct CheckedRequest {
    pub(super) grant: Arc<Grant>,
    pub(super) method: Method,
    pub(super) destination: Destination,
    /// The operation of the request, if the grant lists operations.
    pub(super) operation: Option<Operation>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    /// The words of the query, the headers and the body as the guest wrote them.
    pub(super) named: Words,
    /// What is sent of the image, in place of the body.
    pub(super) image: Option<ImageContent>,
    /// The bytes that count against `http_total_mib`, and that logs show: the body as the guest
    /// wrote it. A secret in a slot is not counted, because the limit or the log would measure it.
    pub(super) reserved: Reservation,
    /// The secrets in its slots.
    pub(super) secrets: FilledSecrets,
    /// The request as the trace shows it; `None` if requests are not traced.
    pub(super) traced: Option<TracedRequest>,
    /// The end of the request's time.
    pub(super) deadline: Instant,
}

/// What the attempts to send a request have in common.
#[derive(Clone, Copy)]
struct Sending<'a> {
    checked: &'a CheckedRequest,
    route: &'a Route<'a>,
    /// The addresses that may be connected to.
    addresses: &'a [IpAddr],
    /// Set once any byte may have been sent.
    sent: &'a AtomicBool,
}

/// One attempt to send a request.
struct Attempt {
    received: Received,
    /// The token that was sent, or the temporary keys that signed the request.
    token: Option<Secret>,
    /// The clock that the request was signed by.
    clock: Option<ClockOffset>,
}

/// Why a server refused earlier attempts.
#[derive(Default)]
struct Refusals {
    /// The token or the keys that it rejected.
    token: Option<Secret>,
    /// True if it refused the time of the signature.
    for_time: bool,
}

impl Refusals {
    fn is_any(&self) -> bool {
        self.token.is_some() || self.for_time
    }
}

impl CheckedRequest {
    /// Returns method and destination, and the grant that allows the request.
    pub(super) fn granted(&self) -> GrantedRequest<'_> {
        let operation = self.operation.as_ref();
        GrantedRequest { grant: &self.grant, method: &self.method, destination: &self.destination, operation }
    }

    /// Returns true if the request changes nothing: by its method, or because the policy says so of its operation.
    /// Other methods than POST say themselves that they change something.
    pub(super) fn is_read(&self) -> bool {
        let by_operation = self.operation.as_ref().is_some_and(|operation| operation.is_read_only);
        is_safe_method(&self.method) || (self.method == Method::POST && by_operation)
    }

    /// Returns what the request says about the resources that its response names.
    pub(super) fn evidence(&self) -> Evidence<'_> {
        // An operation that reads names what exists. Where the policy does not tell reads and changes apart, no
        // response proves anything.
        let tells = |operations: &Operations| !operations.read_only.is_empty();
        let is_told = self.operation.is_none() || self.grant.operations.as_ref().is_some_and(tells);
        let may_create = is_told && !self.is_read();
        Evidence { method: &self.method, path: self.destination.path(), named: &self.named, may_create }
    }

    /// Returns true if it is one of the blocks of an upload, several of which are sent at once.
    fn is_block(&self) -> bool {
        matches!(self.image, Some(ImageContent::Block(_)))
    }

    /// Returns true if the body can be sent a second time. An image that streams from the disk is read once.
    fn can_be_sent_again(&self) -> bool {
        self.image.is_none() || self.is_block()
    }
}

impl Gate {
    /// Finds the addresses and sends the request. Sends it again with a new token, new keys or the server's time if
    /// the server refuses it for the old ones. Sets `sent` once any byte may have been sent.
    pub(super) async fn send_with_token(
        &self,
        checked: &CheckedRequest,
        sent: &AtomicBool,
        event: &mut HttpEvent,
    ) -> Result<Received, HttpError> {
        let grant = &checked.grant;
        let route = Route { name: format!("grant `{}`", grant.id), addresses: &grant.addresses, tls: &grant.tls };
        let judged = self.transport.addresses.resolve(&route, &checked.destination, checked.deadline).await;
        let addresses = event.record_addresses(judged)?;
        let sending = Sending { checked, route: &route, addresses: &addresses, sent };
        let mut refusals = Refusals::default();
        loop {
            let attempt = self.send_once(sending, &refusals, event).await?;
            let Some(how) = self.next_attempt(checked, &attempt, &mut refusals).await else {
                return Ok(attempt.received);
            };
            self.trace_second_try(grant, attempt.received.status, how);
        }
    }

    /// Returns how the request is sent again, or `None` if the response is the last one. Each reason counts once.
    async fn next_attempt(
        &self,
        checked: &CheckedRequest,
        attempt: &Attempt,
        refusals: &mut Refusals,
    ) -> Option<&'static str> {
        let Attempt { received, token, clock } = attempt;
        let repeatable = checked.can_be_sent_again();
        if let Some(Auth::SigV4(sigv4)) = &checked.grant.auth {
            let scheme = checked.destination.scheme();
            // Later requests use the new time, even if this one cannot be sent again.
            let has_new_time = clock.is_some_and(|used| self.clock.corrects(received, scheme, used));
            if has_new_time && repeatable && !refusals.for_time {
                refusals.for_time = true;
                return Some("signed again with the server's time");
            }
            let token = token.as_ref().filter(|_| repeatable && refusals.token.is_none() && is_expired(received))?;
            let renewed = self.has_other_keys(sigv4, token, checked.deadline).await;
            refusals.token = Some(token.clone());
            return renewed.then_some("signed again with new keys");
        }
        let token = token.as_ref().filter(|_| received.status == 401)?;
        if repeatable && refusals.token.is_none() {
            refusals.token = Some(token.clone());
            return Some("tried again with a new token");
        }
        self.drop_token(&checked.grant, token);
        None
    }

    /// Sends the request once. `refusals` are the reasons of the attempts before.
    async fn send_once(
        &self,
        sending: Sending<'_>,
        refusals: &Refusals,
        event: &mut HttpEvent,
    ) -> Result<Attempt, HttpError> {
        let Sending { checked, route, addresses, sent } = sending;
        let (grant, deadline) = (&checked.grant, checked.deadline);
        // The first attempt was sent, even if the second one is not.
        let with_first_attempt = |error: HttpError| HttpError { sent: error.sent || refusals.is_any(), ..error };
        let mut headers = headers::to_map(&checked.headers)?;
        let auth = self.auth_headers(checked, &headers, refusals.token.as_ref()).await;
        let AuthHeaders { headers: auth_headers, token, clock } = auth.map_err(with_first_attempt)?;
        let auth_names: Vec<HeaderName> = auth_headers.iter().map(|(name, _)| name.clone()).collect();
        headers.extend(auth_headers);
        let ready = self.body_to_send(checked).await.map_err(with_first_attempt)?;
        let BodyToSend { body, length, image_start } = ready;
        let request = WireRequest {
            method: checked.method.clone(),
            destination: checked.destination.clone(),
            headers,
            credential_owner: credential_owner(grant, &checked.secrets),
            allows_reuse: checked.allows_reuse(&image_start, length),
            holds_image: checked.image.is_some(),
        };
        self.trace_sending(checked, &auth_names, length);
        event.sent = true;
        sent.store(true, Ordering::Relaxed);
        let caps = self.transport.caps().with_echo_allowance(&self.limits);
        let caps = if checked.is_block() { caps.shared_by(MAX_AT_ONCE) } else { caps };
        let result = self.transport.send(route, addresses.to_vec(), request, body, caps, deadline).await;
        let result = result.map_err(with_first_attempt);
        match &result {
            // A server may answer before it has received all of an image.
            Ok(received) => event.bytes_sent += self.record_sent(checked, length.min(received.body_written)),
            Err(error) if error.sent => event.bytes_sent += self.record_sent(checked, length),
            Err(_) => {}
        }
        let received = result.inspect_err(|error| self.trace_failure(grant, error))?;
        event.address = Some(received.peer);
        self.record.record_received(received.body.len() as u64);
        event.bytes_received += received.body.len() as u64;
        Ok(Attempt { received, token, clock })
    }

    /// Counts the body of a request that was sent, and returns the number of bytes that logs show. `length` includes
    /// secrets; logs and limits use the guest's own bytes.
    fn record_sent(&self, checked: &CheckedRequest, length: u64) -> u64 {
        let guest_bytes = checked.reserved.bytes();
        let shown_in_log = if checked.image.is_some() { length } else { guest_bytes };
        // The first attempt was counted when its bytes were reserved.
        let still_to_count = if checked.reserved.use_up() { 0 } else { guest_bytes };
        #[cfg(feature = "mutation-testing")]
        let still_to_count = crate::net::mutants::with_secrets(still_to_count, guest_bytes, length);
        self.record.record_sent(shown_in_log, still_to_count);
        shown_in_log
    }
}
