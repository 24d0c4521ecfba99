//! The audit log: one JSON line per use of a capability, per denial, per doubt
//! about the cache, and one per call. README.md has the schema, and a test
//! holds every line to it.
//!
//! Lines are written when it happens, so that a kill loses nothing that was
//! used. By type they hold no body, query, header value or secret. Whatever is
//! wrong with the file is a warning and never fails a call. The file is opened
//! before the guest's code runs; after that this module only writes to it.

mod config;
mod file;
mod line;
mod time;

#[cfg(test)]
mod tests;

pub use config::AuditConfig;

use crate::component::cache::Description;
use crate::component::prepared::CacheEvent;
use crate::component::source::hex;
use crate::config::Config;
use crate::failure::{Failure, Who};
use crate::holes::Check;
use crate::host::{Counts, Ended, HostCall};
use crate::log::{Level, Log};
use crate::net::error::HttpErrorKind;
use crate::net::gate::{HttpEvent, NetUsage};
use crate::policy::DenialReason;
use crate::rpc::request::Request;
use crate::rpc::response::WireError;
use crate::sandbox::limits::Usage;
use crate::signals;
use file::LogFile;
use line::Line;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

/// Of the schema; grows when a field changes its meaning.
const VERSION: u64 = 1;

/// Names of whoever: identities, grants, logins.
const NAME_MAX: usize = 64;
const TARGET_MAX: usize = 512;
const WHY_MAX: usize = 512;
const SEALS_MAX: usize = 8;

/// Lines of one capability in a call, so that a guest cannot fill the disk. Of
/// requests there are as many as `http_requests` allows, and some.
const LINES_MAX: u64 = 10_000;

/// Writes nothing if the config has no `audit`, or its file cannot be used.
pub struct Audit(Option<Writer>);

struct Writer {
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
    /// Lines so far, by capability.
    lines: HashMap<&'static str, u64>,
    /// Lines that were not written.
    dropped: u64,
    warned: bool,
}

/// Who calls what.
#[derive(Default)]
struct Caller {
    method: Option<String>,
    request_id: Option<String>,
    director_uuid: Option<String>,
    /// The pin of the guest.
    sha256: Option<String>,
    /// The limit `http_requests`.
    requests: u64,
}

/// What a guest took.
pub struct Used {
    pub usage: Usage,
    pub network: NetUsage,
    pub counts: Counts,
    /// What the process was locked down to.
    pub hardening: String,
}

/// How a call failed: with what the caller got, and whose fault it is.
pub struct Failed {
    pub error: &'static str,
    pub who: Who,
}

impl From<&Failure> for Failed {
    fn from(failure: &Failure) -> Self {
        Failed { error: WireError::from(failure).kind.name(), who: failure.who }
    }
}

impl Audit {
    pub fn off() -> Audit {
        Audit(None)
    }

