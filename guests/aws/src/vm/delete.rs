//! `delete_vm`: removes what points to the VM, ends the instance, and waits until it has ended. Its volumes and network
//! interfaces end with it, except persistent disks.

use wasm_cpi_sdk::{Error, agent};

use super::connections::Connections;
use super::{deletion, not_found};
use crate::session::Session;
use crate::tags::Tags;

/// The name of an instance that is not waited for (`fast_path_delete`).
const NAME_OF_DELETED: &str = "to be deleted";

pub(crate) fn delete(session: &Session, vm: &str) -> Result<(), Error> {
    let ec2 = session.ec2();
    let found = ec2.instance(vm).send().map_err(|error| not_found(error, vm))?;
    let Some(instance) = found.into_iter().find(|instance| instance.id == vm) else {
        return Err(Error::vm_not_found(vm));
    };
    let connections = Connections::of_tags(&instance.tags);
    let context = |error: Error| error.context(format_args!("deleting VM `{vm}`"));
    if instance.is_alive() {
        connections.deregister(session, vm);
        match ec2.terminate_instance(vm).send() {
            Err(error) if error.is("InvalidInstanceID.NotFound") => {}
            outcome => outcome.map_err(|error| context(error.into()))?,
        }
    }
    // The instance ends even if a route cannot be deleted, so this error is returned last.
    let withdrawn = connections.withdraw(session, vm);
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
