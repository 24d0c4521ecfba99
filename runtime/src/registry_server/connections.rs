//! Accepts connections, limits their number and duration, and ends them.
//!
//! Every wait has a limit, so a client that sends nothing, sends slowly or does not read occupies a
//! connection for a few minutes at most. If there are too many, the one that has been idle longest
//! is closed for a new one.

use super::api::{Api, ApiResponse};
use super::places::{Place, Places};
use crate::failure::Failure;
use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

const MAX_CONNECTIONS: usize = 256;

/// The limits on waiting.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    /// For the head of a request, including the idle time before it.
    pub(super) head: Duration,
    pub(super) body: Duration,
    pub(super) handshake: Duration,
    /// For a connection. A request in progress is still answered.
    pub(super) life: Duration,
    /// For requests in progress when the server or connection ends.
    pub(super) grace: Duration,
}

/// A server that is bound to its address.
pub(super) struct RegistryServer {
    listener: TcpListener,
    api: Arc<Api>,
    tls: Option<TlsAcceptor>,
    timeouts: Timeouts,
}

impl RegistryServer {
    pub(super) async fn bind(
        listen: SocketAddr,
        api: Arc<Api>,
        tls: Option<TlsAcceptor>,
    ) -> Result<RegistryServer, Failure> {
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            Failure::config(format!("registry: cannot listen on {listen}: {error}; choose another address or port"))
        })?;
        let timeouts = Timeouts {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
            life: Duration::from_secs(300),
            grace: Duration::from_secs(10),
        };
        Ok(RegistryServer { listener, api, tls, timeouts })
    }

    #[cfg(test)]
    pub(super) fn with_timeouts(self, timeouts: Timeouts) -> Self {
        RegistryServer { timeouts, ..self }
    }

    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        self.listener
            .local_addr()
            .map_err(|error| Failure::runtime(format!("registry: the address cannot be determined: {error}")))
    }

    /// Serves until `stop` ends, and then answers requests in progress.
    pub(super) async fn run(self, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(false);
        let places = Places::new(MAX_CONNECTIONS);
        let mut stop = pin!(stop);
        loop {
            let next = pin!(async {
                let (stream, _) = self.listener.accept().await?;
                // The place is taken for a connection that exists, so that no one is evicted in vain.
                Ok::<_, std::io::Error>((stream, places.take().await))
            });
            match select(next, stop.as_mut()).await {
                Either::Left((Ok((stream, place)), _)) => {
                    let (api, tls, timeouts, stopped) =
                        (self.api.clone(), self.tls.clone(), self.timeouts, stopped.clone());
                    tokio::spawn(async move {
                        let place = Arc::new(place);
                        let connection = pin!(connection(stream, api, tls, timeouts, stopped, Arc::clone(&place)));
                        select(connection, pin!(place.evicted())).await;
                    });
                }
                // Most likely there is no free descriptor until another connection ends.
                Either::Left(_) => sleep(Duration::from_millis(50)).await,
                Either::Right(_) => break,
            }
        }
        drop(self.listener);
        stopping.send_replace(true);
        let _ = timeout(self.timeouts.grace + self.timeouts.grace, places.empty()).await;
    }
}

async fn connection(
    stream: TcpStream,
    api: Arc<Api>,
    tls: Option<TlsAcceptor>,
    timeouts: Timeouts,
    stopped: watch::Receiver<bool>,
    place: Arc<Place>,
) {
    // Answers are written at once, so delaying small packets has no benefit.
    let _ = stream.set_nodelay(true);
    match tls {
        None => requests(stream, api, timeouts, stopped, place).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(timeouts.handshake, tls.accept(stream)).await {
                requests(stream, api, timeouts, stopped, place).await;
            }
        }
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    api: Arc<Api>,
    timeouts: Timeouts,
    mut stopped: watch::Receiver<bool>,
    place: Arc<Place>,
) {
    let service = service_fn(move |request| {
        let (api, place) = (api.clone(), place.clone());
        async move {
            place.start_request();
            let answer = api.answer(request, timeouts.body).await;
            place.end_request();
            Ok::<ApiResponse, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.head)
        .max_headers(64)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let end = pin!(async {
        let _ = timeout(timeouts.life, stopped.wait_for(|stopped| *stopped)).await;
    });
    if let Either::Right(_) = select(connection.as_mut(), end).await {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(timeouts.grace, connection).await;
    }
}
