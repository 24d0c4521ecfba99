//! The event of one request, for logs, audit and `call`. It holds no query, header
//! or secret, and no body except error responses that the guest did not see, redacted.
//!
//! Each fact is recorded as soon as it is known, so that a request which is
//! cancelled is reported as well. Nothing reads an event to make a decision.

use crate::net::addresses::JudgedAddresses;
use crate::net::error::{HttpError, HttpErrorKind};
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;

/// A request of a guest, of a login or for credentials, and its outcome.
#[derive(Clone, Debug)]
pub struct HttpEvent {
    pub method: String,
    /// Origin and path as they are sent, not redacted; empty if the URL is invalid.
    pub target: String,
    /// The operation that the policy allowed or refused, if it is known and has a plain name. The method and the
    /// path of an API with one path do not say what a request does.
    pub operation: Option<String>,
    /// The id of the grant that allowed the request.
    pub grant: Option<String>,
    /// The name of the login that made the request; `None` for requests of a guest.
    pub login: Option<String>,
    /// The name of the credentials that made the request; `None` for all others.
    pub credentials: Option<String>,
    /// The address that responded; otherwise the first one to try, or the refused one.
    pub address: Option<IpAddr>,
    /// An address that the name also resolved to, and that the request may not reach.
    pub refused_address: Option<IpAddr>,
    pub outcome: HttpOutcome,
    /// The check that refused the request or its response, if one did.
    pub check: Option<Check>,
    /// True if any byte of the request may have reached the server.
    pub sent: bool,
    /// The cause of a failure, for operators only: what the server, the network or a library said.
    /// The code that prints it redacts it. Empty if the outcome says everything.
    pub detail: String,
    /// The redacted error response that the guest did not see. Empty if it saw the response.
    pub hidden: String,
    /// What would allow a request that was denied, for operators only. Empty otherwise.
    pub hint: String,
    /// Names of the sealed values that the request held.
    pub seals: Vec<String>,
    /// Name of the secret because of which the response was withheld.
    pub leaked: Option<String>,
    /// The numbers of an upload in blocks; `None` for a single request.
    pub blocks: Option<BlockCounts>,
    /// The bytes of bodies as the guest wrote them, without the secrets in slots. Of a login, both
    /// numbers are rounded up, because their bodies are mostly secrets.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub elapsed: Duration,
}

/// Returns a request as operators read it, such as `POST https://api.test/ CreateServer`.
pub(super) fn request_text(method: &str, target: &str, operation: Option<&str>) -> String {
    let operation = operation.map(|name| format!(" {name}")).unwrap_or_default();
    format!("{method} {target}{operation}")
}

impl HttpEvent {
    /// Returns the request as operators read it.
    pub(super) fn request(&self) -> String {
        request_text(&self.method, &self.target, self.operation.as_deref())
    }

    /// Records what was decided about the addresses. Returns those that may be connected to.
    pub(super) fn record_addresses(&mut self, judged: JudgedAddresses) -> Result<Vec<IpAddr>, HttpError> {
        let JudgedAddresses { address, denied, allowed } = judged;
        (self.address, self.refused_address) = (address, denied);
        allowed
    }

    /// Sets the outcome of the request: the status of its response, or why there is none.
    pub(super) fn conclude(&mut self, result: Result<u16, &HttpError>) {
        match result {
            Ok(status) => {
                self.outcome = HttpOutcome::Status(status);
                self.sent = true;
            }
            Err(error) => {
                self.outcome = HttpOutcome::Failed(error.kind);
                self.check = error.check;
                self.sent = error.sent;
                self.detail.clone_from(&error.detail);
                self.hint = error.hint.clone().unwrap_or_default();
            }
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpOutcome {
    /// The status of the response, of an upload in blocks that of the last block.
    Status(u16),
    /// An upload succeeded without a request, because all blocks were left out.
    NothingToSend,
    /// There is no response, or the guest does not get it.
    Failed(HttpErrorKind),
}

/// The numbers of an upload in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    pub sent: u64,
    /// Blocks of zeros that were left out.
    pub skipped: u64,
    /// Attempts to send a block after its first one.
    pub repeated: u64,
}

impl fmt::Display for HttpEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.request())?;
        match &self.outcome {
            HttpOutcome::NothingToSend => f.write_str("nothing to send")?,
            HttpOutcome::Status(status) => write!(f, "{status}")?,
            HttpOutcome::Failed(kind) => write!(f, "{kind}")?,
        }
        if let Some(check) = self.check {
            write!(f, " [{check}]")?;
        }
        match (&self.grant, &self.login, &self.credentials) {
            (Some(grant), ..) => write!(f, " ({grant}; ")?,
            (None, Some(login), _) => write!(f, " (login {login}; ")?,
            (None, None, Some(name)) => write!(f, " (credentials {name}; ")?,
            (None, None, None) => f.write_str(" (no grant; ")?,
        }
        if let Some(blocks) = &self.blocks {
            write!(f, "{} blocks sent, {} skipped, {} repeated; ", blocks.sent, blocks.skipped, blocks.repeated)?;
        }
        let ms = self.elapsed.as_secs_f64() * 1000.0;
        write!(f, "{} B out, {} B in, {ms:.1} ms)", self.bytes_sent, self.bytes_received)?;
        let said = if self.detail.is_empty() { &self.hidden } else { &self.detail };
        for more in [said, &self.hint] {
            if !more.is_empty() {
                write!(f, ": {more}")?;
            }
        }
        Ok(())
    }
}

/// Passes an event on to the log and the audit.
pub(super) type ReportEvent<'a> = &'a (dyn Fn(&HttpEvent) + Sync);

/// The event of a request that is being processed. It is reported when this is dropped.
pub(super) struct PendingEvent<'a> {
    pub event: HttpEvent,
    started: Instant,
    report: ReportEvent<'a>,
}

impl HttpEvent {
    /// Returns the event of a request of which nothing is known yet.
    pub(super) fn new() -> Self {
        HttpEvent {
            method: String::new(),
            target: String::new(),
            operation: None,
            grant: None,
            login: None,
            credentials: None,
            address: None,
            refused_address: None,
            outcome: HttpOutcome::Failed(HttpErrorKind::Cancelled),
            check: None,
            sent: false,
            detail: String::new(),
            hidden: String::new(),
            hint: String::new(),
            seals: Vec::new(),
            leaked: None,
            blocks: None,
            bytes_sent: 0,
            bytes_received: 0,
            elapsed: Duration::ZERO,
        }
    }
}

impl<'a> PendingEvent<'a> {
    pub(super) fn new(report: ReportEvent<'a>) -> Self {
        PendingEvent { event: HttpEvent::new(), started: Instant::now(), report }
    }
}

impl Drop for PendingEvent<'_> {
    fn drop(&mut self) {
        self.event.elapsed = self.started.elapsed();
        (self.report)(&self.event);
    }
}
