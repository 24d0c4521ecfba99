//! Sends a request that passed the checks: finds the addresses, logs in, and tries again with a new token.

use super::auth::{AuthHeader, identity};
use super::bodies::NO_IMAGE;
use super::{Gate, GrantedRequest, HttpEvent, trace};
use crate::image::{ImageError, ImagePart};
use crate::net::error::HttpError;
use crate::net::exchange::{Received, SendBody};
use crate::net::headers;
use crate::net::transport::{Route, WireRequest};
use bytes::Bytes;
use futures_util::StreamExt;
use std::time::Instant;
use wasm_cpi_checks::Check;

/// A request that passed every check except the one on addresses.
pub(super) struct CheckedRequest<'a> {
    pub(super) request: GrantedRequest<'a>,
    pub(super) headers: &'a [(String, String)],
    pub(super) body: Bytes,
    /// The bytes that count against `http_total_mib`, and that logs show: the body as the guest
    /// wrote it. A secret in a slot is not counted, because the limit or the log would measure it.
    pub(super) counted: u64,
    /// The part of the image that is sent instead of the body.
    pub(super) part: Option<ImagePart>,
    /// The request as the trace shows it; `None` if requests are not traced.
    pub(super) shown: Option<trace::AsSent>,
}

impl Gate {
    /// Sends the request, and sends it again with a new token if the server rejects the old one.
    pub(super) async fn exchange(
        &self,
        checked: &CheckedRequest<'_>,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<Received, HttpError> {
        let GrantedRequest { grant, method, destination } = checked.request;
        let route = Route { name: format!("grant `{}`", grant.id), addresses: &grant.addresses, tls: &grant.tls };
        let addresses = self.transport.allowed_addresses(&route, destination, event, deadline).await?;
        let mut refused = None;
        loop {
            let auth_header = self.auth_header(grant, refused.as_ref(), deadline).await;
            // The first attempt was sent, even if the second one is not.
            let later = |error: HttpError| HttpError { sent: error.sent || refused.is_some(), ..error };
            let AuthHeader { header, token } = auth_header.map_err(later)?;
            let mut head = headers::to_map(checked.headers)?;
            let auth = header.as_ref().map(|(name, _)| name.clone());
            head.extend(header);
            let (body, length) = self.body_to_send(checked).await.map_err(later)?;
            let wire_request = WireRequest {
                method: method.clone(),
                destination: destination.clone(),
                headers: head,
                body,
                identity: identity(grant),
            };
            self.trace_sending(checked, auth.as_ref(), length);
            event.sent = true;
            let result = self
                .transport
                .send(&route, addresses.clone(), wire_request, self.transport.caps().with_room(&self.limits), deadline)
                .await
                .map_err(later);
            if result.as_ref().err().is_none_or(|error| error.sent) {
                let reported = if checked.part.is_some() { length } else { checked.counted };
                self.usage.record_sent(reported, Check::CountedBytes.choose(checked.counted, length));
                event.bytes_sent += reported;
            }
            let received = result.inspect_err(|error| self.trace_failure(grant, error))?;
            event.address = received.peer.or(event.address);
            self.usage.record_received(received.body.len() as u64);
            event.bytes_received += received.body.len() as u64;
            match token {
                Some(token) if received.status == 401 && refused.is_none() && checked.part.is_none() => {
                    self.trace_second_try(grant);
                    refused = Some(token)
                }
                Some(_) if received.status == 401 => {
                    self.drop_token(grant).await;
                    return Ok(received);
                }
                _ => return Ok(received),
            }
        }
    }

    async fn body_to_send(&self, checked: &CheckedRequest<'_>) -> Result<(SendBody, u64), HttpError> {
        let Some(part) = &checked.part else {
            let body = if checked.body.is_empty() { SendBody::None } else { SendBody::Bytes(checked.body.clone()) };
            return Ok((body, checked.body.len() as u64));
        };
        let image = self.image.as_ref().ok_or_else(|| HttpError::invalid(NO_IMAGE))?;
        let refused = |error: ImageError| HttpError { check: error.check(), ..HttpError::invalid(&error) };
        let (length, pieces) = image.body(part).await.map_err(refused)?;
        Ok((SendBody::Stream { length, pieces: pieces.boxed() }, length))
    }
}
