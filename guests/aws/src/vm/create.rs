//! `create_vm`: finds what the VM needs in one batch of requests, launches an instance in one request, waits until it
//! runs, and connects it. If a step fails, all earlier steps are undone before the error is returned, also when the
//! call is ending.

pub(super) mod failure;
mod in_doubt;
mod launch;
mod partial_vm;
mod plan;

use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{CreatedVm, Error, Network, VmRequest, agent, log};

use super::RUNNING_TIMEOUT;
use super::deletion::UNKNOWN_YET;
use super::networks::Networks;
use super::properties::VmProperties;
use crate::api::ec2::{Instance, Interface};
use crate::api::{Batch, Query};
use crate::session::Session;
use failure::Failure;
use partial_vm::PartialVm;
use plan::Plan;

pub(crate) fn create(session: &Session, request: VmRequest) -> Result<CreatedVm, Error> {
    let properties: VmProperties = request.cloud_properties.parse()?;
    properties.check()?;
    let networks = Networks::plan(&request.networks)?;
    let plan =
        Plan::prepare(session, &request, &properties, &networks).map_err(|failure| failure.into_error(Ok(())))?;
    let mut partial = PartialVm::new();
    let build = Build { session, properties: &properties, networks: &networks, plan: &plan };
    match build.run(request.networks, &mut partial) {
        Ok(created) => Ok(created),
        Err(failure) => {
            log::warn(format_args!(
                "creating VM {} failed: {}; undoing what was created",
                partial.name, failure.message
            ));
            Err(failure.into_error(partial.undo(session, &plan.connections)))
        }
    }
}

struct Build<'a> {
    session: &'a Session,
    properties: &'a VmProperties,
    networks: &'a Networks,
    plan: &'a Plan,
}

impl Build<'_> {
    fn run(&self, networks: Vec<Network>, partial: &mut PartialVm) -> Result<CreatedVm, Failure> {
        if !self.networks.is_single() {
            self.create_interfaces(partial)?;
        }
        let user_data = agent::bootstrap(&self.settings(partial)).map_err(Failure::final_error)?;
        let vm = self.launch(&user_data, partial)?;
        let instance = self.wait_until_running(&vm)?;
        self.connect(&instance)?;
        agent::created(&vm, &vm).map_err(Failure::final_error)?;
        let networks = networks.into_iter().map(|network| self.with_address(network, &instance)).collect();
        Ok(CreatedVm { vm, networks })
    }

    fn wait_until_running(&self, vm: &str) -> Result<Instance, Failure> {
        let ec2 = self.session.ec2();
        // EC2 may not know an instance everywhere that it just launched.
        let query = ec2.instance(vm).passing(UNKNOWN_YET);
        let poll = Poll::for_at_most(RUNNING_TIMEOUT).with_jitter();
        poll.until(&format!("instance `{vm}` to run"), || {
            let found = query.send().map_err(Failure::from)?;
            match found.into_iter().find(|instance| instance.id == vm) {
                Some(instance) if instance.state == "running" => Ok(Some(instance)),
                Some(instance) if instance.state == "pending" => Ok(None),
                Some(instance) => Err(failure::ended(&instance)),
                None => Ok(None),
            }
        })
        .map_err(Failure::from)
    }

    /// Sets what a launch cannot set, and connects the instance to what points to it.
    fn connect(&self, instance: &Instance) -> Result<(), Failure> {
        let ec2 = self.session.ec2();
        let interfaces = in_order(instance);
        let mut changes: Vec<Query<()>> = vec![];
        for interface in &interfaces {
            if !self.properties.checks_source_and_destination() {
                changes.push(ec2.set_source_dest_check(&interface.id, false));
            }
            // An interface that existed before the launch stays after the end of the instance, unless this is set.
            if let (false, Some(attachment)) = (self.networks.is_single(), &interface.attachment) {
                changes.push(ec2.set_delete_on_termination(&interface.id, attachment, true));
            }
        }
        if let (Some(vip), Some(allocation)) = (&self.networks.vip, &self.plan.allocation) {
            let interface = interfaces.get(vip.nic).ok_or_else(|| without_interface(instance))?;
            changes.push(ec2.associate_address(allocation, &interface.id));
        }
        changes.extend(self.plan.connections.register(self.session, &instance.id, &self.plan.target_groups));
        let mut batch = Batch::default();
        let tickets: Vec<_> = changes.into_iter().map(|change| batch.add(change)).collect();
        let mut answers = batch.send();
        for ticket in tickets {
            answers.take(&ticket)?;
        }
        if self.plan.connections.has_routes() {
            let first = interfaces.first().ok_or_else(|| without_interface(instance))?;
            self.plan.connections.advertise(self.session, &first.id)?;
        }
        Ok(())
    }

    /// Returns the network with its address if it is a dynamic one.
    fn with_address(&self, mut network: Network, instance: &Instance) -> Network {
        if network.is_dynamic()
            && let Some(nic) = self.networks.nic_of(&network.name)
            && let Some(interface) = in_order(instance).get(nic)
        {
            network.ip = interface.private_ip.clone();
        }
        network
    }
}

/// Returns the interfaces of an instance in the order of their devices.
fn in_order(instance: &Instance) -> Vec<Interface> {
    let mut interfaces = instance.interfaces.clone();
    interfaces.sort_by_key(|interface| interface.device_index);
    interfaces
}

fn without_interface(instance: &Instance) -> Error {
    Error::cloud(format!("EC2 shows no network interface of instance `{}`", instance.id))
}
