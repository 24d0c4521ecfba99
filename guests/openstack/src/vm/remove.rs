//! Takes a server away, and then what it leaves. Disks are only detached, which
//! Nova does. Every step is tried whatever became of the others, and what is not
//! certain is an error. Only a server that Nova keeps also keeps its ports.

use wasm_cpi_sdk::Error;

use super::leftovers::Leftovers;
use crate::api::{Server, patiently, unclear};
use crate::session::Session;

/// With what it leaves. `gone` is done as soon as there is no such server.
pub(super) fn server(
    session: &Session,
    id: &str,
    left: &Leftovers,
    gone: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let mut problems = vec![];
    match delete(session, id) {
        Ok(()) => {
            problems.extend(left.remove_volumes(session));
            problems.extend(gone().err());
        }
        Err(kept) if kept.for_sure => return Err(kept.error),
        Err(kept) => problems.push(kept.error),
    }
    problems.extend(left.remove_ports(session));
    together(problems)
}

/// What is left of a server that is gone.
pub(super) fn leftovers(session: &Session, left: &Leftovers) -> Result<(), Error> {
    let mut problems = left.remove_ports(session);
    problems.extend(left.remove_volumes(session));
    together(problems)
}

/// A server that is not gone for certain.
struct Kept {
    /// Nova refused, and it goes on running.
    for_sure: bool,
    error: Error,
}

fn delete(session: &Session, id: &str) -> Result<(), Kept> {
    let compute = session.compute().map_err(|error| Kept { for_sure: true, error })?;
    let mut refused = false;
    patiently(|| compute.delete_server(id).inspect_err(|error| refused = !unclear(error)))
        .map_err(|error| Kept { for_sure: refused, error: error.context(format_args!("deleting server {id}")) })?;
    let (mut last, mut forced): (Option<Server>, _) = (None, false);
    let gone = session.certainly(&format!("server `{id}` to be gone"), || {
        last = compute.server(id)?.filter(|server| !server.is_deleted());
        if !forced && last.as_ref().is_some_and(|server| server.is_kept()) {
            match compute.delete_for_good(id) {
                Ok(()) => forced = true,
                // It is busy or went meanwhile, or the answer got lost: look again.
                Err(error) if matches!(error.status(), Some(404 | 409)) || unclear(&error) => {}
                Err(error) => {
                    let what = format!("server `{id}` is deleted, but the cloud keeps it for a while");
                    return Err(Error::from(error).context(what));
                }
            }
        }
        Ok(last.is_none().then_some(()))
    });
    gone.map_err(|error| match &last {
        Some(server) if server.status == "ERROR" => Error::cloud(format!("{error}: {}", server.fault())),
        _ => error,
    })
    .map_err(|error| Kept { for_sure: false, error })
}

pub(super) fn together(problems: Vec<Error>) -> Result<(), Error> {
    if problems.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = problems.into_iter().map(|error| error.message).collect();
    Err(Error::cloud(texts.join("; ")))
}
