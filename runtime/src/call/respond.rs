//! Last step: writes the one JSON document to stdout, the call's line to the audit log, and the
//! reason for a failure to stderr.

use crate::call::{CallError, Record, Settled};
use crate::failure::{Failure, Who};
use crate::log::Level;
use crate::rpc::response::{self, WireError};
use std::io::Write;
use wasm_cpi_checks::{Check, with_code};

/// The longest message of an error. Guests write such messages, and the Director reads them byte
/// by byte.
const MESSAGE_MAX: usize = 64 * 1024;

/// Returns the document for stdout, and records how the call ended.
pub fn respond(outcome: Result<Settled, CallError>, record: &Record) -> String {
    let Settled { result, used } = outcome.unwrap_or_else(|error| Settled { result: Err(error), used: None });
    if let Err(CallError::Failure(failure)) = &result {
        record.log.write(Level::Error, &failure.report());
        record.log.add_to_response_log(&failure.detail);
    }
    record.audit.conclude(result.as_ref().map(drop).map_err(CallError::audited), used.as_ref());
    match result {
        Ok(result) => response::write(Ok(result), ""),
        Err(error) => response::write(Err(clean(error, record)), &record.log.response_log()),
    }
}

/// Returns the error without secrets and with a bounded length, followed by the code of the
/// check that refused.
fn clean(error: CallError, record: &Record) -> WireError {
    let max = Check::MessageSize.choose(MESSAGE_MAX, usize::MAX);
    let (who, check) = (error.who(), error.check());
    let error = error.into_wire();
    let message = match who {
        Who::Guest => record.log.clean_guest_text(&error.message, max),
        _ => record.log.clean_text(&error.message, max),
    };
    WireError { message: with_code(&message, check), ..error }
}

/// Returns the document for a call that a panic ended before there was a record of it.
pub fn respond_to_bug() -> String {
    response::write(Err(WireError::from(&Failure::bug())), "")
}

/// Writes the document to stdout. Returns true if all of it was written.
pub fn write(document: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(document.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}
