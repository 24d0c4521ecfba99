//! `run`: reads one request from stdin and writes one response to stdout.
//!
//! Every outcome becomes one valid response, and the exit code is 0 once it is written, because
//! the CLI does not read the response after another exit code.

use crate::call::{self, CallError, Loaded, Observer, Record, Response, Settled};
use crate::config::{ConfigFile, ConfigSource, EarlySettings};
use crate::failure::Failure;
use crate::rpc::method::Method;
use crate::rpc::request::Request;
use crate::startup;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one call. Returns true if the response was written. Never panics.
pub fn run(source: &ConfigSource) -> bool {
    startup::secure_process();
    // The response reports a panic. Its text is not printed, because it may quote secrets.
    std::panic::set_hook(Box::new(|_| {}));
    let response = catch_unwind(|| answer(source)).unwrap_or_else(|_| Response::for_panic());
    response.deliver()
}

fn answer(source: &ConfigSource) -> Response {
    let file = ConfigFile::read(source);
    let settings = EarlySettings::of(file.as_ref().ok());
    let request = call::receive(&settings);
    let record = Record::open(&settings, request.as_ref().ok());
    let outcome = caught(|| {
        let request = request?;
        // Looked up before a wrong config is reported: the Director expects `NotImplemented` for some methods.
        let method = call::find_method(&request.method)?;
        serve(file?, method, request, &record, None)
    });
    call::respond(outcome, record)
}

/// Serves a request for this method. `observer` is called for everything that the guest asks for.
pub(super) fn serve(
    file: ConfigFile,
    method: Method,
    request: Request,
    record: &Record,
    observer: Option<Observer>,
) -> Result<Settled, CallError> {
    let loaded = match call::load(file, method, request, record)? {
        Loaded::Info(info) => return Ok(Settled::without_guest(info)),
        Loaded::Guest(loaded) => *loaded,
    };
    let authorised = call::authorise(loaded, record)?;
    let assembled = call::assemble(authorised, record, observer)?;
    let executed = call::execute(assembled)?;
    Ok(call::settle(executed, record))
}

/// Turns a panic into a failure, so that the audit log records it, too.
fn caught<T>(work: impl FnOnce() -> Result<T, CallError>) -> Result<T, CallError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Failure::bug().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AuditConfig;
    use serde_json::{Value, json};

    #[test]
    fn a_panic_is_reported_in_the_response_and_in_the_audit_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let audit = Some(AuditConfig { path: path.clone(), max_bytes: None });
        let record = Record::open(&EarlySettings { audit, ..EarlySettings::default() }, None);
        let document = call::respond(caught(|| panic!("hunter2")), record).document_once_delivered();
        assert!(!document.contains("hunter2"), "{document}");
        let line = std::fs::read_to_string(&path).unwrap();
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
