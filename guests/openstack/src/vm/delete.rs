//! `delete_vm`: a server, its ports and its boot volume. What one call does not
//! come to, the next one does, even if the server is gone by then.

use wasm_cpi_sdk::{Error, ErrorKind, agent, log};

use super::leftovers::Leftovers;
use super::{registry_key, remove};
use crate::api::Server;
use crate::session::Session;

pub(crate) fn delete(session: &Session, vm: &str) -> Result<(), Error> {
    let server = session.compute()?.server(vm)?;
    if let Some(server) = &server {
        warn_of_pools(server);
    }
    let boots_from_volume = server.as_ref().is_some_and(|server| server.boots_from_volume());
    let mut left = Leftovers::of(session, vm, boots_from_volume)?;
    if server.as_ref().is_none_or(|server| server.may_have_lost_something()) {
        left.add_marked(session, vm)?;
    }
    let outcome = match &server {
        Some(server) if !server.is_deleted() => left
            .mark(session, vm)
            .and_then(|()| remove::server(session, vm, &left, || agent::deleted(registry_key(server)))),
        _ => remove::leftovers(session, &left).and_then(|()| Err(Error::vm_not_found(vm))),
    };
    outcome.map_err(|error| match error.kind {
        ErrorKind::VmNotFound => error,
        _ => error.context(format_args!("deleting VM `{vm}`")),
    })
}

/// bosh-openstack-cpi puts VMs into pools of load balancers; this CPI does not
/// know those, and nobody would miss the members.
fn warn_of_pools(server: &Server) {
    for (_, place) in server.metadata.iter().filter(|(key, _)| key.starts_with("lbaas_pool_")) {
        let (pool, member) = place.split_once('/').unwrap_or((place, "?"));
        log::warn(format_args!(
            "VM {} is member {member} of load balancer pool {pool}, and stays it: delete the member yourself",
            server.id
        ));
    }
}
