//! The request of a login: builds it from the policy, and sends it.

use super::LoginContext;
use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Received, SendBody, WireRequest};
use crate::net::gate::auth::credential_owner_of_login;
use crate::net::headers;
use crate::net::http_event::HttpEvent;
use crate::net::http_trace::{Shown, Tracer};
use crate::net::transport::Route;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::time::Instant;
use wasm_cpi_policy::place::write_form;
use wasm_cpi_policy::{Login, LoginBody};

/// Sends the request of a login. Records in the event what happens as soon as it is known, because the call may end
/// while it waits.
pub(super) async fn send(
    login: &Login,
    context: &LoginContext<'_>,
    event: &mut HttpEvent,
    deadline: Instant,
) -> Result<Received, HttpError> {
    let transport = context.transport;
    let route = Route { name: format!("login `{}`", login.name), addresses: &login.addresses, tls: &login.tls };
    let judged = transport.addresses.resolve(&route, &login.destination, deadline).await;
    let addresses = event.record_addresses(judged)?;
    let (body, content_type) = login_body(&login.body);
    let headers = login_headers(login, content_type)?;
    let method = headers::method(&login.method)?;
    let length = body.announced(&method).unwrap_or(0);
    if let Some(trace) = context.trace {
        trace_request(trace, &route.name, login, &method, &headers, length);
    }
    let wire_request = WireRequest {
        method,
        destination: login.destination.clone(),
        headers,
        credential_owner: credential_owner_of_login(&login.name),
        // No other requests than those of the login use its connection.
        allows_reuse: true,
        holds_image: false,
    };
    event.sent = true;
    let result = transport.send(&route, addresses, wire_request, body, transport.caps(), deadline).await;
    if result.as_ref().err().is_none_or(|error| error.sent) {
        event.bytes_sent = rounded(length);
    }
    if let Ok(received) = &result {
        (event.address, event.bytes_received) = (Some(received.peer), rounded(received.body.len() as u64));
    }
    if let Some(trace) = context.trace {
        trace_response(trace, &route.name, &result);
    }
    result
}

/// Returns the body of a login, and its type.
fn login_body(body: &LoginBody) -> (SendBody, Option<&'static str>) {
    match body {
        LoginBody::None => (SendBody::None, None),
        LoginBody::Json(text) => (bytes(text.reveal()), Some("application/json")),
        LoginBody::Form(fields) => {
            let form = write_form(fields.iter().map(|(name, value)| (name.as_str(), value.secret.reveal())));
            (bytes(&form), Some("application/x-www-form-urlencoded"))
        }
    }
}

fn login_headers(login: &Login, content_type: Option<&'static str>) -> Result<HeaderMap, HttpError> {
    let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    headers.extend(content_type.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
    for (name, value) in &login.headers {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            let what = "has a header whose name is invalid; use letters, digits and `-`";
            let what = format!("the login `{}` {what}", login.name);
            HttpError::failed(Who::Config, HttpErrorKind::InvalidRequest, what)
        })?;
        headers.insert(known, headers::secret_value(value.secret.reveal(), name)?);
    }
    Ok(headers)
}

/// Traces the request without any value: each may be a credential.
fn trace_request(trace: &Tracer, whose: &str, login: &Login, method: &Method, headers: &HeaderMap, length: u64) {
    let names = headers.keys().map(|name| (name.as_str(), "<redacted>")).collect();
    let body = if length > 0 { Shown::Hidden } else { Shown::Bytes(&[]) };
    trace.request(whose, method.as_str(), &login.destination.to_url(), &names, &body);
}

fn trace_response(trace: &Tracer, whose: &str, result: &Result<Received, HttpError>) {
    match result {
        Ok(received) => {
            let names = received.headers.iter().map(|(name, _)| (name.as_str(), "<redacted>")).collect();
            trace.response(whose, received.status, &names, &Shown::Hidden);
        }
        Err(error) => trace.no_response(whose, &error.kind.to_string()),
    }
}

/// Returns the length of a login's body as logs show it: an exact one would measure its secrets.
fn rounded(length: u64) -> u64 {
    length.next_multiple_of(1024)
}

fn bytes(text: &str) -> SendBody {
    SendBody::Bytes(text.as_bytes().to_vec().into())
}
