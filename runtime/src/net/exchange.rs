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

#[cfg(any(test, feature = "fuzzing"))]
pub use caps::Room;
pub use caps::{Caps, NamedLimit};
pub(in crate::net) use error_context::ErrorContext;
pub(in crate::net) use request_body::Progress;
pub use request_body::SendBody;
pub(in crate::net) use response::{Failed, await_head, receive};

use crate::net::connection::{Connection, Endpoint, MAX_INTERIM, WatchedStream};
use crate::net::connection_pool::{ConnectionKey, ConnectionPool};
use crate::net::error::HttpError;
use crate::net::proxy::tunnel::ResolvedProxy;
use hyper::client::conn::http1;
use hyper::header::{self, ACCEPT, HOST};
use hyper_util::rt::TokioIo;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue};
use reqwest::{Body, Method, Response};
use response::Persistence;
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

/// A request that passed all checks, and where and how to send it.
pub struct Exchange {
    pub method: Method,
    /// Its host is also the name that the TLS certificate must be valid for.
    pub destination: Destination,
    pub headers: HeaderMap,
    /// The allowed addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// The proxy that connects to these addresses; `None` connects directly.
    pub proxy: Option<ResolvedProxy>,
    /// The TLS settings and the configuration made of them; `None` for http://.
    pub tls: Option<(Tls, Arc<ClientConfig>)>,
    /// Whose credentials the request carries; see `ConnectionKey`.
    pub credential_owner: String,
    /// True if further requests can use the connection once the server has accepted this one.
    pub allows_reuse: bool,
    /// True if the body holds a part of the stemcell image, of which no byte may be missing.
    pub holds_image: bool,
    pub caps: Caps,
    pub deadline: Instant,
}

/// A complete response.
pub struct Received {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The address that responded; `None` if the client does not say.
    pub peer: Option<IpAddr>,
    /// How many bytes of the request's body were written before the end of the response.
    pub body_written: u64,
}

impl Exchange {
    /// Sends the request with this body and returns the complete response.
    pub async fn run(mut self, mut body: SendBody, pool: &ConnectionPool) -> Result<Received, HttpError> {
        let context = ErrorContext::new(&self.method, &self.destination);
        if self.deadline <= Instant::now() {
            return Err(context.deadline_reached());
        }
        let key = ConnectionKey {
            origin: self.destination.origin(),
            tls: self.tls.as_ref().map(|(settings, _)| settings.clone()),
            proxy: self.proxy.as_ref().map(|proxy| proxy.proxy.clone()),
            credential_owner: std::mem::take(&mut self.credential_owner),
        };
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

    async fn connect(
        &self,
        key: &ConnectionKey,
        pool: &ConnectionPool,
        context: &ErrorContext,
    ) -> Result<Connection, HttpError> {
        let until = self.deadline.min(Instant::now() + self.caps.connect);
        let addresses = self.addresses.as_slice();
        #[cfg(feature = "mutation-testing")]
        let again = crate::net::mutants::resolve_again(&self.destination).await;
        #[cfg(feature = "mutation-testing")]
        let addresses = again.as_deref().unwrap_or(addresses);
        let endpoint = Endpoint { destination: &self.destination, addresses, proxy: self.proxy.as_ref() };
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
        let length = body.announced(&self.method).unwrap_or(0);
        let progress = Progress::new(&self.caps, length);
        let request = self.request(body, &progress).ok_or_else(|| context.unwritable())?;
        stream.start_request(length);
        let mut builder = http1::Builder::new();
        builder.max_headers(self.caps.max_headers.saturating_add(HEADERS_TO_COUNT));
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (mut sender, mut wire) = handshake.map_err(|error| context.no_response(&error, &progress))?;
        let exchange = async {
            let sending = async {
                let response = sender.send_request(request).await.map_err(Failed::Wire)?;
                Ok(Response::from(response.map(Body::wrap)))
            };
            let response = await_head(sending, &progress, context, self.deadline).await?;
            let persistence = Persistence::of(&response, &self.method);
            Ok((receive(response, &self.caps, context, self.deadline).await?, persistence))
        };
        let result = drive(&mut wire, exchange).await;
        let http1::Parts { io, read_buf, .. } = wire.into_parts();
        let stream: WatchedStream = io.into_inner();
        let (received, persistence) = result.map_err(|error| {
            let error = HttpError { sent: stream.may_have_sent(), ..error };
            if stream.interim_responses() <= MAX_INTERIM {
                return error;
            }
            let error = context.too_many_interim_responses(MAX_INTERIM).after_sending();
            error.refused_by(Check::InterimResponses)
        })?;
        let received = Received { peer: Some(address), body_written: stream.body_written(), ..received };
        let is_accepted = (200..300).contains(&received.status);
        if self.holds_image && is_accepted && !stream.has_written_request() {
            return Err(context.accepted_too_early());
        }
        let framed = read_buf.is_empty() && stream.is_strictly_framed(persistence.chunked);
        // A server that refuses a request may not have read its body.
        let was_read = self.allows_reuse && (length == 0 || is_accepted);
        if persistence.keeps && Check::KeptFraming.accepts(framed) && Check::KeptBody.accepts(was_read) {
            pool.put(key.clone(), Connection { stream, address }, persistence.limit);
        }
        Ok(received)
    }

    /// Returns the request as it is written; `None` if it cannot be.
    fn request(&self, body: SendBody, progress: &Progress) -> Option<hyper::Request<Body>> {
        let url = self.destination.to_url();
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let length = body.announced(&self.method);
        let body = body.monitored(progress.clone()).unwrap_or_default();
        let mut request = hyper::Request::builder().method(self.method.clone()).uri(target).body(body).ok()?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.destination.host_header()).ok()?);
        headers.extend(self.headers.clone());
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        request_uncompressed(headers);
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        if Check::KeptBody.refuses(!self.allows_reuse) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Some(request)
    }
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
