//! Reads and writes HTTP/1.1 messages; request bodies are streamed.

use super::message::{Request, Response};
use std::io::{self, BufRead, Read, Write};

const MAX_LINE: u64 = 64 << 10;
const MAX_HEADERS: usize = 200;
/// The maximum length of a response body that a gateway forwards.
const MAX_ANSWER: u64 = 64 << 20;

/// How the length of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    /// The body ends when the connection is closed.
    Close,
}

/// A reader for a body. An incomplete body is an error.
pub(crate) struct Body<R> {
    reader: R,
    framing: Framing,
    /// The unread bytes of the body or of the current chunk.
    left: u64,
    done: bool,
}

/// Reads the head of a request. Returns `None` if the client disconnected or does not
/// speak HTTP.
pub(crate) fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let line = line(reader).ok().filter(|line| !line.is_empty())?;
    let mut parts = line.split(' ');
    let (method, target) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    Some(Request::new(&method, &target, headers(reader).ok()?))
}

pub(crate) fn framing_of(request: &Request) -> Framing {
    framing(&request.headers).unwrap_or(Framing::Length(0))
}

pub(crate) fn write_response(writer: &mut impl Write, response: &Response, keep_alive: bool) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} It is\r\n", response.status);
    for (name, value) in &response.headers {
        head += &format!("{name}: {value}\r\n");
    }
    // A 204 response has no body and no length.
    if response.status != 204 {
        head += &format!("Content-Length: {}\r\n", response.body.len());
    }
    head += if keep_alive { "\r\n" } else { "Connection: close\r\n\r\n" };
    writer.write_all(&[head.as_bytes(), &response.body].concat())?;
    writer.flush()
}

/// Forwards a request to another server and streams its body.
pub(crate) fn write_request(
    writer: &mut impl Write,
    request: &Request,
    host: &str,
    body: &mut dyn Read,
) -> io::Result<()> {
    const OWN: [&str; 7] =
        ["host", "connection", "accept-encoding", "expect", "transfer-encoding", "content-length", "keep-alive"];
    let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", request.method, request.target);
    for (name, value) in request.headers.iter().filter(|(name, _)| !OWN.contains(&name.to_lowercase().as_str())) {
        head += &format!("{name}: {value}\r\n");
    }
    let framing = framing(&request.headers);
    head += &match framing {
        Some(Framing::Length(length)) => format!("Content-Length: {length}\r\n\r\n"),
        Some(Framing::Chunked) => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
        Some(Framing::Close) | None => "\r\n".to_owned(),
    };
    writer.write_all(head.as_bytes())?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        let count = body.read(&mut chunk)?;
        match (framing, count) {
            (Some(Framing::Chunked), 0) => writer.write_all(b"0\r\n\r\n")?,
            (Some(Framing::Chunked), count) => {
                writer.write_all(format!("{count:x}\r\n").as_bytes())?;
                writer.write_all(&chunk[..count])?;
                writer.write_all(b"\r\n")?;
            }
            (_, count) => writer.write_all(&chunk[..count])?,
        }
        if count == 0 {
            return writer.flush();
        }
    }
}

pub(crate) fn read_response(reader: &mut impl BufRead, method: &str) -> io::Result<Response> {
    loop {
        let first = line(reader)?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, first))?;
        let headers = headers(reader)?;
        if (100..200).contains(&status) {
            continue;
        }
        let mut body = Vec::new();
        if method != "HEAD" && status != 204 && status != 304 {
            let framing = framing(&headers).unwrap_or(Framing::Close);
            Body::new(&mut *reader, framing).take(MAX_ANSWER).read_to_end(&mut body)?;
        }
        let own = |name: &str| ["transfer-encoding", "content-length", "connection", "keep-alive"].contains(&name);
        let headers = headers.into_iter().filter(|(name, _)| !own(&name.to_lowercase())).collect();
        return Ok(Response { status, headers, body });
    }
}

impl<R: BufRead> Body<R> {
    pub(crate) fn new(reader: R, framing: Framing) -> Body<R> {
        let left = if let Framing::Length(length) = framing { length } else { 0 };
        Body { reader, framing, left, done: framing == Framing::Length(0) }
    }

    /// Returns true if the whole body was read.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let size = line(&mut self.reader)?;
        let digits = size.split(';').next().unwrap_or_default().trim();
        self.left = u64::from_str_radix(digits, 16)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the chunk has no size"))?;
        if self.left == 0 {
            headers(&mut self.reader)?;
            self.done = true;
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.framing == Framing::Chunked && self.left == 0 && !self.done {
            self.next_chunk()?;
        }
        if self.done || into.is_empty() {
            return Ok(0);
        }
        let most = match self.framing {
            Framing::Close => into.len(),
            _ => usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len()),
        };
        let count = self.reader.read(&mut into[..most])?;
        match (self.framing, count) {
            (Framing::Close, 0) => self.done = true,
            (Framing::Close, _) => {}
            (_, 0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            (_, count) => {
                self.left -= count as u64;
                self.done = self.framing != Framing::Chunked && self.left == 0;
                if self.framing == Framing::Chunked && self.left == 0 {
                    line(&mut self.reader)?;
                }
            }
        }
        Ok(count)
    }
}

/// Returns `None` if the headers announce no body.
fn framing(headers: &[(String, String)]) -> Option<Framing> {
    let header =
        |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Some(Framing::Chunked);
    }
    header("content-length").and_then(|length| length.parse().ok()).map(Framing::Length)
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while headers.len() < MAX_HEADERS {
        let line = line(reader)?;
        if line.is_empty() {
            return Ok(headers);
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "too many headers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &str) -> Option<(Request, io::Result<String>, String)> {
        let mut reader = bytes.as_bytes();
        let request = read_request(&mut reader)?;
        let mut text = String::new();
        let read = Body::new(&mut reader, framing_of(&request)).read_to_string(&mut text);
        let rest = String::from_utf8_lossy(reader).into_owned();
        Some((request, read.map(|_| text), rest))
    }

    #[test]
    fn a_body_ends_where_its_framing_says() {
        for (bytes, body, rest) in [
            ("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET", Some(""), "GET"),
            ("PUT /a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcdef", Some("abc"), "def"),
            ("PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", None, ""),
            (
                "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\nrest",
                Some("abc"),
                "rest",
            ),
            ("PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", None, ""),
            ("PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", None, ""),
        ] {
            let (_, read, left) = read(bytes).unwrap_or_else(|| panic!("{bytes}"));
            assert_eq!((read.ok().as_deref(), left.as_str()), (body, rest), "{bytes}");
        }
        assert!(read("GET /a").is_none() && read("").is_none());
    }

    #[test]
    fn a_forwarded_request_keeps_its_framing_and_drops_hop_headers() {
        let headers = [("Host", "a"), ("Transfer-Encoding", "chunked"), ("X-Auth-Token", "t")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let mut written = Vec::new();
        let done = write_request(&mut written, &Request::new("PUT", "/f?x=1", headers), "b", &mut "body".as_bytes());
        assert!(done.is_ok());
        assert_eq!(
            String::from_utf8_lossy(&written),
            "PUT /f?x=1 HTTP/1.1\r\nHost: b\r\nConnection: close\r\nX-Auth-Token: t\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
        );
    }
}
