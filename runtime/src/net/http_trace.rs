//! `http_trace`: what the gate sends and gets, on stderr, for troubleshooting.
//!
//! Requests are shown as they are sent, but with `<sealed:name>` where a slot
//! was filled; responses as the guest gets them. Credentials by the name of
//! their header, and all that the vault knows, are not shown, of logins no value
//! at all. How much is shown of a message and of a call is bounded, as guests
//! decide what they send.

use crate::log::Log;
use crate::vault::Vault;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;
use wasm_cpi_checks::Check;

/// The config's `http_trace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpTrace {
    Headers,
    Bodies,
}

impl HttpTrace {
    /// For `check`.
    pub fn warning(self) -> String {
        let what = match self {
            HttpTrace::Headers => "URLs and headers",
            HttpTrace::Bodies => "URLs, headers and bodies",
        };
        format!("`http_trace` writes {what} of all requests to stderr: remove it once the trouble is found")
    }
}

/// Shown of all messages of a call, with something for the beginning of each line.
const TOTAL: usize = 256 * 1024;
const BEGINNING: usize = 64;
const BODY_MAX: usize = 4 * 1024;
const URL_MAX: usize = 1024;
const VALUE_MAX: usize = 256;

const HIDDEN: &str = "<redacted>";

/// Parts of names whose values are credentials, by all that is known of them.
const CREDENTIALS: [&str; 11] =
    ["auth", "cookie", "token", "secret", "passw", "key", "sig", "credential", "session", "x-amz-", "x-goog-"];

pub struct Tracer {
    log: Arc<Log>,
    vault: Arc<Vault>,
    bodies: bool,
    left: Mutex<Left>,
}

struct Left {
    bytes: usize,
    told: bool,
}

pub(super) enum Shown<'a> {
    Bytes(&'a [u8]),
    /// So many bytes of it.
    Image(u64),
    /// A login's: so many bytes.
    Hidden(usize),
}

pub(super) type Headers<'a> = Vec<(&'a str, &'a str)>;

impl Tracer {
    pub fn new(what: HttpTrace, log: Arc<Log>, vault: Arc<Vault>) -> Tracer {
        let left = Mutex::new(Left { bytes: TOTAL, told: false });
        Tracer { log, vault, bodies: what == HttpTrace::Bodies, left }
    }

    /// `whose` is a grant or a login.
    pub(super) fn request(&self, whose: &str, method: &str, url: &Url, headers: &Headers<'_>, body: &Shown<'_>) {
        self.line(&format!("> {method} {} ({whose})", self.url(url)));
        self.rest('>', headers, body);
    }

    pub(super) fn response(&self, whose: &str, status: u16, headers: &Headers<'_>, body: &Shown<'_>) {
        self.line(&format!("< {status} ({whose})"));
        self.rest('<', headers, body);
    }

    /// No response, or none that is shown.
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
            Shown::Hidden(length) => self.line(&format!("{mark} {length} bytes of a login, not shown")),
            Shown::Bytes(bytes) if !self.bodies => self.line(&format!("{mark} {} bytes", bytes.len())),
            Shown::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => {
                    self.line(&format!("{mark} {} bytes: {}", bytes.len(), self.log.field(text, BODY_MAX)));
                }
                _ => self.line(&format!("{mark} {} bytes that are no text", bytes.len())),
            },
        }
    }

    fn value(&self, name: &str, value: &str) -> String {
        match self.vault.open(value) {
            Some(sealed) => format!("<sealed:{}>", self.log.field(&sealed.name, VALUE_MAX)),
            None if is_credential(name) => HIDDEN.to_owned(),
            None => self.log.field(value, VALUE_MAX),
        }
    }

    fn url(&self, url: &Url) -> String {
        let mut shown = url.clone();
        shown.set_query(None);
        let mut text = shown.to_string();
        let hidden = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if is_credential(name) => format!("{name}={HIDDEN}"),
            _ => pair.to_owned(),
        };
        if let Some(query) = url.query() {
            let pairs: Vec<String> = query.split('&').map(hidden).collect();
            text = format!("{text}?{}", pairs.join("&"));
        }
        self.log.field(&text, URL_MAX)
    }

    fn line(&self, line: &str) {
        {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            if left.told {
                return;
            }
            match left.bytes.checked_sub(line.len() + BEGINNING) {
                Some(bytes) => left.bytes = bytes,
                None => left.told = Check::TraceBounds.on(),
            }
            if left.told {
                let said = format!("no more is shown of this call: {} KiB are enough", TOTAL / 1024);
                return self.log.trace("http_trace", &said);
            }
        }
        self.log.trace("http_trace", line);
    }
}

fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    Check::TraceCredentials.on() && (name.starts_with("proxy-") || CREDENTIALS.iter().any(|part| name.contains(part)))
}
