//! Sends a request that passed the checks: finds the addresses, logs in, and tries again with a new token.

use super::auth::{AuthHeader, credential_owner};
use super::blocks::MAX_AT_ONCE;
use super::bodies::NO_IMAGE;
use super::message::{GuestBodyPart, ImageContent};
use super::trace::TracedRequest;
use super::{Gate, GrantedRequest, HttpEvent};
use crate::failure::Who;
use crate::image::{ImageBody, ImageError, ImagePart};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Received, SendBody, WireRequest};
use crate::net::headers;
use crate::net::http_record::Reservation;
use crate::net::slots::FilledSecrets;
use crate::net::transport::Route;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use reqwest::Method;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Grant;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::secret::Secret;

/// A request that passed every check except the one on addresses. Secrets fill its slots.
pub(super) struct CheckedRequest {
    pub(super) grant: Arc<Grant>,
    pub(super) method: Method,
    pub(super) destination: Destination,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
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

/// The body of a request that is ready to be sent.
struct BodyToSend {
    body: SendBody,
    length: u64,
    /// The beginning of the image, if one streams from the disk.
    image_start: Bytes,
}

/// What the attempts to send a request have in common.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    checked: &'a CheckedRequest,
    route: &'a Route<'a>,
    /// The addresses that may be connected to.
    addresses: &'a [IpAddr],
    /// Set once any byte may have been sent.
    sent: &'a AtomicBool,
}

impl CheckedRequest {
    /// Returns method and destination, and the grant that allows the request.
    pub(super) fn granted(&self) -> GrantedRequest<'_> {
        GrantedRequest { grant: &self.grant, method: &self.method, destination: &self.destination }
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
    /// Finds the addresses and sends the request. Sends it again with a new token if the server rejects
    /// the old one. Sets `sent` once any byte may have been sent.
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
        let attempt = Attempt { checked, route: &route, addresses: &addresses, sent };
        let mut rejected_token = None;
        loop {
            let (received, token) = self.send_once(attempt, rejected_token.as_ref(), event).await?;
            match token {
                Some(token) if received.status == 401 && rejected_token.is_none() && checked.can_be_sent_again() => {
                    self.trace_second_try(grant);
                    rejected_token = Some(token)
                }
                Some(token) if received.status == 401 => {
                    self.drop_token(grant, &token);
                    return Ok(received);
                }
                _ => return Ok(received),
            }
        }
    }

    /// Sends the request once. Returns the response, and the token that was sent. `rejected_token` is the token of the
    /// first attempt, if this is the second one.
    async fn send_once(
        &self,
        attempt: Attempt<'_>,
        rejected_token: Option<&Secret>,
        event: &mut HttpEvent,
    ) -> Result<(Received, Option<Secret>), HttpError> {
        let Attempt { checked, route, addresses, sent } = attempt;
        let (grant, deadline) = (&checked.grant, checked.deadline);
        // The first attempt was sent, even if the second one is not.
        let with_first_attempt = |error: HttpError| HttpError { sent: error.sent || rejected_token.is_some(), ..error };
        let auth_header = self.auth_header(grant, rejected_token, deadline).await;
        let AuthHeader { header, token } = auth_header.map_err(with_first_attempt)?;
        let mut headers = headers::to_map(&checked.headers)?;
        let auth_name = header.as_ref().map(|(name, _)| name.clone());
        headers.extend(header);
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
        self.trace_sending(checked, auth_name.as_ref(), length);
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
        Ok((received, token))
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

    /// Returns the body.
    async fn body_to_send(&self, checked: &CheckedRequest) -> Result<BodyToSend, HttpError> {
        let of_bytes = |bytes: &Bytes| {
            let body = if bytes.is_empty() { SendBody::None } else { SendBody::Bytes(bytes.clone()) };
            BodyToSend { body, length: bytes.len() as u64, image_start: Bytes::new() }
        };
        match &checked.image {
            None => Ok(of_bytes(&checked.body)),
            Some(ImageContent::Block(block)) => Ok(of_bytes(&block.content.bytes)),
            Some(ImageContent::Part(part)) => {
                let (length, image_start, pieces) = self.stream_image(part).await?;
                Ok(BodyToSend { body: SendBody::Stream { length, pieces: pieces.boxed() }, length, image_start })
            }
            Some(ImageContent::Parts(parts)) => self.stream_parts(parts).await,
        }
    }

    async fn stream_parts(&self, parts: &[GuestBodyPart]) -> Result<BodyToSend, HttpError> {
        let (mut length, mut image_start, mut streams) = (0, Bytes::new(), Vec::new());
        for part in parts {
            match part {
                GuestBodyPart::Bytes(bytes) if bytes.is_empty() => {}
                GuestBodyPart::Bytes(bytes) => {
                    length += bytes.len() as u64;
                    streams.push(stream::iter([Ok(Bytes::from(bytes.clone()))]).boxed());
                }
                GuestBodyPart::Image(part) => {
                    let (image_length, start, pieces) = self.stream_image(part).await?;
                    (length, image_start) = (length + image_length, start);
                    streams.push(pieces.boxed());
                }
            }
        }
        let pieces = stream::iter(streams).flatten().boxed();
        Ok(BodyToSend { body: SendBody::Stream { length, pieces }, length, image_start })
    }

    /// Returns the length, the beginning and the stream of a part of the image.
    async fn stream_image(&self, part: &ImagePart) -> Result<(u64, Bytes, ImageBody), HttpError> {
        let image = self.image.as_ref().ok_or_else(|| HttpError::invalid(NO_IMAGE))?;
        let (length, mut pieces) = image.body(part).await.map_err(|error| invalid_image(&error))?;
        Ok((length, pieces.beginning().await, pieces))
    }
}

/// Returns the error of a request whose image cannot be sent. A guest cannot help it if the file changes or
/// cannot be read.
pub(super) fn invalid_image(error: &ImageError) -> HttpError {
    let check = error.check();
    let who = match (error, check) {
        (ImageError::Io(_), _) | (_, Some(Check::ImageUnchanged)) => Who::Runtime,
        _ => Who::Guest,
    };
    HttpError { check, ..HttpError::failed(who, HttpErrorKind::InvalidRequest, error) }
}
