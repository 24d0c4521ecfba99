//! Waits for a response and reads it, within the limits for time and size.

use super::Caps;
use super::error_context::ErrorContext;
use super::request_body::Progress;
use crate::net::error::HttpError;
use reqwest::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::{Method, Response, StatusCode, Version};
use std::time::{Duration, Instant};
use tokio::time::timeout_at;
use wasm_cpi_checks::Check;

/// If connecting takes until the deadline, the timeout of the connection must come first,
/// because its error says that nothing was sent.
const DEADLINE_GRACE: Duration = Duration::from_millis(50);

/// The interval at which the progress of sending is checked.
const PROGRESS_CHECK: Duration = Duration::from_millis(500);

/// The error of the library that sent the request: reqwest for the host's own requests, hyper for those of guests.
pub(in crate::net) enum SendFailure {
    Client(reqwest::Error),
    Wire(hyper::Error),
}

/// What the head of a response says about further requests on the same connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persistence {
    /// True if the server keeps the connection open, and the end of the response does not close it.
    pub keeps: bool,
    pub chunked: bool,
    /// The time after which the server closes an idle connection.
    pub limit: Option<Duration>,
}

impl Persistence {
    pub(super) fn of(response: &Response, method: &Method) -> Persistence {
        const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
        let headers = response.headers();
        let values = |name| headers.get_all(name).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        let says = |name, word: &str| {
            values(name).any(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
        };
        let chunked = says(TRANSFER_ENCODING, "chunked");
        let status = response.status();
        let no_body = method == Method::HEAD || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        let ends = chunked || no_body || headers.contains_key(CONTENT_LENGTH);
        let seconds = |value: &str| {
            let part = value.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
            part.trim().parse().ok().map(Duration::from_secs)
        };
        Persistence {
            keeps: response.version() == Version::HTTP_11 && !says(CONNECTION, "close") && ends,
            chunked: chunked && !no_body,
            limit: values(KEEP_ALIVE).find_map(seconds),
        }
    }
}

/// Sends the request and waits for the head of the response, as long as the server makes progress.
pub(in crate::net) async fn await_head(
    sending: impl Future<Output = Result<Response, SendFailure>>,
    progress: &Progress,
    context: &ErrorContext,
    deadline: Instant,
) -> Result<Response, HttpError> {
    let mut sending = Box::pin(sending);
    loop {
        // Each piece of the body can move `stalls_at` in either direction.
        let until = (Instant::now() + PROGRESS_CHECK).min(progress.stalls_at()).min(deadline + DEADLINE_GRACE);
        match timeout_at(until.into(), &mut sending).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(SendFailure::Client(error))) => return Err(context.client_failed(&error, progress)),
            Ok(Err(SendFailure::Wire(error))) => return Err(context.no_response(&error, progress)),
            Err(_) if Instant::now() >= deadline + DEADLINE_GRACE => {
                return Err(context.deadline_reached().after_sending());
            }
            Err(_) if Instant::now() >= progress.stalls_at() => return Err(context.stalled(progress).after_sending()),
            Err(_) => {}
        }
    }
}

/// A response that was read to its end.
pub(in crate::net) struct CompleteResponse {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Reads the rest of the response.
pub(in crate::net) async fn receive(
    mut response: Response,
    caps: &Caps,
    context: &ErrorContext,
    deadline: Instant,
) -> Result<CompleteResponse, HttpError> {
    Check::SwitchedProtocol.ensure(response.status() != StatusCode::SWITCHING_PROTOCOLS, || {
        context.protocol("the server switched to another protocol, which the request did not ask for")
    })?;
    let has = |name| response.headers().contains_key(name);
    Check::FramingTwice.ensure(!(has(CONTENT_LENGTH) && has(TRANSFER_ENCODING)), || {
        context.protocol("it has both Content-Length and Transfer-Encoding, so its end is ambiguous")
    })?;
    let headers = head(response.headers(), caps, context)?;
    let most = caps.max_body_bytes.saturating_add(caps.echo_allowance.body);
    if response.content_length().is_some_and(|length| length > most) {
        return Err(caps.body_too_long(context));
    }
    let mut body = Vec::new();
    loop {
        let until = deadline.min(Instant::now() + caps.idle);
        let chunk = match timeout_at(until.into(), response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break,
            Ok(Err(error)) => {
                Check::Truncation.refuse(|| context.receive_failed(&error))?;
                break;
            }
            Err(_) if Instant::now() >= deadline => return Err(context.deadline_reached()),
            Err(_) => return Err(context.idle_timed_out(caps.idle)),
        };
        if chunk.len() as u64 > most - body.len() as u64 {
            return Err(caps.body_too_long(context));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(CompleteResponse { status: response.status().as_u16(), headers, body })
}

fn head(headers: &HeaderMap, caps: &Caps, context: &ErrorContext) -> Result<Vec<(String, String)>, HttpError> {
    if headers.len() > caps.max_headers {
        let what = format_args!("the number of headers of the response to {context}");
        return Err(HttpError::limit("http_headers", caps.max_headers, what));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > caps.max_header_bytes.saturating_add(caps.echo_allowance.headers) {
        return Err(caps.headers_too_long(context));
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect())
}
