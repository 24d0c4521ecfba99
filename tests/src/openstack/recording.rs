//! What a gateway remembers of a request.

use super::message::Request;
use super::service::Service;
use serde_json::Value;
use std::io::{self, Read};

/// Of JSON; of other bodies nothing is kept.
const KEPT: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct Recorded {
    pub service: Service,
    pub method: String,
    /// Without the service's prefix and without the query: `/servers/…`.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// As it came.
    pub target: String,
    /// Kept if it is JSON.
    pub body: Vec<u8>,
    pub length: u64,
    /// BLAKE3 of the body.
    pub digest: String,
    /// None if there was no answer.
    pub status: Option<u16>,
    /// Whether a fault struck it.
    pub faulted: bool,
}

/// Counts and digests a body on its way.
pub(super) struct Counted<R> {
    body: R,
    digest: blake3::Hasher,
    length: u64,
    kept: Vec<u8>,
    keep: bool,
}

impl Recorded {
    /// `POST /servers 202`, for comparing and for messages.
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

impl<R> Counted<R> {
    pub(super) fn new(body: R, request: &Request) -> Counted<R> {
        let keep = request.header("content-type").is_some_and(|kind| kind.contains("json"));
        Counted { body, digest: blake3::Hasher::new(), length: 0, kept: Vec::new(), keep }
    }

    pub(super) fn inner(&self) -> &R {
        &self.body
    }

    pub(super) fn recorded(self, service: Service, request: &Request, status: Option<u16>, faulted: bool) -> Recorded {
        Recorded {
            service,
            method: request.method.clone(),
            path: service.relative(&request.path),
            headers: request.headers.clone(),
            target: request.target.clone(),
            body: self.kept,
            length: self.length,
            digest: self.digest.finalize().to_string(),
            status,
            faulted,
        }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(into)?;
        self.digest.update(&into[..count]);
        self.length += count as u64;
        if self.keep && self.kept.len() < KEPT {
            self.kept.extend_from_slice(&into[..count]);
        }
        Ok(count)
    }
}
