//! Accepts connections, limits their number and duration, and ends them.
//!
//! Every wait has a limit, so a client that sends nothing, sends slowly or does not read occupies a
//! connection for a few minutes at most. If there are too many, the one that has been idle longest
//! is closed for a new one.

use super::api::{Api, ApiResponse};
use super::connection_limit::{ConnectionLimit, Permit};
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
        let limit = ConnectionLimit::new(MAX_CONNECTIONS);
        let mut stop = pin!(stop);
        loop {
            let next = pin!(async {
                let (stream, _) = self.listener.accept().await?;
                // The permit is taken for a connection that exists, so that no other one is closed in vain.
                Ok::<_, std::io::Error>((stream, limit.take().await))
            });
            match select(next, stop.as_mut()).await {
                Either::Left((Ok((stream, permit)), _)) => {
                    let connection = Connection {
                        api: Arc::clone(&self.api),
                        tls: self.tls.clone(),
                        timeouts: self.timeouts,
                        stopped: stopped.clone(),
                        permit: Arc::new(permit),
                    };
                    tokio::spawn(async move {
                        let permit = Arc::clone(&connection.permit);
                        select(pin!(connection.serve(stream)), pin!(permit.evicted())).await;
                    });
                }
                // Most likely there is no free descriptor until another connection ends.
                Either::Left(_) => sleep(Duration::from_millis(50)).await,
                Either::Right(_) => break,
            }
        }
        drop(self.listener);
        stopping.send_replace(true);
        let _ = timeout(self.timeouts.grace + self.timeouts.grace, limit.empty()).await;
    }
}

/// One connection, and what it is served with.
struct Connection {
    api: Arc<Api>,
    tls: Option<TlsAcceptor>,
    timeouts: Timeouts,
    /// Becomes true when the server ends.
    stopped: watch::Receiver<bool>,
    permit: Arc<Permit>,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream) {
        // Responses are written at once, so delaying small packets has no benefit.
        let _ = stream.set_nodelay(true);
        match self.tls.take() {
            None => self.answer_requests(stream).await,
            Some(tls) => {
                if let Ok(Ok(stream)) = timeout(self.timeouts.handshake, tls.accept(stream)).await {
                    self.answer_requests(stream).await;
                }
            }
        }
    }

    async fn answer_requests(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Connection { api, timeouts, mut stopped, permit, .. } = self;
        let service = service_fn(move |request| {
            let (api, permit) = (Arc::clone(&api), Arc::clone(&permit));
            async move {
                permit.start_request();
                let response = api.answer(request, timeouts.body).await;
                permit.end_request();
                Ok::<ApiResponse, Infallible>(response)
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
}
