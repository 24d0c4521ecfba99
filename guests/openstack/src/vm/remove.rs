//! Takes a server away with all that was made for it: its ports, and the volume
//! it booted from. Disks are only detached, which Nova does. Every step is tried
//! whatever became of the others, and what is not certain is an error. Only a
//! server that Nova keeps also keeps its ports.

use wasm_cpi_sdk::Error;

use crate::api::{Server, patiently, unclear};
use crate::session::Session;

/// With these ports: those that were made for it. Nova takes its own away.
pub(super) fn server(session: &Session, id: &str, boots_from_volume: bool, ports: &[String]) -> Result<(), Error> {
    let mut problems = vec![];
    match only_server(session, id, boots_from_volume) {
        Err(Kept { for_sure: true, error }) => return Err(error),
        outcome => problems.extend(outcome.err().map(Error::from)),
    }
    problems.extend(self::ports(session, ports).err());
    together(problems)
}

/// A server that is not gone for certain.
pub(super) struct Kept {
    /// Nova refused, and it goes on running.
    for_sure: bool,
    error: Error,
}

impl From<Kept> for Error {
    fn from(kept: Kept) -> Error {
        kept.error
    }
}

/// Leaves its ports.
pub(super) fn only_server(session: &Session, id: &str, boots_from_volume: bool) -> Result<(), Kept> {
    let mut problems = vec![];
    let mut volumes = vec![];
    if boots_from_volume {
        match boot_volumes(session, id) {
            Ok(found) => volumes = found,
            Err(error) => problems.push(error.context("listing its volumes")),
        }
    }
    match delete(session, id) {
        Ok(()) => problems.extend(volumes.iter().filter_map(|volume| volume_is_gone(session, volume).err())),
        Err(kept) if kept.for_sure => return Err(kept),
        Err(kept) => problems.push(kept.error),
    }
    together(problems).map_err(|error| Kept { for_sure: false, error })
}

pub(super) fn ports(session: &Session, ids: &[String]) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    let networking = session.networking()?;
    let delete = |id: &String| {
        patiently(|| networking.delete_port(id)).err().map(|error| error.context(format_args!("deleting port {id}")))
    };
    together(ids.iter().filter_map(delete).collect())
}

fn delete(session: &Session, id: &str) -> Result<(), Kept> {
    let compute = session.compute().map_err(|error| Kept { for_sure: true, error })?;
    let mut refused = false;
    patiently(|| compute.delete_server(id).inspect_err(|error| refused = !unclear(error)))
        .map_err(|error| Kept { for_sure: refused, error: error.context(format_args!("deleting server {id}")) })?;
    let mut last: Option<Server> = None;
    let gone = session.certainly(&format!("server `{id}` to be gone"), || {
        last = compute.server(id)?.filter(|server| !server.is_gone());
        Ok(last.is_none().then_some(()))
    });
    gone.map_err(|error| match &last {
        Some(server) if server.status == "ERROR" => Error::cloud(format!("{error}: {}", server.fault())),
        _ => error,
    })
    .map_err(|error| Kept { for_sure: false, error })
}

/// Those that Nova made for the server to boot from.
fn boot_volumes(session: &Session, id: &str) -> Result<Vec<String>, Error> {
    let volumes = session.volumes()?;
    let mut found = vec![];
    for attachment in session.compute()?.attachments(id)? {
        if volumes.volume(&attachment.volume)?.is_some_and(|volume| super::is_boot_volume(&volume)) {
            found.push(attachment.volume);
        }
    }
    Ok(found)
}

/// Nova deletes the volume with its server, except when it gave up on the
/// server half-way.
fn volume_is_gone(session: &Session, id: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    session.certainly(&format!("boot volume `{id}` to be gone"), || {
        let Some(volume) = volumes.volume(id)? else {
            return Ok(Some(()));
        };
        match volume.status.as_str() {
            "available" | "error" => match volumes.delete(id) {
                // Nova was first, or it has changed meanwhile: look again.
                Err(error) if error.status() != Some(400) => Err(error.into()),
                _ => Ok(None),
            },
            "error_deleting" => Err(Error::cloud(format!("boot volume `{id}` cannot be deleted ({})", volume.status))),
            _ => Ok(None),
        }
    })
}

fn together(problems: Vec<Error>) -> Result<(), Error> {
    if problems.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = problems.into_iter().map(|error| error.message).collect();
    Err(Error::cloud(texts.join("; ")))
}
