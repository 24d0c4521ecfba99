//! `delete_vm`: deletes a server, its ports and its boot volume. If a call is
//! interrupted, the next one deletes the rest, even if the server does not exist
//! any more.

use wasm_cpi_sdk::{Error, ErrorKind, agent};

use super::leftovers::Leftovers;
use super::{deletion, pools, registry_key};
use crate::session::Session;

pub(crate) fn delete(session: &Session, vm: &str) -> Result<(), Error> {
    let (compute, networking) = (session.compute()?, session.networking()?);
    session.ahead.read([compute.server_request(vm), networking.ports_of_request(vm)]);
    let server = compute.server(vm)?;
    // Only its metadata names the pools, so the server is deleted after it left them.
    if let Some(server) = &server {
        pools::leave_all(session, server).map_err(|error| error.context(format_args!("deleting VM `{vm}`")))?;
    }
    let boots_from_volume = server.as_ref().is_some_and(|server| server.boots_from_volume());
    let mut left = Leftovers::of(session, vm, boots_from_volume)?;
    if server.as_ref().is_none_or(|server| server.may_be_partly_deleted()) {
        left.add_marked(session, vm)?;
    }
    let outcome = match &server {
        Some(server) if !server.is_deleted() => left
            .mark(session, vm)
            .and_then(|()| deletion::delete_server(session, vm, &left, || agent::deleted(registry_key(server)))),
        _ => deletion::delete_leftovers(session, &left).and_then(|()| Err(Error::vm_not_found(vm))),
    };
    outcome.map_err(|error| match error.kind {
        ErrorKind::VmNotFound => error,
        _ => error.context(format_args!("deleting VM `{vm}`")),
    })
}
