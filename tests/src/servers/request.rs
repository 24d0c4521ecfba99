//! A request as a server received it.

use serde_json::Value;
use std::io::Read;

/// Of longer bodies only the start is stored, with the length and digest of the whole.
const MAX_BODY: usize = 4 << 20;
const MAX_HEAD: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The request line.
    pub line: String,
    /// In the order in which they were received.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub length: u64,
    /// BLAKE3 of the body.
    pub digest: String,
    /// The head and the stored part of the body, byte for byte.
    pub raw: Vec<u8>,
}

impl ReceivedRequest {
    /// Reads a request. Returns `None` if the client disconnects before it is complete.
    pub fn read(stream: &mut (impl Read + ?Sized)) -> Option<ReceivedRequest> {
        read(stream)
    }

    /// Reads the head of a request, and leaves its body unread.
    pub fn read_head(stream: &mut (impl Read + ?Sized)) -> Option<ReceivedRequest> {
        head(stream)
    }

    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// Returns path and query.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{}: {error}", self.text()))
    }
}

fn head(stream: &mut (impl Read + ?Sized)) -> Option<ReceivedRequest> {
    let mut raw = Vec::new();
    let mut byte = [0];
    while !raw.ends_with(b"\r\n\r\n") {
        if raw.len() > MAX_HEAD || stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        raw.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&raw).into_owned();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let pair = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    let headers = lines.filter_map(pair).collect();
    Some(ReceivedRequest { line, headers, body: Vec::new(), length: 0, digest: String::new(), raw })
}

/// Reads a request. Returns `None` if the client disconnects before it is complete.
pub(super) fn read(stream: &mut (impl Read + ?Sized)) -> Option<ReceivedRequest> {
    let mut request = head(stream)?;
    let announced: u64 = request.header("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut digest = blake3::Hasher::new();
    let mut chunk = vec![0; 256 * 1024];
    while request.length < announced {
        let most = usize::try_from(announced - request.length).unwrap_or(usize::MAX).min(chunk.len());
        let count = stream.read(&mut chunk[..most]).ok().filter(|count| *count > 0)?;
        digest.update(&chunk[..count]);
        if request.body.len() < MAX_BODY {
            request.body.extend_from_slice(&chunk[..count]);
        }
        request.length += count as u64;
    }
    request.digest = digest.finalize().to_string();
    request.raw.extend_from_slice(&request.body);
    Some(request)
}
