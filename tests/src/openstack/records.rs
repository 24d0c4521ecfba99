//! The requests that a gateway records.

use super::message::Request;
use super::service::Service;
use serde_json::Value;
use std::io::{self, Read};

/// The maximum recorded length of a JSON body. Other bodies are not recorded.
const MAX_RECORDED: usize = 1 << 20;

/// A request that passed a gateway.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub service: Service,
    pub method: String,
    /// The path without the service's prefix and the query: `/servers/…`.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// Path and query as received.
    pub target: String,
    /// The body if it is JSON, and empty otherwise.
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
pub(super) struct RecordingBody<R> {
    body: R,
    digest: blake3::Hasher,
    length: u64,
    recorded: Vec<u8>,
    is_json: bool,
}

impl RecordedRequest {
    /// Returns a line such as `POST /servers 202`, for comparisons and messages.
    pub fn line(&self) -> String {
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        format!("{} {} {status}", self.method, self.path)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl<R> RecordingBody<R> {
    pub(super) fn new(body: R, request: &Request) -> RecordingBody<R> {
        let is_json = request.header("content-type").is_some_and(|kind| kind.contains("json"));
        RecordingBody { body, digest: blake3::Hasher::new(), length: 0, recorded: Vec::new(), is_json }
    }

    pub(super) fn inner(&self) -> &R {
        &self.body
    }

    pub(super) fn into_record(
        self,
        service: Service,
        request: &Request,
        status: Option<u16>,
        faulted: bool,
    ) -> RecordedRequest {
        RecordedRequest {
            service,
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

impl<R: Read> Read for RecordingBody<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(into)?;
        self.digest.update(&into[..count]);
        self.length += count as u64;
        if self.is_json && self.recorded.len() < MAX_RECORDED {
            self.recorded.extend_from_slice(&into[..count]);
        }
        Ok(count)
    }
}
