//! `create_vm`: finds what the VM needs, creates ports and a server, waits until the
//! server runs, and associates the floating IP. If a step fails, all earlier steps
//! are undone before the error is returned, also when the call is ending.

mod failure;
mod partial_vm;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::agent::{self, Encoding, NetworkAddition, Settings};
use wasm_cpi_sdk::{CreatedVm, DiskHint, Error, Network, Seal, VmRequest, clock, log};

use super::choice::Choice;
use super::leftovers::{Leftovers, boot_volumes};
use super::networks::{Networks, Nic};
use super::pools;
use super::properties::VmProperties;
use super::{REGISTRY_KEY, deletion, floating_ip, ports};
use crate::api::{Port, Server, create_once, may_have_succeeded};
use crate::session::Session;
use crate::tags::truncate;
use failure::Failure;
use partial_vm::PartialVm;

/// The device names of disks. The Agent also finds them under the kernel's prefixes.
const SYSTEM_DISK: &str = "/dev/sda";
const EPHEMERAL_DISK: &str = "/dev/sdb";

pub(crate) fn create(session: &Session, request: VmRequest) -> Result<CreatedVm, Error> {
    let properties: VmProperties = request.cloud_properties.parse()?;
    properties.check(&session.properties)?;
    let networks = Networks::plan(&request.networks, &session.properties)?;
    let port = ports::allowed_address_request(session, &properties, networks.gateway())?;
    Choice::read_ahead(session, &request, &properties, &networks, port)?;
    let allowed_address = ports::allowed_address(session, &properties, networks.gateway())?;
    let choice = Choice::prepare(session, &request, &properties, &networks)?;
    let mut partial = PartialVm::new();
    let build = Build { session, networks: &networks, choice: &choice, allowed_address };
    match build.run(request.networks, &mut partial) {
        Ok(created) => Ok(created),
        Err(failure) => {
            log::warn(format_args!(
                "creating VM {} failed: {}; undoing what was created",
                partial.name, failure.message
            ));
            Err(failure.into_error(partial.undo(session, choice.boot_volume.is_some())))
        }
    }
}

struct Build<'a> {
    session: &'a Session,
    networks: &'a Networks,
    choice: &'a Choice,
    allowed_address: Option<&'a str>,
}

