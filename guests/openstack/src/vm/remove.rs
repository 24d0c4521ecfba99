//! Takes a server away with all that was made for it: its ports, and the volume
//! it booted from. Disks are only detached, which Nova does. Every step is tried
//! whatever became of the others, and what is not certain is an error.

use wasm_cpi_sdk::Error;

use crate::api::{Server, patiently};
use crate::session::Session;

/// With these ports: those that were made for it. Nova takes its own away.
pub(super) fn server(session: &Session, id: &str, boots_from_volume: bool, ports: &[String]) -> Result<(), Error> {
    let mut problems = vec![];
    problems.extend(only_server(session, id, boots_from_volume).err());
    problems.extend(self::ports(session, ports).err());
    together(problems)
}

/// Leaves its ports.
pub(super) fn only_server(session: &Session, id: &str, boots_from_volume: bool) -> Result<(), Error> {
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
        Err(error) => problems.push(error),
    }
    together(problems)
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

fn delete(session: &Session, id: &str) -> Result<(), Error> {
    let compute = session.compute()?;
    patiently(|| compute.delete_server(id)).map_err(|error| error.context(format_args!("deleting server {id}")))?;
    let mut last: Option<Server> = None;
    let gone = session.certainly(&format!("server `{id}` to be gone"), || {
        last = compute.server(id)?.filter(|server| !server.is_gone());
        Ok(last.is_none().then_some(()))
    });
    gone.map_err(|error| match &last {
        Some(server) if server.status == "ERROR" => Error::cloud(format!("{error}: {}", server.fault())),
        _ => error,
    })
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