    /// `config` and `request` are as far as they are known.
    pub fn open(
        section: Option<&AuditConfig>,
        config: Option<&Config>,
        request: Option<&Request>,
        log: &Arc<Log>,
    ) -> Audit {
        let Some(section) = section else { return Audit::off() };
        let caller = Caller {
            method: request.map(|request| request.method.clone()),
            request_id: request.and_then(|request| request.request_id.clone()),
            director_uuid: request.and_then(|request| request.director_uuid.clone()),
            sha256: config.map(|config| config.guest.sha256.clone()),
            requests: config.map_or(0, |config| config.limits.http_requests),
        };
        signals::survive_full_files();
        match LogFile::open(section) {
            Ok((file, trouble)) => {
                if let Some(trouble) = trouble {
                    log.write(Level::Warn, &format!("audit: {}: {trouble}", section.path.display()));
                }
                let state = Mutex::new(State { caller, ..State::default() });
                Audit(Some(Writer { file, log: Arc::clone(log), call: call_id(), started: Instant::now(), state }))
            }
            Err(what) => {
                log.write(Level::Warn, &format!("audit: {what}; this call is not in the audit log"));
                Audit::off()
            }
        }
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Who the guest says it is: in every line from here on.
    pub fn guest(&self, description: &Description) {
        if let Some(writer) = &self.0 {
            writer.state().guest = Some((description.name.clone(), description.version.clone()));
        }
    }

    pub fn http(&self, event: &HttpEvent) {
        let Some(writer) = &self.0 else { return };
        let capability = if event.login.is_some() { "login" } else { "http" };
        if !writer.has_room(capability) {
            return;
        }
        let kind = match event.outcome {
            Err(HttpErrorKind::Denied(DenialReason::Leak)) => "leak",
            Err(HttpErrorKind::Denied(_)) => "denied",
            Err(HttpErrorKind::InvalidRequest | HttpErrorKind::Limit(_)) if !event.sent => "denied",
            _ => "use",
        };
        let mut line = writer.line(kind);
        line.word("capability", capability);
        line.text("operation", &event.method, NAME_MAX).text("target", &event.target, TARGET_MAX);
        line.text("grant", event.grant.as_deref().unwrap_or_default(), NAME_MAX);
        line.text("login", event.login.as_deref().unwrap_or_default(), NAME_MAX);
        if let Some(address) = event.address {
            line.word("address", address.to_string());
        }
        match event.outcome {
            Ok(status) => line.number("status", status.into()),
            Err(HttpErrorKind::Denied(reason)) => line.word("reason", reason.to_string()),
            Err(error) => line.word(if kind == "denied" { "reason" } else { "error" }, error.to_string()),
        };
        line.text("secret", event.leaked.as_deref().unwrap_or_default(), NAME_MAX);
        line.texts("seals", &event.seals, SEALS_MAX, NAME_MAX);
        line.flag("sent", event.sent);
        line.number("sent_bytes", event.bytes_sent).number("received_bytes", event.bytes_received);
        line.number("ms", ms(event.elapsed));
        writer.write(line);
    }

    /// What only reads the clock and the like is left to the call's line.
    pub fn host(&self, call: &HostCall<'_>) {
        let Some(writer) = &self.0 else { return };
        let (interface, operation) = call.name.split_once('.').unwrap_or((call.name, ""));
        let capability = match interface {
            "http" => "session",
            "agent" => "agent",
            "registry" => "registry",
            "image" => "image",
            _ => return,
        };
        if !writer.has_room(capability) {
            return;
        }
        let leak = DenialReason::Leak.to_string();
        let mut line = match &call.ended {
            Ended::Refused(reason) if *reason == leak => writer.line("leak"),
            Ended::Refused(_) => writer.line("denied"),
            Ended::Well | Ended::Failed(_) => writer.line("use"),
        };
        line.word("capability", capability).word("operation", operation);
        match capability {
            "session" => line.text("login", call.target, NAME_MAX),
            _ => line.text("target", call.target, TARGET_MAX),
        };
        match &call.ended {
            Ended::Well => {}
            Ended::Refused(reason) => drop(line.word("reason", reason.as_ref())),
            Ended::Failed(error) => drop(line.word("error", error.as_ref())),
        }
        line.number("bytes", call.bytes as u64).number("ms", ms(call.elapsed));
        writer.write(line);
    }

    pub fn cache(&self, event: &CacheEvent) {
        let Some(writer) = &self.0 else { return };
        let mut line = writer.line("cache");
        line.word("event", event.word()).text("why", &event.to_string(), WHY_MAX);
        writer.write(line);
    }

    /// The call's own line, the last one. `used` is absent if no guest ran.
    pub fn conclude(&self, outcome: Result<(), Failed>, used: Option<&Used>) {
        let Some(writer) = &self.0 else { return };
        let mut line = writer.line("call");
        match outcome {
            Ok(()) => drop(line.word("outcome", "ok")),
            Err(Failed { error, who }) => {
                line.word("outcome", "error").word("error", error).word("who", who.to_string());
            }
        }
        line.number("wall_ms", ms(writer.started.elapsed()));
        if let Some(Used { usage, network, counts, hardening }) = used {
            line.number("cpu_ms", ms(usage.cpu)).number("memory_bytes", usage.peak_memory);
            line.number("requests", network.requests);
            line.number("sent_bytes", network.bytes_sent).number("received_bytes", network.bytes_received);
            line.number("host_calls", usage.host_calls);
            line.number("config_calls", counts.config).number("log_calls", counts.log);
            line.number("clock_calls", counts.clock).number("random_calls", counts.random);
            line.text("hardening", hardening, WHY_MAX);
        }
        let dropped = writer.state().dropped;
        if dropped > 0 {
            line.number("dropped", dropped);
        }
        writer.write(line);
        if writer.file.is_gone() {
            writer.warn("the file was put aside so often during the call that it is kept no more");
        }
    }
}

impl Writer {
    /// The fields that all lines have.
    fn line(&self, kind: &str) -> Line<'_> {
        let state = self.state();
        let mut line = Line::new(&self.log);
        line.number("v", VERSION).word("ts", time::rfc3339(SystemTime::now()));
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
    fn has_room(&self, capability: &'static str) -> bool {
        let mut state = self.state();
        let most = LINES_MAX + if capability == "http" { state.caller.requests } else { 0 };
        let lines = state.lines.entry(capability).or_default();
        *lines += 1;
        let room = *lines <= most || !Check::AuditLines.on();
        state.dropped += u64::from(!room);
        room
    }

    fn write(&self, line: Line<'_>) {
        if let Err(what) = self.file.append(&line.finish()) {
            self.state().dropped += 1;
            self.warn(&format!("{what}; lines of this call are missing in the audit log"));
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

fn ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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
