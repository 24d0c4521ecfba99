//! `delete_vm`.

use wasm_cpi_sdk::{Error, agent};

use super::{find, registry_key, remove};
use crate::session::Session;

pub(crate) fn delete(session: &Session, vm: &str) -> Result<(), Error> {
    let Some(server) = find(session, vm)? else {
        // An earlier delete that was interrupted may have left its ports.
        let left = session.networking()?.ports_of(vm)?;
        remove::ports(session, &left.into_iter().map(|port| port.id).collect::<Vec<_>>())?;
        return Err(Error::vm_not_found(vm));
    };
    remove::server(session, vm, server.boots_from_volume(), &[])
        .map_err(|error| error.context(format_args!("deleting VM `{vm}`")))?;
    agent::deleted(registry_key(&server))
}
