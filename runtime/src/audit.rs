//! The audit log: one JSON line for each use of a capability, each denial, each problem with the
//! cache, and each call. SECURITY.md has the schema, and a test compares every line with it.
//!
//! A line is written when its event happens, so that a kill loses no event. The types of its fields
//! exclude bodies, queries, header values and secrets. A problem with the file is a warning, and
//! never fails a call. The file is opened before the guest's code runs; after that this module only
//! writes to it.

mod file;
mod line;
mod writer;

#[cfg(test)]
mod tests;

use crate::component::cache::CacheEvent;
use crate::component::description::GuestDescription;
use crate::config::AuditConfig;
use crate::failure::{Failure, Problem, Who};
use crate::host::{HostCall, HostCallCounts, HostCallOutcome};
use crate::limits::NamedLimit;
use crate::log::{Level, Log};
use crate::net::error::HttpErrorKind;
use crate::net::gate::{HttpCounts, HttpEvent, HttpOutcome};
use crate::rpc::request::Request;
use crate::rpc::response::WireError;
use crate::sandbox::meter::MeterReading;
use std::sync::Arc;
use std::time::Duration;
use wasm_cpi_checks::{Check, with_code};
use wasm_cpi_policy::DenialReason;
use writer::{CallFields, Writer};

/// The longest name: of identities, grants and logins.
const NAME_MAX: usize = 64;
const TARGET_MAX: usize = 512;
const WHY_MAX: usize = 512;
/// Enough for the ports of any policy that is written by hand.
const HARDENING_MAX: usize = 1024;
const SEALS_MAX: usize = 8;

/// The audit log of one call. It writes nothing if the config has no `audit`, or if the file cannot
/// be used.
pub struct Audit(Option<Writer>);

/// The resources that a guest used.
pub struct Used {
    /// The time since the call's clock started, for `wasm-cpi call`.
    pub wall: Duration,
    pub wall_limit: NamedLimit,
    pub usage: MeterReading,
    pub network: HttpCounts,
    pub counts: HostCallCounts,
    /// The mechanisms of the lock-down that were in effect.
    pub hardening: String,
}

/// What is recorded about a call whose response the caller did not get.
pub struct Undelivered<'a> {
    /// The cloud ID of what the call created, if it created something.
    pub created: Option<&'a str>,
    /// What became of it.
    pub undo: Option<&'static str>,
}

/// The failure of a call: the error that the caller got, and who failed.
pub struct CallFailure {
    pub error: &'static str,
    pub who: Who,
    /// The check that refused, if one did.
    pub check: Option<Check>,
}

impl From<&Failure> for CallFailure {
    fn from(failure: &Failure) -> Self {
        CallFailure { error: WireError::from(failure).kind.name(), who: failure.who, check: failure.check }
    }
}

impl Audit {
    /// Returns an audit log that writes nothing.
    pub fn off() -> Audit {
        Audit(None)
    }

    /// Starts the audit log of a call. `request` is `None` if it could not be parsed.
    pub fn open(section: Option<&AuditConfig>, request: Option<&Request>, log: &Arc<Log>) -> Audit {
        let Some(section) = section else { return Audit::off() };
        let fields = CallFields {
            method: request.map(|request| request.method.clone()),
            request_id: request.and_then(|request| request.request_id.clone()),
            director_uuid: request.and_then(|request| request.director_uuid.clone()),
            ..CallFields::default()
        };
        match Writer::open(section, fields, log) {
            Ok(writer) => Audit(Some(writer)),
            Err(error) => {
                let what = format!("audit: {error}; this call is not in the audit log");
                log.write(Level::Warn, &with_code(&what, error.check()));
                Audit::off()
            }
        }
    }

