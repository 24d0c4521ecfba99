//! One request for logs, audit and `call`: no query, no header, no body, no
//! secret.
//!
//! What becomes known on the way is noted at once, so that a request which
//! nobody waits for any more is told of as well.

use crate::net::error::HttpErrorKind;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct HttpEvent {
    pub method: String,
    /// Origin and path; empty if the URL was none.
    pub target: String,
    /// The grant that allowed it.
    pub grant: Option<String>,
    /// The login whose request it is, instead of a guest's.
    pub login: Option<String>,
    /// Which answered; else the first to be tried, or the one that was refused.
    pub address: Option<IpAddr>,
    pub outcome: Result<u16, HttpErrorKind>,
    /// Whether any byte of it may have reached the server.
    pub sent: bool,
    /// Of a login that failed: what only the operator is told, as its place comes
    /// from properties that the guest may not see.
    pub why: String,
    /// Names of the sealed values that were put into it.
    pub seals: Vec<String>,
    /// Name of the secret for which the answer was withheld.
    pub leaked: Option<String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub elapsed: Duration,
}

impl fmt::Display for HttpEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.method, self.target)?;
        match &self.outcome {
            Ok(status) => write!(f, "{status}")?,
            Err(kind) => write!(f, "{kind}")?,
        }
        match (&self.grant, &self.login) {
            (Some(grant), _) => write!(f, " ({grant}; ")?,
            (None, Some(login)) => write!(f, " (login {login}; ")?,
            (None, None) => f.write_str(" (no grant; ")?,
        }
        let ms = self.elapsed.as_secs_f64() * 1000.0;
        write!(f, "{} B out, {} B in, {ms:.1} ms)", self.bytes_sent, self.bytes_received)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

pub(super) type Tell<'a> = &'a (dyn Fn(&HttpEvent) + Sync);

/// A request on its way: told of when this is dropped, however that comes.
pub(super) struct Underway<'a> {
    pub event: HttpEvent,
    started: Instant,
    tell: Tell<'a>,
}

impl<'a> Underway<'a> {
    pub(super) fn new(tell: Tell<'a>) -> Self {
        let event = HttpEvent {
            method: String::new(),
            target: String::new(),
            grant: None,
            login: None,
            address: None,
            outcome: Err(HttpErrorKind::Cancelled),
            sent: false,
            why: String::new(),
            seals: Vec::new(),
            leaked: None,
            bytes_sent: 0,
            bytes_received: 0,
            elapsed: Duration::ZERO,
        };
        Underway { event, started: Instant::now(), tell }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.event.elapsed = self.started.elapsed();
        (self.tell)(&self.event);
    }
}
