//! Writes the lines of one call to the file. It adds the fields that all lines have, limits the
//! number of lines, and logs one warning if writing fails.

use super::NAME_MAX;
use super::file::{AuditFileError, LogFile};
use super::line::Line;
use crate::component::digest::hex;
use crate::config::AuditConfig;
use crate::log::{Level, Log};
use crate::signals;
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use wasm_cpi_checks::Check;

/// The version of the schema. It grows when a field changes its meaning.
const VERSION: u64 = 1;

/// The most lines of one operation in a call, so that a guest cannot fill the disk. HTTP requests
/// get `http_requests` lines in addition.
const LINES_MAX: u64 = 10_000;

/// The open audit log of one call.
pub(super) struct Writer {
    file: LogFile,
    log: Arc<Log>,
    /// The ID of the call, which all its lines have.
    call: String,
    started: Instant,
    state: Mutex<WriterState>,
}

#[derive(Default)]
struct WriterState {
    fields: CallFields,
    /// The limit `http_requests`.
    http_requests: u64,
    guest: Option<(String, String)>,
    /// The number of lines so far, by operation.
    lines: HashMap<String, u64>,
    /// The number of lines that were not written.
    dropped: u64,
    warned: bool,
}

/// The fields that every line of the call has, as far as they are known.
#[derive(Default)]
pub(super) struct CallFields {
    pub(super) method: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) director_uuid: Option<String>,
    /// The pin of the guest.
    pub(super) sha256: Option<String>,
}

impl Writer {
    /// Opens the file, or returns the reason why it cannot be used.
    pub(super) fn open(config: &AuditConfig, fields: CallFields, log: &Arc<Log>) -> Result<Writer, AuditFileError> {
        signals::ignore_file_size_signal();
        let (file, warning) = LogFile::open(config)?;
        if let Some(warning) = warning {
            log.write(Level::Warn, &format!("audit: {}: {warning}", config.path.display()));
        }
        let state = Mutex::new(WriterState { fields, ..WriterState::default() });
        Ok(Writer { file, log: Arc::clone(log), call: call_id(), started: Instant::now(), state })
    }

    pub(super) fn set_pin(&self, sha256: &str) {
        self.state().fields.sha256 = Some(sha256.to_owned());
    }

    pub(super) fn set_http_request_limit(&self, http_requests: u64) {
        self.state().http_requests = http_requests;
    }

    pub(super) fn set_guest(&self, name: &str, version: &str) {
        self.state().guest = Some((name.to_owned(), version.to_owned()));
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns a line with the fields that all lines have.
    pub(super) fn line(&self, kind: &str) -> Line<'_> {
        let state = self.state();
        let mut line = Line::new(&self.log);
        line.number("v", VERSION).own_text("ts", format!("{:.3}", Timestamp::now()));
        line.own_text("call", self.call.as_str()).own_text("kind", kind);
        let CallFields { method, request_id, director_uuid, sha256 } = &state.fields;
        for (name, text) in [("method", method), ("request_id", request_id), ("director_uuid", director_uuid)] {
            line.text(name, text.as_deref().unwrap_or_default(), NAME_MAX);
        }
        if let Some((name, version)) = &state.guest {
            line.text("guest_name", name, NAME_MAX).text("guest_version", version, NAME_MAX);
        }
        if let Some(sha256) = sha256 {
            line.own_text("guest_sha256", sha256.as_str());
        }
        line
    }

    /// Counts a line. Returns false if it is one too many, and must not be written.
    pub(super) fn count_line(&self, operation: &str) -> bool {
        let mut state = self.state();
        let most = LINES_MAX + if operation == "http" { state.http_requests } else { 0 };
        let lines = state.lines.entry(operation.to_owned()).or_default();
        *lines += 1;
        let is_allowed = Check::AuditLines.accepts(*lines <= most);
        state.dropped += u64::from(!is_allowed);
        is_allowed
    }

    pub(super) fn write(&self, line: Line<'_>) {
        if let Err(error) = self.file.append(&line.finish()) {
            self.state().dropped += 1;
            self.warn(&format!("{error}; lines of this call are missing from the audit log"));
        }
    }

    /// Writes the last line, with the number of lines that were not written.
    pub(super) fn write_last(&self, mut line: Line<'_>) {
        let dropped = self.state().dropped;
        if dropped > 0 {
            line.number("dropped", dropped);
        }
        self.write(line);
        if self.file.is_deleted() {
            self.warn("the file was rotated so often during the call that it was deleted; raise `audit.max_bytes`");
        }
    }

    /// Logs a warning, at most once in a call.
    fn warn(&self, what: &str) {
        if !std::mem::replace(&mut self.state().warned, true) {
            self.log.write(Level::Warn, &format!("audit: {what}"));
        }
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a random ID, or one of time and process ID if no random numbers are available.
fn call_id() -> String {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        bytes[..4].copy_from_slice(&now.subsec_nanos().to_le_bytes());
        bytes[4..].copy_from_slice(&std::process::id().to_le_bytes());
    }
    hex(&bytes)
}
