//! The answer of a server, correct or not.

use super::{Stream, TIMEOUT};
use serde_json::Value;
use std::time::{Duration, Instant};

#[derive(Clone)]
pub enum Answer {
    /// A complete response with `Content-Length`.
    Whole { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// These bytes; then the server closes the connection, unless they are a complete response.
    Bytes(Vec<u8>),
    /// These bytes; then the connection stays open without further data.
    Stall(Vec<u8>),
    /// The first bytes, then the second ones repeatedly until the client disconnects.
    Flood(Vec<u8>, Vec<u8>),
    /// One byte at a time, with a pause after each.
    Drip(Vec<u8>, Duration),
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer::Whole { status, headers: Vec::new(), body: body.into() }
    }

    pub fn ok(body: impl Into<Vec<u8>>) -> Answer {
        Answer::new(200, body)
    }

    pub fn json(status: u16, body: &Value) -> Answer {
        Answer::new(status, body.to_string()).header("Content-Type", "application/json")
    }

    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Answer {
        Answer::Bytes(bytes.into())
    }

    pub fn stall(bytes: impl Into<Vec<u8>>) -> Answer {
        Answer::Stall(bytes.into())
    }

    pub fn flood(head: impl Into<Vec<u8>>, rest: impl Into<Vec<u8>>) -> Answer {
        Answer::Flood(head.into(), rest.into())
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Answer {
        if let Answer::Whole { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Writes the answer. Ignores errors, because clients may disconnect at any time. Returns true if the
    /// client can send another request on the same connection.
    pub fn write(self, stream: &mut impl Stream) -> bool {
        let stays_open = match &self {
            Answer::Whole { headers, .. } => !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection")),
            Answer::Bytes(bytes) => is_complete(bytes),
            Answer::Stall(_) | Answer::Flood(..) | Answer::Drip(..) => false,
        };
        let _ = match self {
            Answer::Whole { status, headers, body } => {
                let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                let head = format!("HTTP/1.1 {status} It is\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
                stream.write_all(&[head.as_bytes(), &body].concat())
            }
            Answer::Bytes(bytes) => stream.write_all(&bytes),
            Answer::Stall(bytes) => stream.write_all(&bytes).and_then(|()| stream.flush()).map(|()| {
                // Returns when the client disconnects or the read timeout ends.
                let _ = stream.read(&mut [0]);
            }),
            Answer::Flood(head, rest) => flood(stream, &head, &rest),
            Answer::Drip(bytes, pause) => drip(stream, &bytes, pause),
        };
        stream.flush().is_ok() && stays_open
    }
}

/// Returns true if these bytes are a response whose end a client finds without the end of the connection.
fn is_complete(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let (head, body) = (String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase(), &bytes[end + 4..]);
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if field("connection:").is_some() {
        return false;
    }
    match (field("content-length:"), field("transfer-encoding:")) {
        (Some(length), None) => length.parse().is_ok_and(|length: usize| length <= body.len()),
        (None, Some("chunked")) => body.ends_with(b"0\r\n\r\n"),
        _ => head.starts_with("http/1.1 204"),
    }
}

fn flood(stream: &mut impl Stream, head: &[u8], rest: &[u8]) -> std::io::Result<()> {
    stream.write_all(head)?;
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        stream.write_all(rest)?;
    }
    Ok(())
}

fn drip(stream: &mut impl Stream, bytes: &[u8], pause: Duration) -> std::io::Result<()> {
    for byte in bytes {
        stream.write_all(&[*byte])?;
        stream.flush()?;
        std::thread::sleep(pause);
    }
    Ok(())
}
