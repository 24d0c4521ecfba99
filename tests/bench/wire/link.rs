//! A network link with latency: a proxy on loopback that passes bytes on unchanged, some
//! time after they arrived.
//!
//! Each direction is a delay line: bytes that arrive while others are on their way are
//! delayed by the same time, so the link does not limit the throughput. The first bytes
//! of a client arrive one round trip later than others, because on a real network its
//! connection would only be established then. The link does not decrypt TLS, so TLS
//! handshakes take as many round trips as on a real network.

use ::tests::servers::{Server, TIMEOUT};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The latency of each direction.
pub(super) const ONE_WAY: Duration = Duration::from_millis(10);
const ROUND_TRIP: Duration = ONE_WAY.saturating_mul(2);

/// The most bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// The most chunks on their way in one direction. Only a server that does not read reaches it.
const MAX_CHUNKS: usize = 1024;

/// A link to one server. It exists until this process ends.
pub(super) struct Link {
    front: Server,
    connections: Arc<AtomicUsize>,
}

impl Link {
    pub(super) fn to(server: SocketAddr) -> Link {
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let front = Server::with_handler("https", move |client| {
            count.fetch_add(1, Ordering::SeqCst);
            // A client that disconnects is not an error of the link.
            let _ = connect(client, server);
        });
        Link { front, connections }
    }

    /// Returns the address for clients.
    pub(super) fn address(&self) -> SocketAddr {
        self.front.address()
    }

    /// Returns the number of connections since the start.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn connect(client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    server.set_read_timeout(Some(TIMEOUT))?;
    server.set_write_timeout(Some(TIMEOUT))?;
    for stream in [&client, &server] {
        // Otherwise the kernel would add delays of its own.
        stream.set_nodelay(true)?;
    }
    let (from_server, to_client) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || pass_on(from_server, to_client, Duration::ZERO));
    pass_on(client, server, ROUND_TRIP);
    Ok(())
}

/// Passes all bytes on, each after the latency, and then the end of the stream. `handshake` delays
/// the first bytes, too.
fn pass_on(mut from: TcpStream, to: TcpStream, handshake: Duration) {
    let Ok(source) = from.try_clone() else { return };
    let (line, arriving) = sync_channel(MAX_CHUNKS);
    thread::spawn(move || deliver(&arriving, to, &source));
    let mut delay = ONE_WAY + handshake;
    let mut chunk = vec![0; CHUNK];
    loop {
        // A reset connection ends like a closed one.
        let count = from.read(&mut chunk).unwrap_or(0);
        if line.send((Instant::now() + delay, chunk[..count].to_vec())).is_err() || count == 0 {
            return;
        }
        delay = ONE_WAY;
    }
}

/// Writes the chunks in their order when they are due. An empty chunk is the end of the stream.
fn deliver(arriving: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream, source: &TcpStream) {
    for (due, chunk) in arriving {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if chunk.is_empty() {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
        if to.write_all(&chunk).is_err() {
            // Ends the read of the other thread.
            let _ = source.shutdown(Shutdown::Both);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that returns every byte at once.
    fn echo() -> Server {
        Server::with_handler("http", |stream| {
            let Ok(mut back) = stream.try_clone() else { return };
            let _ = io::copy(&mut &stream, &mut back);
            let _ = back.shutdown(Shutdown::Write);
        })
    }

    #[test]
    fn the_first_byte_takes_two_round_trips_and_every_other_one() {
        let link = Link::to(echo().address());
        let mut client = TcpStream::connect(link.address()).unwrap();
        for round_trips in [2, 1, 1] {
            let start = Instant::now();
            client.write_all(b"x").unwrap();
            client.read_exact(&mut [0]).unwrap();
            let took = start.elapsed();
            assert!(took >= ROUND_TRIP * round_trips, "{took:?}");
        }
        assert_eq!(link.connections(), 1);
    }

    #[test]
    fn many_bytes_arrive_unchanged_and_are_not_delayed_one_by_one() {
        let link = Link::to(echo().address());
        let client = TcpStream::connect(link.address()).unwrap();
        let sent: Vec<u8> = (0..256 * CHUNK).map(|at| (at % 251) as u8).collect();
        let (mut to, bytes, start) = (client.try_clone().unwrap(), sent.clone(), Instant::now());
        let writer = thread::spawn(move || {
            to.write_all(&bytes).unwrap();
            to.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        (&client).read_to_end(&mut received).unwrap();
        writer.join().unwrap();
        assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
        // If chunks were delayed one after the other, it would take 256 times the latency.
        assert!(start.elapsed() < ONE_WAY * 256, "{:?}", start.elapsed());
    }
}
