//! `delete_vm`: removes what points to the VM, ends the instance, and waits until it has ended. Its volumes and network
//! interfaces end with it, except persistent disks.

use wasm_cpi_sdk::{Error, agent};

use super::connections::Connections;
use super::{deletion, not_found};
use crate::session::Session;
use crate::tags::Tags;

/// The error for an instance that does not exist, or has not existed for about an hour.
const UNKNOWN: &str = "InvalidInstanceID.NotFound";

/// The name of an instance that is not waited for (`fast_path_delete`).
const NAME_OF_DELETED: &str = "to be deleted";

pub(crate) fn delete(session: &Session, vm: &str) -> Result<(), Error> {
    let ec2 = session.ec2();
    let found = match ec2.instance(vm).send() {
        Err(error) if error.is(UNKNOWN) => vec![],
        found => found.map_err(|error| not_found(error, vm))?,
    };
    let Some(instance) = found.into_iter().find(|instance| instance.id == vm) else {
        // The VM's entry in the registry would stay otherwise: the Director does not ask again.
        agent::deleted(vm)?;
        return Err(Error::vm_not_found(vm));
    };
    let connections = Connections::of_tags(&instance.tags);
    let context = |error: Error| error.context(format_args!("deleting VM `{vm}`"));
    if instance.is_alive() {
        connections.deregister(session, vm);
    }
    // The instance ends even if a route cannot be deleted, so this error is returned last.
    let withdrawn = connections.withdraw(session, vm);
    if instance.is_alive() {
        match ec2.terminate_instance(vm).send() {
            Err(error) if error.is(UNKNOWN) => {}
            outcome => outcome.map_err(|error| context(error.into()))?,
        }
    }
    if session.properties.deletes_fast() {
        let mut tags = Tags::default();
        tags.insert("Name", NAME_OF_DELETED);
        ec2.create_tags(&[vm], &tags).send().map_err(|error| context(error.into()))?;
    } else {
        deletion::wait_until_ended(session, vm).map_err(context)?;
    }
    agent::deleted(vm)?;
    withdrawn.map_err(context)
}
