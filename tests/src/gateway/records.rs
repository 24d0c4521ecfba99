//! The requests that a gateway records.

use super::message::Request;
use super::service::Services;
use serde_json::Value;
use std::io::{self, Read};

/// The maximum recorded length of a JSON body or a form. Other bodies are not recorded.
const MAX_RECORDED: usize = 1 << 20;

/// A request that passed a gateway.
#[derive(Clone, Debug)]
pub struct RecordedRequest<S> {
    pub service: S,
    /// The operation, if the service has named operations.
    pub operation: Option<String>,
    pub method: String,
    /// The path without the service's prefix and the query: `/servers/…`.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// Path and query as received.
    pub target: String,
    /// The body if it is JSON or a form, and empty otherwise.
    pub body: Vec<u8>,
    pub length: u64,
    /// The BLAKE3 hash of the body.
    pub digest: String,
    /// `None` if the client got no answer.
    pub status: Option<u16>,
    /// True if a fault was injected.
    pub faulted: bool,
}

/// Counts, hashes and records a body while it is read.
pub(crate) struct RecordingBody<R> {
    body: R,
    digest: blake3::Hasher,
    length: u64,
    recorded: Vec<u8>,
    kind: Kind,
    /// How much of the recorded form is to be read again.
    unread: usize,
}

/// What a body is, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Form,
    Other,
}

impl<S> RecordedRequest<S> {
    /// Returns a line such as `POST /servers 202` or `RunInstances 200`, for comparisons and messages.
    pub fn line(&self) -> String {
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        match &self.operation {
            Some(operation) => format!("{operation} {status}"),
            None => format!("{} {} {status}", self.method, self.path),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl<R> RecordingBody<R> {
    pub(crate) fn new(body: R, request: &Request) -> RecordingBody<R> {
        let kind = match request.header("content-type") {
            Some(kind) if kind.contains("json") => Kind::Json,
            Some(kind) if kind.contains("x-www-form-urlencoded") => Kind::Form,
            _ => Kind::Other,
        };
        RecordingBody { body, digest: blake3::Hasher::new(), length: 0, recorded: Vec::new(), kind, unread: 0 }
    }

    pub(crate) fn inner(&self) -> &R {
        &self.body
    }

    pub(crate) fn into_record<S: Services>(
        self,
        service: S,
        request: &Request,
        operation: Option<String>,
        status: Option<u16>,
        faulted: bool,
    ) -> RecordedRequest<S> {
        RecordedRequest {
            service,
            operation,
            method: request.method.clone(),
            path: service.relative(&request.path),
            headers: request.headers.clone(),
            target: request.target.clone(),
            body: self.recorded,
            length: self.length,
            digest: self.digest.finalize().to_string(),
            status,
            faulted,
        }
    }
}

impl<R: Read> RecordingBody<R> {
    /// Reads a form before the service does, which then reads it again. Returns nothing of other bodies, and what has
    /// arrived of an incomplete form.
    pub(crate) fn read_form(&mut self) -> &[u8] {
        if self.kind == Kind::Form {
            let _ = io::copy(&mut Read::take(&mut *self, MAX_RECORDED as u64), &mut io::sink());
            self.unread = self.recorded.len();
            return &self.recorded;
        }
        &[]
    }
}

impl<R: Read> Read for RecordingBody<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.unread > 0 {
            let count = self.unread.min(into.len());
            let start = self.recorded.len() - self.unread;
            into[..count].copy_from_slice(&self.recorded[start..start + count]);
            self.unread -= count;
            return Ok(count);
        }
        let count = self.body.read(into)?;
        self.digest.update(&into[..count]);
        self.length += count as u64;
        if self.kind != Kind::Other && self.recorded.len() < MAX_RECORDED {
            self.recorded.extend_from_slice(&into[..count]);
        }
        Ok(count)
    }
}
