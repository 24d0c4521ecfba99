//! Puts the lines of one call into the file: with the fields that all of them
//! have, within the bounds of a call, and with one warning if that fails.

use super::NAME_MAX;
use super::file::{AuditFileError, LogFile};
use super::line::Line;
use crate::component::source::hex;
use crate::config::AuditConfig;
use crate::log::{Level, Log};
use crate::signals;
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use wasm_cpi_checks::Check;

/// Of the schema; grows when a field changes its meaning.
const VERSION: u64 = 1;

/// Lines of one operation in a call, so that a guest cannot fill the disk. Of
/// requests there are as many as `http_requests` allows, and some.
const LINES_MAX: u64 = 10_000;

pub(super) struct Writer {
    file: LogFile,
    log: Arc<Log>,
    /// Tells the lines of one call from those of another.
    call: String,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    caller: Caller,
    guest: Option<(String, String)>,
    /// Lines so far, by what they are about.
    lines: HashMap<String, u64>,
    /// Lines that were not written.
    dropped: u64,
    warned: bool,
}

/// Who calls what.
#[derive(Default)]
pub(super) struct Caller {
    pub(super) method: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) director_uuid: Option<String>,
    /// The pin of the guest.
    pub(super) sha256: Option<String>,
    /// The limit `http_requests`.
    pub(super) requests: u64,
}

impl Writer {
    /// Opens the file, or says why it cannot be used.
    pub(super) fn open(config: &AuditConfig, caller: Caller, log: &Arc<Log>) -> Result<Writer, AuditFileError> {
        signals::survive_full_files();
        let (file, trouble) = LogFile::open(config)?;
        if let Some(trouble) = trouble {
            log.write(Level::Warn, &format!("audit: {}: {trouble}", config.path.display()));
        }
        let state = Mutex::new(State { caller, ..State::default() });
        Ok(Writer { file, log: Arc::clone(log), call: call_id(), started: Instant::now(), state })
    }

    pub(super) fn pinned(&self, sha256: &str) {
        self.state().caller.sha256 = Some(sha256.to_owned());
    }

    pub(super) fn expect_requests(&self, http_requests: u64) {
        self.state().caller.requests = http_requests;
    }

    pub(super) fn guest(&self, name: &str, version: &str) {
        self.state().guest = Some((name.to_owned(), version.to_owned()));
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The fields that all lines have.
    pub(super) fn line(&self, kind: &str) -> Line<'_> {
        let state = self.state();
        let mut line = Line::new(&self.log);
        line.number("v", VERSION).word("ts", format!("{:.3}", Timestamp::now()));
        line.word("call", self.call.as_str()).word("kind", kind);
        let Caller { method, request_id, director_uuid, sha256, .. } = &state.caller;
        for (name, text) in [("method", method), ("request_id", request_id), ("director_uuid", director_uuid)] {
            line.text(name, text.as_deref().unwrap_or_default(), NAME_MAX);
        }
        if let Some((name, version)) = &state.guest {
            line.text("guest_name", name, NAME_MAX).text("guest_version", version, NAME_MAX);
        }
        if let Some(sha256) = sha256 {
            line.word("guest_sha256", sha256.as_str());
        }
        line
    }

    /// Counts a line, and says whether it is one too many.
    pub(super) fn has_room(&self, operation: &str) -> bool {
        let mut state = self.state();
        let most = LINES_MAX + if operation == "http" { state.caller.requests } else { 0 };
        let lines = state.lines.entry(operation.to_owned()).or_default();
        *lines += 1;
        let room = *lines <= most || !Check::AuditLines.on();
        state.dropped += u64::from(!room);
        room
    }

    pub(super) fn write(&self, line: Line<'_>) {
        if let Err(error) = self.file.append(&line.finish()) {
            self.state().dropped += 1;
            self.warn(&format!("{error}; lines of this call are missing in the audit log"));
        }
    }

    /// With what became of the others.
    pub(super) fn write_last(&self, mut line: Line<'_>) {
        let dropped = self.state().dropped;
        if dropped > 0 {
            line.number("dropped", dropped);
        }
        self.write(line);
        if self.file.is_gone() {
            self.warn("the file was put aside so often during the call that it is kept no more");
        }
    }

    /// Once in a call.
    fn warn(&self, what: &str) {
        if !std::mem::replace(&mut self.state().warned, true) {
            self.log.write(Level::Warn, &format!("audit: {what}"));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Random; where there is no randomness, the process and the time tell calls
/// apart as well.
fn call_id() -> String {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        bytes[..4].copy_from_slice(&now.subsec_nanos().to_le_bytes());
        bytes[4..].copy_from_slice(&std::process::id().to_le_bytes());
    }
    hex(&bytes)
}