    /// Returns the reason why lines could not be written, for `check`.
    pub fn find_problem(section: &AuditConfig) -> Option<Problem> {
        let error = file::find_problem(&section.path)?;
        Some(Problem {
            text: format!("audit: {error}; calls are not audited until this is fixed"),
            check: error.check(),
        })
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Sets the guest's pin, which is in every line from now on.
    pub fn set_pin(&self, sha256: &str) {
        if let Some(writer) = &self.0 {
            writer.set_pin(sha256);
        }
    }

    /// Sets `http_requests` of the config, so that each request can have a line beside the fixed number
    /// of lines.
    pub fn set_http_request_limit(&self, http_requests: u64) {
        if let Some(writer) = &self.0 {
            writer.set_http_request_limit(http_requests);
        }
    }

    /// Sets the name and version of the guest, which are in every line from now on.
    pub fn set_guest(&self, description: &GuestDescription) {
        if let Some(writer) = &self.0 {
            writer.set_guest(&description.name, &description.version);
        }
    }

    /// Writes the line of one HTTP request.
    pub fn http(&self, event: &HttpEvent) {
        let Some(writer) = &self.0 else { return };
        let capability = match (&event.login, &event.credentials) {
            (Some(_), _) => "login",
            (None, Some(_)) => "credentials",
            (None, None) => "http",
        };
        if !writer.count_line(capability) {
            return;
        }
        let kind = match event.outcome {
            HttpOutcome::Failed(HttpErrorKind::Denied(DenialReason::Leak)) => "leak",
            HttpOutcome::Failed(HttpErrorKind::Denied(_)) => "denied",
            HttpOutcome::Failed(HttpErrorKind::InvalidRequest | HttpErrorKind::Limit(_)) if !event.sent => "denied",
            _ => "use",
        };
        let mut line = writer.line(kind);
        line.own_text("capability", capability);
        line.text("operation", &event.method, NAME_MAX).text("target", &event.target, TARGET_MAX);
        line.text("api_operation", event.operation.as_deref().unwrap_or_default(), NAME_MAX);
        line.text("grant", event.grant.as_deref().unwrap_or_default(), NAME_MAX);
        line.text("login", event.login.as_deref().unwrap_or_default(), NAME_MAX);
        line.text("credentials", event.credentials.as_deref().unwrap_or_default(), NAME_MAX);
        if let Some(address) = event.address {
            line.own_text("address", address.to_string());
        }
        if let Some(refused) = event.refused_address {
            line.own_text("refused_address", refused.to_string());
        }
        match event.outcome {
            HttpOutcome::NothingToSend => &mut line,
            HttpOutcome::Status(status) => line.number("status", status.into()),
            HttpOutcome::Failed(HttpErrorKind::Denied(reason)) => line.own_text("reason", reason.to_string()),
            HttpOutcome::Failed(error) => {
                line.own_text(if kind == "denied" { "reason" } else { "error" }, error.to_string())
            }
        };
        line.code(event.check);
        line.text("secret", event.leaked.as_deref().unwrap_or_default(), NAME_MAX);
        line.texts("seals", &event.seals, SEALS_MAX, NAME_MAX);
        line.flag("sent", event.sent);
        if let Some(blocks) = &event.blocks {
            line.number("blocks", blocks.sent).number("blocks_skipped", blocks.skipped);
            line.number("blocks_repeated", blocks.repeated);
        }
        line.number("sent_bytes", event.bytes_sent).number("received_bytes", event.bytes_received);
        line.number("ms", ms(event.elapsed));
        writer.write(line);
    }

    /// Writes the line of one host call. Calls that reach nothing outside of the sandbox, such as
    /// reading the clock, are only counted in the line of the call.
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
        // Each operation has its own count, so that a frequent one cannot displace a rare one.
        if !writer.count_line(call.name) {
            return;
        }
        let mut line = match &call.outcome {
            HostCallOutcome::Denied(DenialReason::Leak) => writer.line("leak"),
            HostCallOutcome::Denied(_) | HostCallOutcome::Refused(_) => writer.line("denied"),
            HostCallOutcome::Succeeded | HostCallOutcome::Failed(_) => writer.line("use"),
        };
        line.own_text("capability", capability).own_text("operation", operation);
        match capability {
            "session" => line.text("login", call.target, NAME_MAX),
            _ => line.text("target", call.target, TARGET_MAX),
        };
        match &call.outcome {
            HostCallOutcome::Succeeded => {}
            HostCallOutcome::Denied(reason) => drop(line.own_text("reason", reason.to_string())),
            HostCallOutcome::Refused(reason) => drop(line.own_text("reason", reason.as_ref())),
            HostCallOutcome::Failed(error) => drop(line.own_text("error", error.as_ref())),
        }
        line.code(call.check);
        line.number("bytes", call.bytes as u64).number("ms", ms(call.elapsed));
        writer.write(line);
    }

    /// Writes that the guest's result held a secret and was withheld.
    pub fn result_leak(&self, secret: &str) {
        let Some(writer) = &self.0 else { return };
        let mut line = writer.line("leak");
        line.own_text("capability", "result").own_text("reason", DenialReason::Leak.to_string());
        line.code(Some(Check::ResultWithheld));
        line.text("secret", secret, NAME_MAX);
        writer.write(line);
    }

    /// Writes the line of an event of the cache.
    pub fn cache(&self, event: &CacheEvent) {
        let Some(writer) = &self.0 else { return };
        let mut line = writer.line("cache");
        line.own_text("event", event.name()).text("why", &event.to_string(), WHY_MAX).code(event.check());
        writer.write(line);
    }

    /// Writes the line of the call, which is the last one. `used` is `None` if no guest ran.
    pub fn conclude(&self, outcome: Result<(), CallFailure>, used: Option<&Used>) {
        self.write_call(outcome, used, None);
    }

    /// Writes the line of a call whose response the caller did not get.
    pub fn conclude_undelivered(&self, outcome: Result<(), CallFailure>, used: Option<&Used>, what: &Undelivered<'_>) {
        self.write_call(outcome, used, Some(what));
    }

    fn write_call(&self, outcome: Result<(), CallFailure>, used: Option<&Used>, undelivered: Option<&Undelivered<'_>>) {
        let Some(writer) = &self.0 else { return };
        let mut line = writer.line("call");
        line.own_text(
            "outcome",
            match (undelivered, &outcome) {
                (Some(_), _) => "undelivered",
                (None, Ok(())) => "ok",
                (None, Err(_)) => "error",
            },
        );
        if let Err(CallFailure { error, who, check }) = outcome {
            line.own_text("error", error).own_text("who", who.to_string()).code(check);
        }
        if let Some(Undelivered { created, undo }) = undelivered {
            line.text("created", created.unwrap_or_default(), TARGET_MAX);
            if let Some(undo) = undo {
                line.own_text("undo", *undo);
            }
        }
        line.number("wall_ms", ms(writer.elapsed()));
        if let Some(Used { usage, network, counts, hardening, .. }) = used {
            line.number("cpu_ms", ms(usage.cpu)).number("memory_bytes", usage.peak_memory_bytes);
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
