//! What a server leaves behind: ports that were made before it, and the volume
//! that it booted from if Nova gives up half-way. Nova takes its name off them
//! when the server goes, so they are marked before: a later `delete_vm`, which
//! knows no more than the server's id, finds them by that. Disks are never here.

use std::collections::BTreeMap;

use wasm_cpi_sdk::{Error, http, log};

use super::is_boot_volume;
use crate::api::patiently;
use crate::session::Session;

/// The tag of a port is this with the server's id; a volume has it as metadata.
const MARK: &str = "deleted-with";

#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub(super) ports: Vec<String>,
    pub(super) volumes: Vec<String>,
}

impl Leftovers {
    /// Of a server that is there.
    pub(super) fn of(session: &Session, server: &str, boots_from_volume: bool) -> Result<Self, Error> {
        let ports = session.networking()?.ports_of(server)?.into_iter().map(|port| port.id).collect();
        let volumes = if boots_from_volume { boot_volumes(session, server)? } else { vec![] };
        Ok(Self { ports, volumes })
    }

    /// Adds those that a delete before this one did not come to. What another
    /// server has by now is not among them.
    pub(super) fn add_marked(&mut self, session: &Session, server: &str) -> Result<(), Error> {
        let free = |holder: &str| holder.is_empty() || holder == server;
        for port in session.networking()?.ports(&[("tags", &tag(server))])? {
            let marked = port.tags.contains(&tag(server)) && free(&port.device_id);
            if marked && !self.ports.contains(&port.id) {
                self.ports.push(port.id);
            }
        }
        for volume in session.volumes()?.volumes_with(MARK, server)? {
            let holders = volume.attachments.iter().filter_map(|place| place.server_id.as_deref());
            let marked = volume.metadata.get(MARK).is_some_and(|mark| mark == server);
            let wanted = marked && is_boot_volume(&volume) && holders.into_iter().all(free);
            if wanted && !self.volumes.contains(&volume.id) {
                self.volumes.push(volume.id);
            }
        }
        Ok(())
    }

    /// A cloud that refuses marks has none; what else fails may work another time.
    pub(super) fn mark(&self, session: &Session, server: &str) -> Result<(), Error> {
        for port in &self.ports {
            let networking = session.networking()?;
            accept(port, networking.tag_port(port, &tag(server)))?;
        }
        for volume in &self.volumes {
            let mark = BTreeMap::from([(MARK.to_owned(), server.to_owned())]);
            accept(volume, session.volumes()?.add_metadata(volume, &mark))?;
        }
        Ok(())
    }

    pub(super) fn remove_ports(&self, session: &Session) -> Vec<Error> {
        let delete = |id: &String| {
            let networking = session.networking()?;
            patiently(|| networking.delete_port(id))
                .map(drop)
                .map_err(|error| error.context(format_args!("deleting port {id}")))
        };
        self.ports.iter().filter_map(|id| delete(id).err()).collect()
    }

    pub(super) fn remove_volumes(&self, session: &Session) -> Vec<Error> {
        self.volumes.iter().filter_map(|id| volume_is_gone(session, id).err()).collect()
    }
}

fn tag(server: &str) -> String {
    format!("{MARK}-{server}")
}

fn accept(id: &str, marked: Result<(), http::Error>) -> Result<(), Error> {
    match marked {
        Err(error) if matches!(error.status(), Some(400 | 403..=405)) => {
            log::warn(format_args!("{error}; if {id} is left behind, no later call finds it"));
            Ok(())
        }
        outcome => outcome.map_err(|error| Error::from(error).context("marking what goes with it")),
    }
}

/// Those that Nova made for the server to boot from.
pub(super) fn boot_volumes(session: &Session, server: &str) -> Result<Vec<String>, Error> {
    let volumes = session.volumes()?;
    let mut found = vec![];
    for attachment in session.compute()?.attachments(server)? {
        if volumes.volume(&attachment.volume)?.is_some_and(|volume| is_boot_volume(&volume)) {
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
