//! The objects of a VM that is being created, and how they are deleted if a later
//! step fails.

use wasm_cpi_sdk::Error;

use super::super::deletion;
use super::super::leftovers::{Leftovers, boot_volumes};
use super::super::pools::{self, Membership};
use crate::api::Port;
use crate::names;
use crate::session::Session;

/// The objects that exist so far. They must be deleted if a later step fails.
pub(super) struct PartialVm {
    pub(super) name: String,
    pub(super) server: Option<String>,
    /// True if a server may exist although none is known.
    pub(super) server_may_exist: bool,
    /// One port per manual network, in the order of the NICs.
    pub(super) ports: Vec<Port>,
    /// True if a port may exist that is not among them.
    pub(super) port_may_exist: bool,
    pub(super) memberships: Vec<Membership>,
}

impl PartialVm {
    pub(super) fn new() -> Self {
        Self {
            name: names::unique("vm"),
            server: None,
            server_may_exist: false,
            ports: vec![],
            port_may_exist: false,
            memberships: vec![],
        }
    }

    /// Deletes all objects. The error says what may be left.
    pub(super) fn undo(&self, session: &Session, boots_from_volume: bool) -> Result<(), Error> {
        let mut left = Leftovers { ports: self.ports.iter().map(|port| port.id.clone()).collect(), volumes: vec![] };
        let mut problems: Vec<Error> =
            self.memberships.iter().filter_map(|membership| pools::leave(session, membership).err()).collect();
        if self.port_may_exist {
            match session.networking().and_then(|networking| Ok(networking.ports_named(&self.name)?)) {
                Ok(named) => {
                    let others = named.into_iter().filter(|port| self.ports.iter().all(|known| known.id != port.id));
                    left.ports.extend(others.map(|port| port.id));
                }
                Err(error) => {
                    problems.push(error.context(format_args!("it is not known whether port {} exists", self.name)));
                }
            }
        }
        let found = match &self.server {
            None if self.server_may_exist => self.find_server(session),
            known => Ok(known.clone()),
        };
        match found {
            Ok(Some(server)) => {
                if boots_from_volume {
                    match boot_volumes(session, &server) {
                        Ok(volumes) => left.volumes = volumes,
                        Err(error) => problems.push(error.context("listing the volumes of the server")),
                    }
                }
                problems.extend(deletion::delete_server(session, &server, &left, || Ok(())).err());
            }
            Ok(None) => problems.extend(left.delete_ports(session)),
            Err(error) => {
                problems.push(error.context(format_args!("it is not known whether server {} exists", self.name)));
                problems.extend(left.delete_ports(session));
            }
        }
        deletion::combine(problems)
    }

    fn find_server(&self, session: &Session) -> Result<Option<String>, Error> {
        Ok(session.compute()?.server_named(&self.name)?.map(|server| server.id))
    }
}
