//! `create_vm`: chooses, then makes ports and a server, waits for it, and gives
//! it its floating IP. What fails half-way is taken back before the error is
//! answered, also when the call is ending.

mod failure;
mod made;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::agent::{self, Encoding, NetworkAddition, Settings};
use wasm_cpi_sdk::{CreatedVm, DiskHint, Error, Network, Seal, VmRequest, clock, log};

use super::choose::Choice;
use super::leftovers::{Leftovers, boot_volumes};
use super::networks::{Networks, Nic};
use super::pools;
use super::properties::VmProperties;
use super::{REGISTRY_KEY, floating_ip, ports, remove};
use crate::api::{Port, Server, once, unclear};
use crate::session::Session;
use crate::tags::cut;
use failure::Failure;
use made::Made;

/// What Nova takes as user data, in Base64.
const USER_DATA_BYTES: u32 = 65_535;
/// Where the Agent looks for disks, under whichever name the kernel has for them.
const SYSTEM_DISK: &str = "/dev/sda";
const EPHEMERAL_DISK: &str = "/dev/sdb";

pub(crate) fn create(session: &Session, request: VmRequest) -> Result<CreatedVm, Error> {
    let properties: VmProperties = request.cloud_properties.parse()?;
    properties.check(&session.properties)?;
    let networks = Networks::plan(&request.networks, &session.properties)?;
    let allowed_address = ports::allowed_address(session, &properties, networks.gateway())?;
    let choice = Choice::make(session, &request, &properties, &networks)?;
    let mut made = Made::new();
    let build = Build { session, networks: &networks, choice: &choice, allowed_address };
    match build.run(request.networks, &mut made) {
        Ok(created) => Ok(created),
        Err(failure) => {
            log::warn(format_args!("creating VM {} failed: {}; undoing it", made.name, failure.message));
            Err(failure.answer(made.undo(session, choice.boot_volume.is_some())))
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
    fn run(&self, networks: Vec<Network>, made: &mut Made) -> Result<CreatedVm, Failure> {
        let networking = self.session.networking()?;
        // Known to exist before the server does.
        let vip = self.networks.vip.as_ref().map(|address| floating_ip::find(&networking, address)).transpose()?;
        for (index, nic) in self.networks.nics.iter().enumerate().filter(|(_, nic)| nic.ip.is_some()) {
            let needs = ports::PortNeeds {
                name: &made.name,
                security_groups: &self.choice.security_groups,
                allowed_address: self.allowed_address.filter(|_| self.networks.is_gateway(index)),
            };
            let port = ports::create(&networking, nic, &needs);
            made.unclear_port = port.as_ref().is_err_and(unclear);
            made.ports.push(port?);
        }
        let user_data = self.user_data(made)?;
        let vm = self.server(&user_data, made)?;
        let assigned = if self.networks.has_dynamic() { networking.ports_of(&vm)? } else { vec![] };
        if let Some(vip) = vip {
            let port = self.gateway_port(made, &assigned, &vm)?;
            floating_ip::associate(&networking, &vip, &port.id)?;
        }
        self.join_pools(&vm, made, &assigned)?;
        agent::created(&vm, &made.name).map_err(Failure::last)?;
        let networks = networks.into_iter().map(|network| self.with_address(network, made, &assigned)).collect();
        Ok(CreatedVm { vm, networks })
    }

    fn user_data(&self, made: &Made) -> Result<Seal, Failure> {
        let addition = |nic: &Nic| NetworkAddition {
            mac: self.port_of(nic, made).and_then(|port| port.mac_address.clone()),
            use_dhcp: Some(self.session.properties.use_dhcp()),
            ..agent::addition(&nic.name)
        };
        let ephemeral = self.choice.flavor.ephemeral > 0;
        let settings = Settings {
            system_disk: Some(SYSTEM_DISK.to_owned()),
            ephemeral_disk: ephemeral.then(|| DiskHint::Text(EPHEMERAL_DISK.to_owned())),
            networks: self.networks.nics.iter().map(addition).collect(),
            encodings: vec![Encoding::Base64],
            max_bytes: Some(USER_DATA_BYTES),
            ..agent::settings(&made.name)
        };
        agent::bootstrap(&settings).map_err(Failure::last)
    }

    /// Makes the server in the first zone that takes it, and waits for it.
    fn server(&self, user_data: &Seal, made: &mut Made) -> Result<String, Failure> {
        let (last, others) = self.choice.zones.split_last().ok_or_else(|| Error::cpi("no zone to try"))?;
        for zone in others {
            match self.server_in(zone, user_data, made) {
                Err(failure) if clock::ending().is_none() && !made.unclear => {
                    log::warn(format_args!("zone {zone}: {}; trying the next one", failure.message));
                    if let Some(server) = made.server.take() {
                        // Its ports stay: the next server gets them.
                        self.drop_server(&server).inspect_err(|_| made.server = Some(server))?;
                    }
                }
                outcome => return outcome,
            }
        }
        self.server_in(last, user_data, made)
    }

    fn drop_server(&self, server: &str) -> Result<(), Error> {
        let boots_from_volume = self.choice.boot_volume.is_some();
        let volumes = if boots_from_volume { boot_volumes(self.session, server)? } else { vec![] };
        remove::server(self.session, server, &Leftovers { ports: vec![], volumes }, || Ok(()))
    }

    fn server_in(&self, zone: &str, user_data: &Seal, made: &mut Made) -> Result<String, Failure> {
        let compute = self.session.compute()?;
        let body = self.body(zone, user_data, made)?;
        let post = || compute.create_server(&body);
        let posted = once(&format!("server {}", made.name), post, || compute.server_named(&made.name));
        made.unclear |= posted.as_ref().is_err_and(unclear);
        let vm = posted?.id;
        made.server = Some(vm.clone());
        self.session.poll().until(&format!("server `{vm}` to be active"), || match compute.server(&vm)? {
            Some(server) => active(&server).map(|done| done.then_some(())),
            None => Err(Error::vm_creation_failed(format!("server `{vm}` is gone while it was made"), true)),
        })?;
        Ok(vm)
    }

    fn body(&self, zone: &str, user_data: &Seal, made: &Made) -> Result<Value, Failure> {
        let Choice { image, flavor, key_name, security_groups, scheduler_hints, boot_volume, .. } = self.choice;
        let mut server = json!({
            "name": made.name, "flavorRef": flavor.id, "key_name": key_name, "user_data": user_data.as_str(),
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
        let nics: Vec<Value> = self.networks.nics.iter().filter_map(|nic| self.nic(nic, made)).collect();
        if !nics.is_empty() {
            server["networks"] = json!(nics);
        }
        // Ports have their groups; Nova gives these to what it makes itself.
        if self.networks.has_dynamic() && !security_groups.is_empty() {
            server["security_groups"] = security_groups.iter().map(|id| json!({"name": id})).collect();
        }
        if self.session.properties.config_drive()?.is_some() {
            server["config_drive"] = json!(true);
        }
        if !zone.is_empty() {
            server["availability_zone"] = json!(zone);
        }
        let metadata = self.metadata(made);
        if !metadata.is_empty() {
            server["metadata"] = Value::Object(metadata);
        }
        let mut body = json!({"server": server});
        if !scheduler_hints.is_empty() {
            body["os:scheduler_hints"] = json!(scheduler_hints);
        }
        Ok(body)
    }

    fn metadata(&self, made: &Made) -> Map<String, Value> {
        let tags = self.choice.env.bosh.tags.iter().flatten();
        let mut metadata: Map<String, Value> = tags
            .filter(|(key, value)| !key.is_empty() && !value.is_null())
            .map(|(key, value)| (cut(key), json!(cut(value.as_str().unwrap_or(&value.to_string())))))
            .collect();
        if self.session.properties.readable_names() {
            metadata.insert(REGISTRY_KEY.to_owned(), json!(made.name));
        }
        metadata
    }

    fn nic(&self, nic: &Nic, made: &Made) -> Option<Value> {
        match self.port_of(nic, made) {
            Some(port) => Some(json!({"port": port.id})),
            None => nic.net_id.as_ref().map(|net_id| json!({"uuid": net_id})),
        }
    }

    /// The port that was made for a manual network.
    fn port_of<'m>(&self, nic: &Nic, made: &'m Made) -> Option<&'m Port> {
        let manual = self.networks.nics.iter().filter(|nic| nic.ip.is_some());
        manual.zip(&made.ports).find(|(other, _)| other.name == nic.name).map(|(_, port)| port)
    }

    fn gateway_port<'p>(&self, made: &'p Made, assigned: &'p [Port], vm: &str) -> Result<&'p Port, Error> {
        let nic = self.networks.gateway();
        let port = nic.and_then(|nic| self.port_of(nic, made).or_else(|| given(nic, made, assigned)));
        port.ok_or_else(|| Error::cloud(format!("server `{vm}` has no port in its default network")))
    }

    /// With the address in the default network.
    fn join_pools(&self, vm: &str, made: &mut Made, assigned: &[Port]) -> Result<(), Error> {
        if self.choice.pools.is_empty() {
            return Ok(());
        }
        let place = self.gateway_port(made, assigned, vm)?.fixed_ips.first().cloned();
        let place = place.ok_or_else(|| Error::cloud(format!("server `{vm}` has no address for load balancers")))?;
        for pool in &self.choice.pools {
            let joined = pools::join(self.session, pool, &made.name, &place.ip_address, place.subnet_id.as_deref())?;
            made.memberships.push(joined);
        }
        Ok(self.session.compute()?.add_metadata(vm, &pools::tags(&made.memberships))?)
    }

    /// The network as it is now: a dynamic one has an address.
    fn with_address(&self, mut network: Network, made: &Made, assigned: &[Port]) -> Network {
        if network.is_dynamic()
            && let Some(nic) = self.networks.nics.iter().find(|nic| nic.name == network.name)
            && let Some(port) = given(nic, made, assigned)
        {
            network.ip = port.fixed_ips.first().map(|fixed| fixed.ip_address.clone());
        }
        network
    }
}

/// The port that Nova made for the dynamic network.
fn given<'p>(nic: &Nic, made: &Made, assigned: &'p [Port]) -> Option<&'p Port> {
    assigned
        .iter()
        .filter(|port| made.ports.iter().all(|own| own.id != port.id))
        .find(|port| nic.net_id.as_ref().is_none_or(|net_id| *net_id == port.network_id))
}

fn active(server: &Server) -> Result<bool, Error> {
    match server.status.as_str() {
        "ACTIVE" => Ok(true),
        "ERROR" => Err(Error::vm_creation_failed(format!("server `{}` failed: {}", server.id, server.fault()), true)),
        "DELETED" | "SOFT_DELETED" => {
            Err(Error::vm_creation_failed(format!("server `{}` was deleted while it was made", server.id), true))
        }
        _ => Ok(false),
    }
}
