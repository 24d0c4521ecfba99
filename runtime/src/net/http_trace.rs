//! `http_trace`: writes requests and responses to stderr, for troubleshooting.
//!
//! Requests are shown as they are sent, but with `<sealed:name>` in filled slots.
//! Responses are shown as the guest gets them. Headers whose names suggest
//! credentials, and all secrets of the vault, are redacted. No value of a login
//! is shown. The size of the trace is bounded per message and per call, because
//! a guest chooses what it sends.

use crate::log::Log;
use crate::vault::Vault;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;
use wasm_cpi_checks::Check;

/// The setting `http_trace` of the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpTrace {
    Headers,
    Bodies,
}

impl HttpTrace {
    /// Returns the warning that `check` prints.
    pub fn warning(self) -> String {
        let what = match self {
            HttpTrace::Headers => "URLs and headers",
            HttpTrace::Bodies => "URLs, headers and bodies",
        };
        format!("`http_trace` writes {what} of all requests to stderr: remove it once the problem is found")
    }
}

/// The size of the trace of a call, in bytes. Each line counts with `LINE_START` more bytes.
const MAX_TRACE_BYTES: usize = 256 * 1024;
const LINE_START: usize = 64;
const BODY_MAX: usize = 4 * 1024;
const URL_MAX: usize = 1024;
const VALUE_MAX: usize = 256;

const HIDDEN: &str = "<redacted>";

/// Parts of names that suggest that the value is a credential. The list is wider than those that decide about requests
/// and responses: a value that is redacted without need only makes the trace less useful.
const CREDENTIALS: [&str; 11] =
    ["auth", "cookie", "token", "secret", "passw", "key", "sig", "credential", "session", "x-amz-", "x-goog-"];

/// Writes the trace of one call.
pub struct Tracer {
    log: Arc<Log>,
    vault: Arc<Vault>,
    bodies: bool,
    left: Mutex<Left>,
}

struct Left {
    bytes: usize,
    exhausted: bool,
}

/// A body as the trace shows it.
pub(super) enum Shown<'a> {
    Bytes(&'a [u8]),
    /// A part of the image with this number of bytes.
    Image(u64),
    /// The body of a login, which is not shown. Its length would measure its secrets.
    Hidden,
}

pub(super) type Headers<'a> = Vec<(&'a str, &'a str)>;

impl Tracer {
    pub fn new(what: HttpTrace, log: Arc<Log>, vault: Arc<Vault>) -> Tracer {
        let left = Mutex::new(Left { bytes: MAX_TRACE_BYTES, exhausted: false });
        Tracer { log, vault, bodies: what == HttpTrace::Bodies, left }
    }

    /// Traces a request. `whose` names the grant or the login.
    pub(super) fn request(&self, whose: &str, method: &str, url: &Url, headers: &Headers<'_>, body: &Shown<'_>) {
        self.line(&format!("> {method} {} ({whose})", self.url(url)));
        self.rest('>', headers, body);
    }

    pub(super) fn response(&self, whose: &str, status: u16, headers: &Headers<'_>, body: &Shown<'_>) {
        self.line(&format!("< {status} ({whose})"));
        self.rest('<', headers, body);
    }

    /// Traces why there is no response, or none that is shown.
    pub(super) fn no_response(&self, whose: &str, why: &str) {
        self.line(&format!("< {why} ({whose})"));
    }

    fn rest(&self, mark: char, headers: &Headers<'_>, body: &Shown<'_>) {
        for (name, value) in headers {
            self.line(&format!("{mark} {name}: {}", self.value(name, value)));
        }
        match body {
            Shown::Bytes([]) => {}
            Shown::Image(length) => self.line(&format!("{mark} {length} bytes of the image")),
            Shown::Hidden => self.line(&format!("{mark} the body of a login, not shown")),
            Shown::Bytes(bytes) if !self.bodies => self.line(&format!("{mark} {} bytes", bytes.len())),
            Shown::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => {
                    self.line(&format!("{mark} {} bytes: {}", bytes.len(), self.log.clean_field(text, BODY_MAX)));
                }
                _ => self.line(&format!("{mark} {} bytes that are not text", bytes.len())),
            },
        }
    }

    fn value(&self, name: &str, value: &str) -> String {
        match self.vault.open(value) {
            Some(sealed) => format!("<sealed:{}>", self.log.clean_field(&sealed.name, VALUE_MAX)),
            None if is_redacted(name) => HIDDEN.to_owned(),
            None => self.log.clean_field(value, VALUE_MAX),
        }
    }

    fn url(&self, url: &Url) -> String {
        let mut shown = url.clone();
        shown.set_query(None);
        let mut text = shown.to_string();
        let hidden = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if is_redacted(name) => format!("{name}={HIDDEN}"),
            _ => pair.to_owned(),
        };
        if let Some(query) = url.query() {
            let pairs: Vec<String> = query.split('&').map(hidden).collect();
            text = format!("{text}?{}", pairs.join("&"));
        }
        self.log.clean_field(&text, URL_MAX)
    }

    fn line(&self, line: &str) {
        {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            if left.exhausted {
                return;
            }
            match left.bytes.checked_sub(line.len() + LINE_START) {
                Some(bytes) => left.bytes = bytes,
                None => left.exhausted = Check::TraceBounds.choose(true, false),
            }
            if left.exhausted {
                let said = format!("the trace of this call ends here: it reached {} KiB", MAX_TRACE_BYTES / 1024);
                return self.log.trace("http_trace", &said);
            }
        }
        self.log.trace("http_trace", line);
    }
}

/// Returns true if the trace does not show the value of this header or parameter.
fn is_redacted(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    Check::TraceCredentials.refuses(name.starts_with("proxy-") || CREDENTIALS.iter().any(|part| name.contains(part)))
}