impl Build<'_> {
    fn run(&self, networks: Vec<Network>, partial: &mut PartialVm) -> Result<CreatedVm, Failure> {
        let networking = self.session.networking()?;
        // Check that it exists before anything is created.
        let vip = self.networks.vip.as_ref().map(|address| floating_ip::find(&networking, address)).transpose()?;
        for (index, nic) in self.networks.nics.iter().enumerate().filter(|(_, nic)| nic.ip.is_some()) {
            let attributes = ports::PortAttributes {
                name: &partial.name,
                security_groups: &self.choice.security_groups,
                allowed_address: self.allowed_address.filter(|_| self.networks.is_gateway(index)),
            };
            let port = ports::create(&networking, nic, &attributes);
            partial.port_may_exist = port.as_ref().is_err_and(may_have_succeeded);
            partial.ports.push(port?);
        }
        let user_data = self.user_data(partial)?;
        let vm = self.server(&user_data, partial)?;
        let assigned = if self.networks.has_dynamic() { networking.ports_of(&vm)? } else { vec![] };
        if let Some(vip) = vip {
            let port = self.gateway_port(partial, &assigned, &vm)?;
            floating_ip::associate(&networking, &vip, &port.id)?;
        }
        self.join_pools(&vm, partial, &assigned)?;
        agent::created(&vm, &partial.name).map_err(Failure::final_error)?;
        let networks = networks.into_iter().map(|network| self.with_address(network, partial, &assigned)).collect();
        Ok(CreatedVm { vm, networks })
    }

    fn user_data(&self, partial: &PartialVm) -> Result<Seal, Failure> {
        let addition = |nic: &Nic| NetworkAddition {
            mac: self.port_of(nic, partial).and_then(|port| port.mac_address.clone()),
            use_dhcp: Some(self.session.properties.use_dhcp()),
            ..agent::addition(&nic.name)
        };
        let ephemeral = self.choice.flavor.ephemeral > 0;
        let settings = Settings {
            system_disk: Some(SYSTEM_DISK.to_owned()),
            ephemeral_disk: ephemeral.then(|| DiskHint::Text(EPHEMERAL_DISK.to_owned())),
            networks: self.networks.nics.iter().map(addition).collect(),
            encodings: vec![Encoding::Base64],
            ..agent::settings(&partial.name)
        };
        agent::bootstrap(&settings).map_err(Failure::final_error)
    }

    /// Creates the server in the first zone that accepts it, and waits for it.
    fn server(&self, user_data: &Seal, partial: &mut PartialVm) -> Result<String, Failure> {
        let (last, others) = self
            .choice
            .zones
            .split_last()
            .ok_or_else(|| Error::cpi("availability_zones: no zone is listed; list one, or remove the key"))?;
        for zone in others {
            match self.server_in(zone, user_data, partial) {
                Err(failure) if clock::ending().is_none() && !partial.server_may_exist => {
                    log::warn(format_args!(
                        "creating the server in zone {zone} failed: {}; trying the next zone",
                        failure.message
                    ));
                    if let Some(server) = partial.server.take() {
                        // Its ports stay for the next server.
                        self.delete_server(&server).inspect_err(|_| partial.server = Some(server))?;
                    }
                }
                outcome => return outcome,
            }
        }
        self.server_in(last, user_data, partial)
    }

    fn delete_server(&self, server: &str) -> Result<(), Error> {
        let boots_from_volume = self.choice.boot_volume.is_some();
        let volumes = if boots_from_volume { boot_volumes(self.session, server)? } else { vec![] };
        deletion::delete_server(self.session, server, &Leftovers { ports: vec![], volumes }, || Ok(()))
    }

    fn server_in(&self, zone: &str, user_data: &Seal, partial: &mut PartialVm) -> Result<String, Failure> {
        let compute = self.session.compute()?;
        let body = self.body(zone, user_data, partial)?;
        let post = || compute.create_server(&body);
        let posted = create_once(&format!("server {}", partial.name), post, || compute.server_named(&partial.name));
        partial.server_may_exist |= posted.as_ref().is_err_and(may_have_succeeded);
        let vm = posted?.id;
        partial.server = Some(vm.clone());
        self.session.poll().until(&format!("server `{vm}` to be active"), || match compute.server(&vm)? {
            Some(server) => active(&server).map(|done| done.then_some(())),
            None => Err(disappeared(&vm)),
        })?;
        Ok(vm)
    }

    fn body(&self, zone: &str, user_data: &Seal, partial: &PartialVm) -> Result<Value, Failure> {
        let Choice { image, flavor, key_name, security_groups, scheduler_hints, boot_volume, .. } = self.choice;
        let mut server = json!({
            "name": partial.name, "flavorRef": flavor.id, "key_name": key_name, "user_data": user_data.as_str(),
        });
        match boot_volume {
            None => server["imageRef"] = json!(image),
            Some(size) => {
                server["block_device_mapping_v2"] = json!([{
                    "uuid": image, "source_type": "image", "destination_type": "volume", "volume_size": size,
                    "boot_index": 0, "delete_on_termination": true,
                }]);
            }
        }
        let nics: Vec<Value> = self.networks.nics.iter().filter_map(|nic| self.nic(nic, partial)).collect();
        if !nics.is_empty() {
            server["networks"] = json!(nics);
        }
        // Existing ports have their groups; Nova assigns these to the ports that it creates.
        if self.networks.has_dynamic() && !security_groups.is_empty() {
            server["security_groups"] = security_groups.iter().map(|id| json!({"name": id})).collect();
        }
        if self.session.properties.config_drive()?.is_some() {
            server["config_drive"] = json!(true);
        }
        if !zone.is_empty() {
            server["availability_zone"] = json!(zone);
        }
        let metadata = self.metadata(partial);
        if !metadata.is_empty() {
            server["metadata"] = Value::Object(metadata);
        }
        let mut body = json!({"server": server});
        if !scheduler_hints.is_empty() {
            body["os:scheduler_hints"] = json!(scheduler_hints);
        }
        Ok(body)
    }

    fn metadata(&self, partial: &PartialVm) -> Map<String, Value> {
        let tags = self.choice.env.bosh.tags.iter().flatten();
        let mut metadata: Map<String, Value> = tags
            .filter(|(key, value)| !key.is_empty() && !value.is_null())
            .map(|(key, value)| (truncate(key), json!(truncate(value.as_str().unwrap_or(&value.to_string())))))
            .collect();
        if self.session.properties.readable_names() {
            metadata.insert(REGISTRY_KEY.to_owned(), json!(partial.name));
        }
        metadata
    }

    fn nic(&self, nic: &Nic, partial: &PartialVm) -> Option<Value> {
        match self.port_of(nic, partial) {
            Some(port) => Some(json!({"port": port.id})),
            None => nic.net_id.as_ref().map(|net_id| json!({"uuid": net_id})),
        }
    }

    /// Returns the port that was created for a manual network.
    fn port_of<'m>(&self, nic: &Nic, partial: &'m PartialVm) -> Option<&'m Port> {
        let manual = self.networks.nics.iter().filter(|nic| nic.ip.is_some());
        manual.zip(&partial.ports).find(|(other, _)| other.name == nic.name).map(|(_, port)| port)
    }

    fn gateway_port<'p>(&self, partial: &'p PartialVm, assigned: &'p [Port], vm: &str) -> Result<&'p Port, Error> {
        let nic = self.networks.gateway();
        let port = nic.and_then(|nic| self.port_of(nic, partial).or_else(|| assigned_port(nic, partial, assigned)));
        port.ok_or_else(|| {
            Error::cloud(format!("server `{vm}` has no port in its default network; check net_id of that network"))
        })
    }

    /// Adds the address in the default network to the pools of load balancers.
    fn join_pools(&self, vm: &str, partial: &mut PartialVm, assigned: &[Port]) -> Result<(), Error> {
        if self.choice.pools.is_empty() {
            return Ok(());
        }
        let place = self.gateway_port(partial, assigned, vm)?.fixed_ips.first().cloned();
        let place = place.ok_or_else(|| {
            Error::cloud(format!(
                "server `{vm}` has no address in its default network, which load balancers need; check the subnets of \
                 that network"
            ))
        })?;
        for pool in &self.choice.pools {
            let joined = pools::join(self.session, pool, &partial.name, &place.ip_address, place.subnet_id.as_deref())?;
            partial.memberships.push(joined);
        }
        if self.session.compute()?.add_metadata(vm, &pools::tags(&partial.memberships))? {
            return Ok(());
        }
        Err(disappeared(vm))
    }

    /// Returns the network with its address if it is a dynamic one.
    fn with_address(&self, mut network: Network, partial: &PartialVm, assigned: &[Port]) -> Network {
        if network.is_dynamic()
            && let Some(nic) = self.networks.nics.iter().find(|nic| nic.name == network.name)
            && let Some(port) = assigned_port(nic, partial, assigned)
        {
            network.ip = port.fixed_ips.first().map(|fixed| fixed.ip_address.clone());
        }
        network
    }
}

