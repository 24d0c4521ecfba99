//! A server that reads requests of any size, keeps nothing of them, and answers each
//! with 200. It costs as little as it can, so that clients are measured.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use tests::servers::Server;

const BUFFER: usize = 256 << 10;

/// Starts a server for plain HTTP.
pub(crate) fn plain() -> Server {
    Server::with_handler("http", |stream| {
        // A client that disconnects is not an error of the server.
        let _ = discard_requests(stream);
    })
}

/// Starts a server for HTTPS.
pub(crate) fn tls(config: Arc<ServerConfig>) -> Server {
    Server::with_handler("https", move |stream| {
        let _ = stream.set_nodelay(true);
        let Ok(connection) = ServerConnection::new(Arc::clone(&config)) else { return };
        let _ = discard_requests(StreamOwned::new(connection, stream));
    })
}

/// Answers requests until the client closes the connection.
fn discard_requests(stream: impl Read + Write) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(BUFFER, stream);
    while discard_request(&mut stream)? {
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        stream.get_mut().flush()?;
    }
    Ok(())
}

/// Reads a request with a content length or a chunked body to its end. Returns false if there is none.
fn discard_request(from: &mut impl BufRead) -> io::Result<bool> {
    let (mut length, mut line) = (None, String::new());
    while from.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse::<u64>().ok();
        }
        line.clear();
    }
    if line.is_empty() {
        return Ok(false);
    }
    match length {
        Some(length) => drop(io::copy(&mut from.take(length), &mut io::sink())?),
        None => discard_chunks(from)?,
    }
    Ok(true)
}

fn discard_chunks(from: &mut impl BufRead) -> io::Result<()> {
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        io::copy(&mut from.by_ref().take(size + 2), &mut io::sink())?;
        if size == 0 {
            return Ok(());
        }
    }
}
