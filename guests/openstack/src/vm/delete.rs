//! `delete_vm`.

use wasm_cpi_sdk::{Error, agent};

use super::{find, registry_key, remove};
use crate::session::Session;

pub(crate) fn delete(session: &Session, vm: &str) -> Result<(), Error> {
    let server = find(session, vm)?;
    // Before anything is deleted: a port forgets whose it was when its server goes.
    let ports: Vec<String> = session.networking()?.ports_of(vm)?.into_iter().map(|port| port.id).collect();
    let Some(server) = server else {
        // An earlier delete that was interrupted may have left them.
        remove::ports(session, &ports)?;
        return Err(Error::vm_not_found(vm));
    };
    remove::server(session, vm, server.boots_from_volume(), &ports)
        .map_err(|error| error.context(format_args!("deleting VM `{vm}`")))?;
    agent::deleted(registry_key(&server))
}
