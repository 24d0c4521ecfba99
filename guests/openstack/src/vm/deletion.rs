//! Deletes a server and its leftovers. Nova detaches the disks. Every step runs even
//! if another one failed, and an uncertain outcome is an error. If Nova refuses to
//! delete the server, its ports stay as well.

use wasm_cpi_sdk::Error;

use super::leftovers::Leftovers;
use crate::api::{Server, may_have_succeeded, retry_while_busy};
use crate::session::Session;

/// Deletes a server and its leftovers. Calls `gone` as soon as the server does not
/// exist any more.
pub(super) fn delete_server(
    session: &Session,
    id: &str,
    left: &Leftovers,
    gone: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let mut problems = vec![];
    match delete_and_wait(session, id) {
        Ok(()) => {
            problems.extend(left.delete_volumes(session));
            problems.extend(gone().err());
        }
        Err(failed) if failed.is_refused => return Err(failed.error),
        Err(failed) => problems.push(failed.error),
    }
    problems.extend(left.delete_ports(session));
    combine(problems)
}

/// Deletes the leftovers of a server that does not exist any more.
pub(super) fn delete_leftovers(session: &Session, left: &Leftovers) -> Result<(), Error> {
    let mut problems = left.delete_ports(session);
    problems.extend(left.delete_volumes(session));
    combine(problems)
}

/// The error of a server that may still exist.
struct NotDeleted {
    /// True if Nova refused, so that the server keeps running.
    is_refused: bool,
    error: Error,
}

/// Deletes a server, and waits until it does not exist any more.
fn delete_and_wait(session: &Session, id: &str) -> Result<(), NotDeleted> {
    let compute = session.compute().map_err(|error| NotDeleted { is_refused: true, error })?;
    let mut refused = false;
    retry_while_busy(|| compute.delete_server(id).inspect_err(|error| refused = !may_have_succeeded(error))).map_err(
        |error| NotDeleted { is_refused: refused, error: error.context(format_args!("deleting server {id}")) },
    )?;
    let (mut last, mut forced): (Option<Server>, _) = (None, false);
    let gone = session.wait_until_certain(&format!("server `{id}` to be deleted"), || {
        last = compute.server(id)?.filter(|server| !server.is_deleted());
        if !forced && last.as_ref().is_some_and(|server| server.is_soft_deleted()) {
            match compute.force_delete(id) {
                Ok(()) => forced = true,
                // The server is busy, or does not exist any more, or the answer got lost: check again.
                Err(error) if matches!(error.status(), Some(404 | 409)) || may_have_succeeded(&error) => {}
                Err(error) => {
                    let what = format!("server `{id}` is soft-deleted, but deleting it at once failed");
                    return Err(Error::from(error).context(what));
                }
            }
        }
        Ok(last.is_none().then_some(()))
    });
    gone.map_err(|error| match &last {
        Some(server) if server.status == "ERROR" => {
            Error::cloud(format!("{error}; the cloud's reason: {}", server.fault()))
        }
        _ => error,
    })
    .map_err(|error| NotDeleted { is_refused: false, error })
}

pub(super) fn combine(problems: Vec<Error>) -> Result<(), Error> {
    if problems.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = problems.into_iter().map(|error| error.message).collect();
    Err(Error::cloud(texts.join("; ")))
}
