//! One request and its response, with limits for time and size, over a kept connection or
//! a new one. It connects only to the addresses that it is given.
//!
//! No redirect is followed, and nothing is decompressed or read from the environment. A
//! request is sent again only if no byte of it can have been sent before. The policy was
//! applied before: this module does not know it. Errors name only the origin and path
//! of a URL.

mod caps;
mod error_context;
mod request_body;
mod response;

pub use caps::Caps;
#[cfg(any(test, feature = "fuzzing"))]
pub use caps::EchoAllowance;
pub(in crate::net) use error_context::ErrorContext;
pub(in crate::net) use request_body::Progress;
pub use request_body::SendBody;
pub(in crate::net) use response::{SendFailure, await_head, receive};

use crate::net::connection::{Connection, Endpoint, MAX_INTERIM, WatchedStream};
use crate::net::connection_pool::{ConnectionKey, ConnectionPool};
use crate::net::error::HttpError;
use crate::net::proxy::tunnel::ResolvedProxy;
use hyper::client::conn::http1;
use hyper::header::{self, ACCEPT, HOST};
use hyper_util::rt::TokioIo;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue};
use reqwest::{Body, Method, Response};
use response::{CompleteResponse, Persistence};
use rustls::ClientConfig;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tokio::time::timeout_at;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::Tls;
use wasm_cpi_policy::destination::Destination;

/// The parser accepts so many headers beyond the limit, so that the error can name the
/// limit. More headers than that are a protocol error.
pub(in crate::net) const HEADERS_TO_COUNT: usize = 64;

/// The value of `User-Agent`.
pub(in crate::net) const USER_AGENT: &str = concat!("wasm-cpi/", env!("CARGO_PKG_VERSION"));

/// A request with its credentials, as it is written to the connection, without its body: a body can be read only once.
pub struct WireRequest {
    pub method: Method,
    /// Its host is also the name that the TLS certificate must be valid for.
    pub destination: Destination,
    pub headers: HeaderMap,
    /// Whose credentials the request carries: requests of others use other connections (see `ConnectionKey`).
    pub credential_owner: String,
    /// True if further requests can use the connection once the server has accepted this one.
    pub allows_reuse: bool,
    /// True if the body holds a part of the stemcell image, of which no byte may be missing.
    pub holds_image: bool,
}

/// A request that passed all checks, and where and how to send it.
pub struct Exchange {
    pub request: WireRequest,
    /// The allowed addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// The proxy that connects to these addresses; `None` connects directly.
    pub proxy: Option<ResolvedProxy>,
    /// The TLS settings and the configuration made of them; `None` for http://.
    pub tls: Option<(Tls, Arc<ClientConfig>)>,
    pub caps: Caps,
    pub deadline: Instant,
}

/// A complete response, and what is known of the exchange.
pub struct Received {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The address that responded.
    pub peer: IpAddr,
    /// The bytes of the request's body that were written before the end of the response.
    pub body_written: u64,
}

/// An exchange that has ended, and its connection.
struct Performed {
    result: Result<(CompleteResponse, Persistence), HttpError>,
    stream: WatchedStream,
    /// True if the server sent more than the response.
    has_unread_bytes: bool,
}

impl Exchange {
    /// Sends the request with this body and returns the complete response.
    pub async fn run(self, mut body: SendBody, pool: &ConnectionPool) -> Result<Received, HttpError> {
        let context = ErrorContext::new(&self.request.method, &self.request.destination);
        if self.deadline <= Instant::now() {
            return Err(context.deadline_reached());
        }
        let key = self.connection_key();
        if let Some(idle) = pool.take(&key, &self.addresses).await {
            let again = body.copy();
            let result = self.exchange_over(idle, body, &key, pool, &context).await;
            // The server may have closed the connection just now.
            match (result, again) {
                (Err(error), Some(again)) if !error.sent => body = again,
                (result, _) => return result,
            }
        }
        let connection = self.connect(&key, pool, &context).await?;
        self.exchange_over(connection, body, &key, pool, &context).await
    }

    fn connection_key(&self) -> ConnectionKey {
        ConnectionKey {
            origin: self.request.destination.origin(),
            tls: self.tls.as_ref().map(|(settings, _)| settings.clone()),
            proxy: self.proxy.as_ref().map(|proxy| proxy.proxy.clone()),
            credential_owner: self.request.credential_owner.clone(),
        }
    }

    async fn connect(
        &self,
        key: &ConnectionKey,
        pool: &ConnectionPool,
        context: &ErrorContext,
    ) -> Result<Connection, HttpError> {
        let until = self.deadline.min(Instant::now() + self.caps.connect);
        let (destination, addresses) = (&self.request.destination, self.addresses.as_slice());
        #[cfg(feature = "mutation-testing")]
        let again = crate::net::mutants::resolve_again(destination).await;
        #[cfg(feature = "mutation-testing")]
        let addresses = again.as_deref().unwrap_or(addresses);
        let endpoint = Endpoint { destination, addresses, proxy: self.proxy.as_ref() };
        let tls = |address| self.tls.as_ref().map(|(_, config)| pool.tls_config(key, address, config));
        match timeout_at(until.into(), endpoint.connect(tls, until)).await {
            Ok(connected) => connected.map_err(|error| context.connect_failed(&error)),
            Err(_) => Err(context.connect_timed_out(self.proxy.as_ref().map(|proxy| &proxy.proxy))),
        }
    }

