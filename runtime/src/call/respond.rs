//! Last step: builds the response and delivers it: the JSON document on stdout, the call's line in
//! the audit log, and the reason for a failure on stderr.
//!
//! The commit point of a call is here: once stdout has accepted the last byte of the document,
//! nothing is undone any more. If the caller is gone before that, what the call created is deleted.

use crate::audit::{Undelivered, Used};
use crate::call::undo::{Created, UndoOutcome};
use crate::call::{CallError, Record, Settled, leave_to_exit};
use crate::failure::{Failure, Who};
use crate::log::{Level, escape};
use crate::rpc::response::{self, WireError};
use rustix::io::Errno;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use wasm_cpi_checks::{Check, with_code};

/// The longest message of an error. Guests write such messages, and the Director reads them byte
/// by byte.
const MESSAGE_MAX: usize = 64 * 1024;

/// The pause before the next attempt to write to a stdout that does not block and is full.
const FULL_STDOUT_PAUSE: Duration = Duration::from_millis(10);

/// The response of a call, and what is recorded about the call once it is written.
pub struct Response {
    document: String,
    /// Absent if a panic ended the call before there was a record of it.
    conclusion: Option<Conclusion>,
}

struct Conclusion {
    record: Record,
    outcome: Result<(), CallError>,
    used: Option<Used>,
    created: Option<Created>,
}

/// Returns the response, and logs why the call failed.
pub fn respond(outcome: Result<Settled, CallError>, record: Record) -> Response {
    let Settled { result, used, created } = outcome.unwrap_or_else(Settled::failed);
    if let Err(CallError::Failure(failure)) = &result {
        record.log.write(Level::Error, &failure.text_with_code());
        record.log.add_to_response_log(&failure.detail);
    }
    let (document, outcome) = match result {
        Ok(result) => (response::document(Ok(result), ""), Ok(())),
        Err(error) => (response::document(Err(clean(&error, &record)), &record.log.response_log()), Err(error)),
    };
    Response { document, conclusion: Some(Conclusion { record, outcome, used, created }) }
}

/// Returns the error without secrets and with a bounded length, followed by the code of the
/// check that refused.
fn clean(error: &CallError, record: &Record) -> WireError {
    let max = Check::MessageSize.choose(MESSAGE_MAX, usize::MAX);
    let wire = error.to_wire();
    let message = match error.who() {
        Who::Guest => record.log.clean_guest_text(&wire.message, max),
        _ => record.log.clean_text(&wire.message, max),
    };
    WireError { message: with_code(&message, error.check()), ..wire }
}

impl Response {
    /// Returns the response to a call that a panic ended before there was a record of it.
    pub fn for_panic() -> Response {
        Response { document: response::document(Err(WireError::from(&Failure::bug())), ""), conclusion: None }
    }

    /// Writes the document to stdout and concludes the call. Returns true if all of it was written.
    pub fn deliver(self) -> bool {
        let written = write_to_stdout(self.document.as_bytes());
        let delivered = written.is_ok();
        // Whatever happens from here on, there is no second document.
        let _ = catch_unwind(AssertUnwindSafe(|| self.conclude(written)));
        delivered
    }

    /// Records how the call ended. If the document was not written, deletes what the call created.
    fn conclude(self, written: io::Result<()>) {
        let Some(Conclusion { record, outcome, used, created }) = self.conclusion else { return };
        let outcome = outcome.map_err(|error| error.audited());
        let Err(error) = written else {
            record.audit.conclude(outcome, used.as_ref());
            return leave_to_exit(created);
        };
        let cid = created.as_ref().map(|created| created.cid().to_owned());
        let undone = created.map(Created::undo);
        record.log.write(Level::Error, &undelivered(&error, cid.as_deref(), undone.as_ref()));
        let undo = undone.as_ref().map(UndoOutcome::keyword);
        record.audit.conclude_undelivered(outcome, used.as_ref(), &Undelivered { created: cid.as_deref(), undo });
    }

    #[cfg(test)]
    pub fn document_once_delivered(self) -> String {
        let document = self.document.clone();
        self.conclude(Ok(()));
        document
    }
}

/// Returns the line for stderr about a response that the caller did not get.
fn undelivered(error: &io::Error, cid: Option<&str>, undone: Option<&UndoOutcome>) -> String {
    let what = format!("runtime: the response was not delivered, because stdout cannot be written ({error})");
    let cid = escape(cid.unwrap_or_default(), 255);
    match undone {
        None => what,
        Some(UndoOutcome::Deleted) => format!("{what}; `{cid}`, which this call created, was deleted again"),
        Some(UndoOutcome::Kept(why)) => format!("{what}; `{cid}` was not deleted: {why}"),
        Some(UndoOutcome::Failed(why)) => {
            format!("{what}; `{cid}`, which this call created, could not be deleted: {why}")
        }
    }
}

/// Writes all bytes to stdout, without a buffer, so that success means that the kernel has them.
fn write_to_stdout(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => std::thread::sleep(FULL_STDOUT_PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
