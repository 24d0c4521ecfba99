//! What a VM in the making is made of so far, and how that goes again when the
//! rest fails.

use wasm_cpi_sdk::Error;

use super::super::leftovers::{Leftovers, boot_volumes};
use super::super::pools::{self, Membership};
use super::super::remove;
use crate::api::Port;
use crate::names;
use crate::session::Session;

/// What exists already, and must go again if the rest fails.
pub(super) struct Made {
    pub(super) name: String,
    pub(super) server: Option<String>,
    /// Whether there may be a server although none is known.
    pub(super) unclear: bool,
    /// One per manual network, in the order of the NICs.
    pub(super) ports: Vec<Port>,
    /// Whether there may be a port that is not among them.
    pub(super) unclear_port: bool,
    pub(super) memberships: Vec<Membership>,
}

impl Made {
    pub(super) fn new() -> Self {
        Self {
            name: names::unique("vm"),
            server: None,
            unclear: false,
            ports: vec![],
            unclear_port: false,
            memberships: vec![],
        }
    }

    /// Takes all of it back, and says what may be left.
    pub(super) fn undo(&self, session: &Session, boots_from_volume: bool) -> Result<(), Error> {
        let mut left = Leftovers { ports: self.ports.iter().map(|port| port.id.clone()).collect(), volumes: vec![] };
        let mut problems: Vec<Error> =
            self.memberships.iter().filter_map(|membership| pools::leave(session, membership).err()).collect();
        if self.unclear_port {
            match session.networking().and_then(|networking| Ok(networking.ports_named(&self.name)?)) {
                Ok(named) => {
                    let others = named.into_iter().filter(|port| self.ports.iter().all(|known| known.id != port.id));
                    left.ports.extend(others.map(|port| port.id));
                }
                Err(error) => {
                    problems.push(error.context(format_args!("whether there is a port {} is not known", self.name)));
                }
            }
        }
        let found = match &self.server {
            None if self.unclear => self.look(session),
            known => Ok(known.clone()),
        };
        match found {
            Ok(Some(server)) => {
                if boots_from_volume {
                    match boot_volumes(session, &server) {
                        Ok(volumes) => left.volumes = volumes,
                        Err(error) => problems.push(error.context("listing its volumes")),
                    }
                }
                problems.extend(remove::server(session, &server, &left, || Ok(())).err());
            }
            Ok(None) => problems.extend(left.remove_ports(session)),
            Err(error) => {
                problems.push(error.context(format_args!("whether there is a server {} is not known", self.name)));
                problems.extend(left.remove_ports(session));
            }
        }
        remove::together(problems)
    }

    fn look(&self, session: &Session) -> Result<Option<String>, Error> {
        Ok(session.compute()?.server_named(&self.name)?.map(|server| server.id))
    }
}
