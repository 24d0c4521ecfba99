//! A server on loopback for one request at a time. It runs on the client's thread, so
//! that all requests are known when the client has finished.

use std::cell::RefCell;
use std::future::Future;
use std::io::Read;
use std::pin::Pin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static LOOPBACK: Loopback = Loopback::start();
}

pub(crate) struct Loopback {
    runtime: Runtime,
    listener: TcpListener,
    /// The same socket, to accept without waiting.
    nonblocking: std::net::TcpListener,
    port: u16,
}

/// The result of a request, and the requests that arrived at the server.
pub(crate) struct Seen<T> {
    pub(crate) result: T,
    pub(crate) requests: Vec<Vec<u8>>,
}

/// Returns the port that the server listens on, at every loopback address.
pub(crate) fn port() -> u16 {
    LOOPBACK.with(|loopback| loopback.port)
}

/// Runs `request` to its end. Each connection gets the next answer and is then closed.
/// The last answer repeats.
pub(crate) fn answered<T>(answers: &[&[u8]], request: impl Future<Output = T>) -> Seen<T> {
    LOOPBACK.with(|loopback| {
        let requests = RefCell::new(Vec::new());
        let result = loopback.runtime.block_on(async {
            tokio::select! {
                biased;
                result = request => result,
                () = loopback.serve(answers, &requests) => unreachable!("the server never stops"),
            }
        });
        // A connection that was not accepted yet counts as well.
        if let Ok((mut stream, _)) = loopback.nonblocking.accept() {
            let mut bytes = vec![0; 4096];
            let count = stream.set_nonblocking(true).and_then(|()| stream.read(&mut bytes)).unwrap_or_default();
            requests.borrow_mut().push(bytes[..count].to_vec());
        }
        Seen { result, requests: requests.into_inner() }
    })
}

impl Loopback {
    fn start() -> Loopback {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let nonblocking = std::net::TcpListener::bind("0.0.0.0:0").expect("loopback exists");
        nonblocking.set_nonblocking(true).expect("a socket can be non-blocking");
        let port = nonblocking.local_addr().expect("a bound socket has an address").port();
        let second = async { nonblocking.try_clone().and_then(TcpListener::from_std) };
        let listener = runtime.block_on(second).expect("a socket can be cloned");
        Loopback { runtime, listener, nonblocking, port }
    }

    /// Serves connections. A client can keep one open and use another, so the next one is served, too, once the
    /// one before has its answer.
    async fn serve(&self, answers: &[&[u8]], requests: &RefCell<Vec<Vec<u8>>>) {
        let mut latest: Option<Pin<Box<dyn Future<Output = ()> + '_>>> = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = async { latest.as_mut().map_or_else(|| unreachable!(), Pin::as_mut).await }, if latest.is_some() => {
                    latest = None;
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else { continue };
            let turn = requests.borrow().len();
            let answer = answers.get(turn).or(answers.last()).copied().unwrap_or_default();
            requests.borrow_mut().push(Vec::new());
            // Errors are ignored, as a client may close its connection early.
            latest = Some(Box::pin(async move { drop(converse(stream, answer, requests, turn).await) }));
        }
    }
}

async fn converse(
    mut stream: TcpStream,
    answer: &[u8],
    requests: &RefCell<Vec<Vec<u8>>>,
    turn: usize,
) -> std::io::Result<()> {
    let mut chunk = [0; 4096];
    let mut answered = false;
    loop {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        let complete = {
            let mut requests = requests.borrow_mut();
            let Some(request) = requests.get_mut(turn) else { return Ok(()) };
            request.extend_from_slice(&chunk[..count]);
            is_complete(request)
        };
        if complete && !answered {
            answered = true;
            stream.write_all(answer).await?;
            stream.shutdown().await?;
        }
    }
}

fn is_complete(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or_default();
    request.len() >= end + 4 + length
}
