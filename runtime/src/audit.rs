//! The audit log: one JSON line per use of a capability, per denial, per doubt
//! about the cache, and one per call. SECURITY.md has the schema, and a test
//! holds every line to it.
//!
//! Lines are written when it happens, so that a kill loses nothing that was
//! used. By type they hold no body, query, header value or secret. Whatever is
//! wrong with the file is a warning and never fails a call. The file is opened
//! before the guest's code runs; after that this module only writes to it.

mod file;
mod line;
mod writer;

#[cfg(test)]
mod tests;

use crate::component::description::Description;
use crate::component::prepared::CacheEvent;
use crate::config::AuditConfig;
use crate::failure::{Failure, Who};
use crate::host::{Counts, Ended, HostCall};
use crate::log::{Level, Log};
use crate::net::error::HttpErrorKind;
use crate::net::gate::{HttpEvent, NetUsage};
use crate::rpc::request::Request;
use crate::rpc::response::WireError;
use crate::sandbox::meter::Usage;
use std::sync::Arc;
use std::time::Duration;
use wasm_cpi_policy::DenialReason;
use writer::{Caller, Writer};

/// Names of whoever: identities, grants, logins.
const NAME_MAX: usize = 64;
const TARGET_MAX: usize = 512;
const WHY_MAX: usize = 512;
/// Room for the ports of any policy that is written by hand.
const HARDENING_MAX: usize = 1024;
const SEALS_MAX: usize = 8;

/// Writes nothing if the config has no `audit`, or its file cannot be used.
pub struct Audit(Option<Writer>);

/// What a guest used.
pub struct Used {
    /// Since the call's clock started.
    pub wall: Duration,
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

    /// Starts the audit log of a call; `request` is absent if it could not be read.
    pub fn open(section: Option<&AuditConfig>, request: Option<&Request>, log: &Arc<Log>) -> Audit {
        let Some(section) = section else { return Audit::off() };
        let caller = Caller {
            method: request.map(|request| request.method.clone()),
            request_id: request.and_then(|request| request.request_id.clone()),
            director_uuid: request.and_then(|request| request.director_uuid.clone()),
            ..Caller::default()
        };
        match Writer::open(section, caller, log) {
            Ok(writer) => Audit(Some(writer)),
            Err(what) => {
                log.write(Level::Warn, &format!("audit: {what}; this call is not in the audit log"));
                Audit::off()
            }
        }
    }

    /// For `check`: why lines could not be written there.
    pub fn doubts(section: &AuditConfig) -> Option<String> {
        file::doubts(&section.path).map(|error| error.to_string())
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Takes note of the guest's pin: it is in every line from here on.
    pub fn pinned(&self, sha256: &str) {
        if let Some(writer) = &self.0 {
            writer.pinned(sha256);
        }
    }

    /// Takes note of the limit `http_requests`: so many more lines are expected.
    pub fn expect_requests(&self, http_requests: u64) {
        if let Some(writer) = &self.0 {
            writer.expect_requests(http_requests);
        }
    }

    /// Who the guest says it is: in every line from here on.
    pub fn guest(&self, description: &Description) {
        if let Some(writer) = &self.0 {
            writer.guest(&description.name, &description.version);
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
        // What is done often must not hide what is done once.
        if !writer.has_room(call.name) {
            return;
        }
        let mut line = match &call.ended {
            Ended::Denied(DenialReason::Leak) => writer.line("leak"),
            Ended::Denied(_) | Ended::Refused(_) => writer.line("denied"),
            Ended::Well | Ended::Failed(_) => writer.line("use"),
        };
        line.word("capability", capability).word("operation", operation);
        match capability {
            "session" => line.text("login", call.target, NAME_MAX),
            _ => line.text("target", call.target, TARGET_MAX),
        };
        match &call.ended {
            Ended::Well => {}
            Ended::Denied(reason) => drop(line.word("reason", reason.to_string())),
            Ended::Refused(reason) => drop(line.word("reason", reason.as_ref())),
            Ended::Failed(error) => drop(line.word("error", error.as_ref())),
        }
        line.number("bytes", call.bytes as u64).number("ms", ms(call.elapsed));
        writer.write(line);
    }

    /// The guest's result held a secret and was withheld.
    pub fn result_leak(&self, secret: &str) {
        let Some(writer) = &self.0 else { return };
        let mut line = writer.line("leak");
        line.word("capability", "result").word("reason", DenialReason::Leak.to_string());
        line.text("secret", secret, NAME_MAX);
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
        line.number("wall_ms", ms(writer.elapsed()));
        if let Some(Used { usage, network, counts, hardening, .. }) = used {
            line.number("cpu_ms", ms(usage.cpu)).number("memory_bytes", usage.peak_memory);
            line.number("requests", network.requests);
            line.number("sent_bytes", network.bytes_sent).number("received_bytes", network.bytes_received);
            line.number("host_calls", usage.host_calls);
            line.number("config_calls", counts.config).number("log_calls", counts.log);
            line.number("clock_calls", counts.clock).number("random_calls", counts.random);
            line.text("hardening", hardening, HARDENING_MAX);
        }
        writer.write_last(line);
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
