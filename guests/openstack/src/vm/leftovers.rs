//! The objects that stay after a server is deleted: ports that were created before
//! it, and its boot volume if Nova fails half-way. Nova removes the server's ID from
//! them, so they are marked before. A later `delete_vm`, which knows only the
//! server's ID, finds them by this mark. Disks are never among them.

use std::collections::BTreeMap;

use wasm_cpi_sdk::{Error, http, log};

use super::is_boot_volume;
use crate::api::retry_while_busy;
use crate::session::Session;

/// The mark. A port has it as a tag with the server's ID, a volume as metadata.
const MARK: &str = "deleted-with";

#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub(super) ports: Vec<String>,
    pub(super) volumes: Vec<String>,
}

impl Leftovers {
    /// Returns the leftovers of a server that exists.
    pub(super) fn of(session: &Session, server: &str, boots_from_volume: bool) -> Result<Self, Error> {
        let ports = session.networking()?.ports_of(server)?.into_iter().map(|port| port.id).collect();
        let volumes = if boots_from_volume { boot_volumes(session, server)? } else { vec![] };
        Ok(Self { ports, volumes })
    }

    /// Adds the objects that an earlier, interrupted delete left, except those that
    /// another server uses now.
    pub(super) fn add_marked(&mut self, session: &Session, server: &str) -> Result<(), Error> {
        let (networking, volumes) = (session.networking()?, session.volumes()?);
        let tag = tag(server);
        session.ahead.read([networking.ports_tagged_request(&tag), volumes.volumes_with_request(MARK, server)]);
        let free = |holder: &str| holder.is_empty() || holder == server;
        for port in networking.ports_tagged(&tag)? {
            if free(&port.device_id) && !self.ports.contains(&port.id) {
                self.ports.push(port.id);
            }
        }
        for volume in volumes.volumes_with(MARK, server)? {
            let holders = volume.attachments.iter().filter_map(|attachment| attachment.server_id.as_deref());
            let marked = volume.metadata.get(MARK).is_some_and(|mark| mark == server);
            let wanted = marked && is_boot_volume(&volume) && holders.into_iter().all(free);
            if wanted && !self.volumes.contains(&volume.id) {
                self.volumes.push(volume.id);
            }
        }
        Ok(())
    }

    /// Marks all objects. A cloud that does not support marks is accepted; other
    /// failures are errors, as marking may work later.
    pub(super) fn mark(&self, session: &Session, server: &str) -> Result<(), Error> {
        for port in &self.ports {
            let networking = session.networking()?;
            accept_refusal(port, networking.tag_port(port, &tag(server)))?;
        }
        for volume in &self.volumes {
            let mark = BTreeMap::from([(MARK.to_owned(), server.to_owned())]);
            accept_refusal(volume, session.volumes()?.add_metadata(volume, &mark).map(drop))?;
        }
        Ok(())
    }

    pub(super) fn delete_ports(&self, session: &Session) -> Vec<Error> {
        let delete = |id: &String| {
            let networking = session.networking()?;
            retry_while_busy(|| networking.delete_port(id))
                .map(drop)
                .map_err(|error| error.context(format_args!("deleting port {id}")))
        };
        self.ports.iter().filter_map(|id| delete(id).err()).collect()
    }

    pub(super) fn delete_volumes(&self, session: &Session) -> Vec<Error> {
        self.volumes.iter().filter_map(|id| delete_volume(session, id).err()).collect()
    }
}

fn tag(server: &str) -> String {
    format!("{MARK}-{server}")
}

fn accept_refusal(id: &str, marked: Result<(), http::RequestError>) -> Result<(), Error> {
    match marked {
        Err(error) if matches!(error.status(), Some(400 | 403..=405)) => {
            log::warn(format_args!("{error}; {id} cannot be marked, so a later call would not find it"));
            Ok(())
        }
        outcome => outcome.map_err(|error| Error::from(error).context("marking the ports and volumes of the VM")),
    }
}

/// Returns the volumes that Nova created to boot the server from.
pub(super) fn boot_volumes(session: &Session, server: &str) -> Result<Vec<String>, Error> {
    let volumes = session.volumes()?;
    let attachments = session.compute()?.attachments(server)?;
    session.ahead.read(attachments.iter().map(|attachment| volumes.volume_request(&attachment.volume)));
    let mut found = vec![];
    for attachment in attachments {
        if volumes.volume(&attachment.volume)?.is_some_and(|volume| is_boot_volume(&volume)) {
            found.push(attachment.volume);
        }
    }
    Ok(found)
}

/// Waits until a boot volume is deleted. Nova deletes it with its server, unless it
/// failed to delete the server; then the volume is deleted here.
fn delete_volume(session: &Session, id: &str) -> Result<(), Error> {
    let volumes = session.volumes()?;
    session.wait_until_certain(&format!("boot volume `{id}` to be deleted"), || {
        let Some(volume) = volumes.volume(id)? else {
            return Ok(Some(()));
        };
        match volume.status.as_str() {
            "available" | "error" => match volumes.delete(id) {
                // Nova deleted it, or its status changed meanwhile: check again.
                Err(error) if error.status() != Some(400) => Err(error.into()),
                _ => Ok(None),
            },
            "error_deleting" => Err(Error::cloud(format!(
                "boot volume `{id}` cannot be deleted: its status is `error_deleting`; ask the cloud's operator to reset \
                 its status, and then repeat the task"
            ))),
            _ => Ok(None),
        }
    })
}