/// Returns the port that Nova created for the dynamic network.
fn assigned_port<'p>(nic: &Nic, partial: &PartialVm, assigned: &'p [Port]) -> Option<&'p Port> {
    assigned
        .iter()
        .filter(|port| partial.ports.iter().all(|own| own.id != port.id))
        .find(|port| nic.net_id.as_ref().is_none_or(|net_id| *net_id == port.network_id))
}

fn disappeared(vm: &str) -> Error {
    Error::vm_creation_failed(format!(
        "server `{vm}` disappeared while it was created; something else deleted it, try again"
    ))
    .ok_to_retry(true)
}

fn active(server: &Server) -> Result<bool, Error> {
    match server.status.as_str() {
        "ACTIVE" => Ok(true),
        "ERROR" => {
            let what = format!(
                "server `{}` failed: {}; correct what the cloud names, or look for the server in Nova's log",
                server.id,
                server.fault()
            );
            Err(Error::vm_creation_failed(what).ok_to_retry(true))
        }
        "DELETED" | "SOFT_DELETED" => {
            let what = format!(
                "server `{}` was deleted while it was created; something else deleted it, try again",
                server.id
            );
            Err(Error::vm_creation_failed(what).ok_to_retry(true))
        }
        _ => Ok(false),
    }
}