    /// Makes the exchange over this connection, and keeps the connection if further requests can use it.
    async fn exchange_over(
        &self,
        connection: Connection,
        body: SendBody,
        key: &ConnectionKey,
        pool: &ConnectionPool,
        context: &ErrorContext,
    ) -> Result<Received, HttpError> {
        let Connection { mut stream, address } = connection;
        let announced = body.announced(&self.request.method);
        let length = announced.unwrap_or(0);
        let progress = Progress::new(&self.caps, length);
        let request = self.http_request(body, announced, &progress).ok_or_else(|| context.unwritable())?;
        stream.start_request(length);
        let Performed { result, stream, has_unread_bytes } = self.perform(stream, request, &progress, context).await?;
        let (response, persistence) = result.map_err(|error| explain_error(error, &stream, context))?;
        let CompleteResponse { status, headers, body } = response;
        let is_accepted = (200..300).contains(&status);
        if self.request.holds_image && is_accepted && !stream.has_written_request() {
            return Err(context.accepted_too_early());
        }
        let received = Received { status, headers, body, peer: address, body_written: stream.body_written() };
        let framed = !has_unread_bytes && stream.is_strictly_framed(persistence.chunked);
        // A server that refuses a request may not have read its body.
        let was_read = self.request.allows_reuse && (length == 0 || is_accepted);
        if persistence.keeps && Check::KeptFraming.accepts(framed) && Check::KeptBody.accepts(was_read) {
            pool.put(key.clone(), Connection { stream, address }, persistence.limit);
        }
        Ok(received)
    }

    /// Sends the request on the stream and reads the response. Returns the stream with the result, so that nothing
    /// of the library's state is used again.
    async fn perform(
        &self,
        stream: WatchedStream,
        request: hyper::Request<Body>,
        progress: &Progress,
        context: &ErrorContext,
    ) -> Result<Performed, HttpError> {
        let mut builder = http1::Builder::new();
        builder.max_headers(self.caps.max_headers.saturating_add(HEADERS_TO_COUNT));
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (mut sender, mut wire) = handshake.map_err(|error| context.no_response(&error, progress))?;
        let exchange = async {
            let sending = async {
                let response = sender.send_request(request).await.map_err(SendFailure::Wire)?;
                Ok(Response::from(response.map(Body::wrap)))
            };
            let response = await_head(sending, progress, context, self.deadline).await?;
            let persistence = Persistence::of(&response, &self.request.method);
            Ok((receive(response, &self.caps, context, self.deadline).await?, persistence))
        };
        let result = drive(&mut wire, exchange).await;
        let http1::Parts { io, read_buf, .. } = wire.into_parts();
        Ok(Performed { result, stream: io.into_inner(), has_unread_bytes: !read_buf.is_empty() })
    }

    /// Returns the request as it is written; `None` if it cannot be.
    fn http_request(
        &self,
        body: SendBody,
        announced: Option<u64>,
        progress: &Progress,
    ) -> Option<hyper::Request<Body>> {
        let WireRequest { method, destination, allows_reuse, .. } = &self.request;
        let url = destination.to_url();
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let body = body.monitored(progress.clone()).unwrap_or_default();
        let mut request = hyper::Request::builder().method(method.clone()).uri(target).body(body).ok()?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&destination.host_header()).ok()?);
        headers.extend(self.request.headers.clone());
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        request_uncompressed(headers);
        if let Some(length) = announced {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        if Check::KeptBody.refuses(!allows_reuse) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Some(request)
    }
}

/// Adds to an error whether any byte can have been sent, and replaces it if the server sent too many interim responses.
fn explain_error(error: HttpError, stream: &WatchedStream, context: &ErrorContext) -> HttpError {
    if stream.interim_responses() <= MAX_INTERIM {
        return HttpError { sent: stream.may_have_sent(), ..error };
    }
    context.too_many_interim_responses(MAX_INTERIM).after_sending().refused_by(Check::InterimResponses)
}

/// Asks for a response that is not compressed, unless the request says otherwise.
pub(in crate::net) fn request_uncompressed(headers: &mut HeaderMap) {
    Check::IdentityRequested.perform(|| headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity")));
}

/// Runs the exchange, and meanwhile the connection, which reads and writes. Errors of the connection reach
/// the exchange through the library.
async fn drive<T>(
    wire: &mut http1::Connection<TokioIo<WatchedStream>, Body>,
    exchange: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let mut exchange = pin!(exchange);
    let mut open = true;
    std::future::poll_fn(|context| {
        if let Poll::Ready(result) = exchange.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        if open && wire.poll_without_shutdown(context).is_ready() {
            open = false;
        }
        exchange.as_mut().poll(context)
    })
    .await
}
