//! The resources of a VM that is being created, and how they are deleted if a later step fails.

use wasm_cpi_sdk::{Error, clock};

use super::super::connections::Connections;
use super::super::deletion::{self, UNKNOWN_YET};
use super::launch::VM_NAME;
use crate::api::Batch;
use crate::api::ec2::Interface;
use crate::names;
use crate::session::Session;

/// The resources that exist so far. They must be deleted if a later step fails.
pub(super) struct PartialVm {
    pub(super) name: String,
    pub(super) instance: Option<String>,
    /// The tokens of launches that may have succeeded although their answers got lost.
    pub(super) launches_in_doubt: Vec<String>,
    /// The interfaces that were created before the instance, in the order of the NICs.
    pub(super) interfaces: Vec<Interface>,
    /// True if an interface may exist that is not among them.
    pub(super) interface_may_exist: bool,
}

impl PartialVm {
    pub(super) fn new() -> Self {
        Self {
            name: names::unique("vm"),
            instance: None,
            launches_in_doubt: vec![],
            interfaces: vec![],
            interface_may_exist: false,
        }
    }

    /// Deletes all resources. The error says what may be left.
    pub(super) fn undo(&self, session: &Session, connections: &Connections) -> Result<(), Error> {
        let mut problems: Vec<Error> = vec![];
        let mut instances: Vec<String> = self.instance.iter().cloned().collect();
        for token in &self.launches_in_doubt {
            match session.ec2().instances_with_token(token).send() {
                Ok(found) => instances.extend(found.into_iter().filter(|found| !found.is_gone()).map(|found| found.id)),
                Err(error) => {
                    problems.push(
                        Error::from(error).context(format_args!("it is not known whether VM {} exists", self.name)),
                    );
                }
            }
        }
        let mut end_together = !instances.is_empty();
        for instance in &instances {
            connections.deregister(session, instance);
            // If they are marked, EC2 deletes the interfaces, even if this call ends before the instance does.
            let is_marked = self.interfaces.is_empty() || self.mark_interfaces(session, instance);
            end_together &= is_marked;
            let ended = deletion::terminate(session, instance).and_then(|()| {
                let waited = deletion::wait_until_ended(session, instance);
                waited.or_else(|error| if is_marked && clock::ending().is_some() { Ok(()) } else { Err(error) })
            });
            problems.extend(ended.err().map(|error| error.context(format_args!("deleting instance {instance}"))));
            problems.extend(connections.withdraw(session, instance).err());
        }
        if !(end_together && clock::ending().is_some()) {
            problems.extend(self.delete_interfaces(session));
        }
        deletion::combine(problems)
    }

    /// Lets EC2 delete the interfaces together with the instance. Returns true if it will.
    fn mark_interfaces(&self, session: &Session, instance: &str) -> bool {
        let ec2 = session.ec2();
        let Ok(found) = ec2.instance(instance).passing(UNKNOWN_YET).send() else { return false };
        let attached: Vec<_> = found.iter().flat_map(|instance| &instance.interfaces).collect();
        let mut batch = Batch::default();
        let marks = attached.iter().filter_map(|interface| {
            let attachment = interface.attachment.as_deref()?;
            Some(ec2.set_delete_on_termination(&interface.id, attachment, true))
        });
        let tickets: Vec<_> = marks.map(|mark| batch.add(mark)).collect();
        let mut answers = batch.send();
        let marked = tickets.iter().filter(|ticket| answers.take(ticket).is_ok()).count();
        marked == attached.len() && self.interfaces.iter().all(|own| attached.iter().any(|found| found.id == own.id))
    }

    fn delete_interfaces(&self, session: &Session) -> Vec<Error> {
        let mut problems = vec![];
        let mut ids: Vec<String> = self.interfaces.iter().map(|interface| interface.id.clone()).collect();
        if self.interface_may_exist {
            match session.ec2().interfaces_tagged(VM_NAME, &self.name).send() {
                Ok(found) => {
                    let others: Vec<String> = found.into_iter().map(|interface| interface.id).collect();
                    ids.extend(others);
                    ids.sort_unstable();
                    ids.dedup();
                }
                Err(error) => {
                    let what = format!("it is not known whether VM {} has another network interface", self.name);
                    problems.push(Error::from(error).context(what));
                }
            }
        }
        for id in &ids {
            let deleted = deletion::delete_interface(session, id);
            problems.extend(deleted.err().map(|error| error.context(format_args!("deleting network interface {id}"))));
        }
        problems
    }
}
