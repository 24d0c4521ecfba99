//! `run`: one request on stdin, one response on stdout.
//!
//! Whatever happens becomes one valid response, and the exit code is 0 once it
//! is written: the CLI takes anything else for a failure of its own. Nothing is
//! written before stdin was read to its end, as the Director writes its whole
//! request before it reads.

use crate::audit::{Audit, Failed, Used};
use crate::component::prepared;
use crate::config::{self, Config, ConfigArg};
use crate::failure::{Failure, Who};
use crate::hardening;
use crate::holes::Check;
use crate::limits::Limits;
use crate::log::{Format, Level, Log};
use crate::rpc::arguments::Call;
use crate::rpc::method::{Method, Named};
use crate::rpc::request::Request;
use crate::rpc::response::{self, ErrorType, WireError};
use crate::session::{self, Session};
use crate::signals;
use crate::vault::Vault;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Of an error's message: guests write those, and the Director reads them byte
/// by byte.
const MESSAGE_MAX: usize = 64 * 1024;

/// Never panics, never leaves the caller without a response. Whether that was taken.
pub fn run(config: &ConfigArg) -> bool {
    hardening::process::at_start();
    // A panic is reported in the response; its text may quote secrets.
    std::panic::set_hook(Box::new(|_| {}));
    let document = caught(|audit| answer(config, audit));
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(document.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// The answer, or one that says that there is none because of us.
fn caught(answer: impl FnOnce(&OnceLock<Arc<Audit>>) -> String) -> String {
    let audit = OnceLock::new();
    catch_unwind(AssertUnwindSafe(|| answer(&audit))).unwrap_or_else(|_| {
        let failure = Failure::runtime("a bug in wasm-cpi ended the call; please report it");
        if let Some(audit) = audit.get() {
            audit.conclude(Err((&failure).into()), None);
        }
        response::write(Err(WireError::from(&failure)), "")
    })
}

/// `audit` is told as soon as it is there, for whoever has to end it.
fn answer(source: &ConfigArg, audit: &OnceLock<Arc<Audit>>) -> String {
    let config = Config::load(source);
    let defaults = Limits::default();
    let limits = config.as_ref().map_or(&defaults, |config| &config.limits);
    let bytes = read_request(limits);
    signals::watch();
    let vault = Arc::new(Vault::new());
    let max_api_version = config.as_ref().map_or(crate::rpc::API_VERSION, |config| config.api_version);
    let request = bytes.and_then(|bytes| Request::parse(&bytes, max_api_version));
    let (level, format) =
        config.as_ref().map_or((Level::Info, Format::Text), |config| (config.log_level, config.log_format));
    let request_id = request.as_ref().ok().and_then(|request| request.request_id.as_deref());
    let log = Arc::new(Log::new(level, format, request_id, Arc::clone(&vault)));
    let audit = audit.get_or_init(|| Arc::new(opened(&source.path, &config, request.as_ref().ok(), &log)));
    let mut used = None;
    let result = request
        .map_err(|failure| refused(&failure, &log))
        .and_then(|request| serve(config, request, &vault, &log, audit, &mut used));
    let outcome = result.as_ref().map(drop);
    audit.conclude(
        outcome.map_err(|Refused { error, who }| Failed { error: error.kind.name(), who: *who }),
        used.as_ref(),
    );
    match result {
        Ok(result) => response::write(Ok(result), ""),
        Err(Refused { error, who }) => {
            let max = if Check::MessageSize.on() { MESSAGE_MAX } else { usize::MAX };
            let message = match who {
                Who::Guest => log.guest_words(&error.message, max),
                _ => log.clean_text(&error.message, max),
            };
            let error = WireError { message, ..error };
            response::write(Err(error), &log.story())
        }
    }
}

/// Calls that fail for their config belong into the audit log, too.
fn opened(path: &Path, config: &Result<Config, Failure>, request: Option<&Request>, log: &Arc<Log>) -> Audit {
    let alone = if config.is_err() { config::audit_alone(path) } else { None };
    let section = config.as_ref().map_or(alone.as_ref(), |config| config.audit.as_ref());
    Audit::open(section, config.as_ref().ok(), request, log)
}

/// All of stdin, or the failure to report once all of it was read.
fn read_request(limits: &Limits) -> Result<Vec<u8>, Failure> {
    let max = limits.request_mib << 20;
    let mut stdin = std::io::stdin().lock();
    let mut bytes = Vec::new();
    let unreadable = |error: std::io::Error| Failure::request(format!("stdin cannot be read: {error}"));
    Read::by_ref(&mut stdin).take(max + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max {
        // A caller that still writes would get EPIPE instead of an answer.
        std::io::copy(&mut stdin, &mut std::io::sink()).map_err(unreadable)?;
        return Err(Failure {
            who: Who::Request,
            ..Failure::limit("request_mib", limits.request_mib, "the request's size")
        });
    }
    Ok(bytes)
}

/// An error for the caller, and whose fault it is.
struct Refused {
    error: WireError,
    who: Who,
}

fn serve(
    config: Result<Config, Failure>,
    mut request: Request,
    vault: &Arc<Vault>,
    log: &Arc<Log>,
    audit: &Arc<Audit>,
    used: &mut Option<Used>,
) -> Result<Value, Refused> {
    let method = match Named::from_name(&request.method) {
        Named::Known(method) => method,
        Named::ConfigureNetworks => {
            let message = "configure_networks is deprecated; the Director recreates the VM instead";
            return Err(Refused { error: WireError::new(ErrorType::NotSupported, message), who: Who::Request });
        }
        Named::Unknown => {
            return Err(Refused { error: WireError::unknown_method(&request.method), who: Who::Request });
        }
    };
    let config = config.map_err(|failure| refused(&failure, log))?;
    let fail = |failure: Failure| refused(&failure, log);
    let arguments = std::mem::take(&mut request.arguments);
    let call = Call::parse(method, arguments, request.api_version).map_err(fail)?;
    let prepared = prepared::prepared(config.wanted(), &session::told(log, audit)).map_err(fail)?;
    audit.guest(&prepared.description);
    if method == Method::Info {
        return Ok(json!({
            "api_version": config.api_version,
            "stemcell_formats": prepared.description.stemcell_formats,
        }));
    }
    if !prepared.description.methods.iter().any(|name| name == method.name()) {
        let message = format!(
            "guest: {} {} does not implement {}",
            prepared.description.name,
            prepared.description.version,
            method.name()
        );
        return Err(Refused { error: WireError::new(ErrorType::NotImplemented, message), who: Who::Guest });
    }
    let session = Session { config: &config, request: &request, call: &call, vault, log, audit, watch: None };
    let ran = session::run(session, prepared).map_err(fail)?;
    *used = Some(ran.used);
    ran.result.map_err(|unsuccessful| match unsuccessful {
        session::Unsuccessful::Wire(error) => {
            log.write(Level::Info, &format!("guest: {}: {}", error.kind.name(), error.message));
            Refused { error, who: Who::Guest }
        }
        session::Unsuccessful::Failure(failure) => fail(failure),
    })
}

/// Details go to the log, in full; the message says who failed.
fn refused(failure: &Failure, log: &Log) -> Refused {
    log.write(Level::Error, &failure.to_string());
    log.tell(&failure.detail);
    Refused { error: WireError::from(failure), who: failure.who }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::AuditConfig;

    #[test]
    fn a_panic_is_a_response_and_a_line_in_the_audit_log() {
        let dir = tempfile::tempdir().unwrap();
        let section = AuditConfig { path: dir.path().join("audit.log"), max_bytes: None };
        let log = Arc::new(Log::new(Level::Error, Format::Text, None, Arc::default()));
        let document = caught(|audit| {
            audit.get_or_init(|| Arc::new(Audit::open(Some(&section), None, None, &log)));
            panic!("hunter2")
        });
        let line = std::fs::read_to_string(&section.path).unwrap();
        let (line, document): (Value, Value) =
            (serde_json::from_str(&line).unwrap(), serde_json::from_str(&document).unwrap());
        assert_eq!(
            (&line["kind"], &line["outcome"], &line["who"]),
            (&json!("call"), &json!("error"), &json!("runtime"))
        );
        assert_eq!(
            (&line["error"], &document["error"]["type"]),
            (&document["error"]["type"], &json!("Bosh::Clouds::CloudError"))
        );
    }
}
