//! The resources of a VM that is being created, and how they are deleted if a later step fails.

use wasm_cpi_sdk::{Error, clock};

use super::super::connections::Connections;
use super::super::deletion::{self, UNKNOWN_YET};
use super::in_doubt::InDoubt;
use super::launch::VM_NAME;
use crate::api::Batch;
use crate::api::ec2::Interface;
use crate::names;
use crate::session::Session;

/// The resources that exist so far. They must be deleted if a later step fails.
pub(super) struct PartialVm {
    pub(super) name: String,
    pub(super) instance: Option<String>,
    pub(super) launches_in_doubt: Vec<InDoubt<String>>,
    /// The interfaces that were created before the instance, in the order of the NICs.
    pub(super) interfaces: Vec<Interface>,
    pub(super) interface_in_doubt: Option<InDoubt<Interface>>,
}

impl PartialVm {
    pub(super) fn new() -> Self {
        Self {
            name: names::unique("vm"),
            instance: None,
            launches_in_doubt: vec![],
            interfaces: vec![],
            interface_in_doubt: None,
        }
    }

    /// Deletes all resources. The error says what may be left.
    pub(super) fn undo(mut self, session: &Session, connections: &Connections) -> Result<(), Error> {
        let mut problems: Vec<Error> = vec![];
        let mut instances: Vec<String> = self.instance.iter().cloned().collect();
        for launch in std::mem::take(&mut self.launches_in_doubt) {
            let what = format!("an instance of VM {}", self.name);
            let search = session.ec2().instances_with_token(&launch.token);
            match launch.resolve(&what, &search, |id| id, |found| Some(found.id)) {
                Ok(found) => instances.extend(found),
                Err(error) => problems.push(error),
            }
        }
        let mut end_together = !instances.is_empty();
        for instance in &instances {
            connections.deregister(session, instance);
            // If they are marked, EC2 deletes the interfaces, even if this call ends before the instance does.
            let is_marked = self.interfaces.is_empty() || self.mark_interfaces(session, instance);
            end_together &= is_marked;
            problems.extend(connections.withdraw(session, instance).err());
            let ended = deletion::terminate(session, instance).and_then(|()| {
                let waited = deletion::wait_until_ended(session, instance);
                waited.or_else(|error| if is_marked && clock::ending().is_some() { Ok(()) } else { Err(error) })
            });
            problems.extend(ended.err().map(|error| error.context(format_args!("deleting instance {instance}"))));
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

    fn delete_interfaces(&mut self, session: &Session) -> Vec<Error> {
        let mut problems = vec![];
        let mut ids: Vec<String> = self.interfaces.iter().map(|interface| interface.id.clone()).collect();
        if let Some(creation) = self.interface_in_doubt.take() {
            let what = format!("a network interface of VM {}", self.name);
            let search = session.ec2().interfaces_tagged(VM_NAME, &self.name);
            let id_of_other =
                |found: Interface| self.interfaces.iter().all(|own| own.id != found.id).then_some(found.id);
            match creation.resolve(&what, &search, |created| created.id, id_of_other) {
                Ok(found) => ids.extend(found),
                Err(error) => problems.push(error),
            }
        }
        for id in &ids {
            let deleted = deletion::delete_interface(session, id);
            problems.extend(deleted.err().map(|error| error.context(format_args!("deleting network interface {id}"))));
        }
        problems
    }
}
