//! The requests that create: network interfaces if the VM has several networks, and the instance.

use std::time::Duration;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::agent::{self, Encoding, NetworkAddition, Settings};
use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{DiskHint, Seal, log};

use super::super::networks::Nic;
use super::Build;
use super::failure::Failure;
use super::in_doubt::InDoubt;
use super::partial_vm::PartialVm;
use crate::api::ApiError;
use crate::error::is_capacity;

/// The errors after which a launch can succeed with the same parameters: the address of a VM that was just deleted is
/// not free at once, and an interface that was just created is not known everywhere, or not available yet.
const PASSING: &[&str] = &[
    "IncorrectState",
    "InvalidIPAddress.InUse",
    "InvalidNetworkInterface.InUse",
    "InvalidNetworkInterface.NotFound",
    "InvalidNetworkInterfaceID.NotFound",
];

/// How long an address may stay in use.
const ADDRESS_BUDGET: Duration = Duration::from_secs(5 * 60);

/// The tag of an interface with the name of the VM that it is for.
pub(super) const VM_NAME: &str = "bosh-cpi/vm-name";

impl Build<'_> {
    /// Creates an interface for each NIC: with several networks, the Agent needs their MAC addresses.
    pub(super) fn create_interfaces(&self, partial: &mut PartialVm) -> Result<(), Failure> {
        let mut tags = self.plan.tags.clone();
        tags.insert(VM_NAME, &partial.name);
        for (index, nic) in self.networks.nics.iter().enumerate() {
            let mut parameters = self.interface(nic);
            let token = self.session.tokens.token(&format!("interface {index}"));
            parameters.insert("ClientToken".to_owned(), json!(token));
            parameters.insert("TagSpecification".to_owned(), tags.specification(&["network-interface"]));
            let query = self.session.ec2().create_interface(&Value::Object(parameters));
            let query = query.passing(PASSING).for_at_most(ADDRESS_BUDGET);
            let created = query.send();
            if created.as_ref().is_err_and(ApiError::may_have_succeeded) {
                partial.interface_in_doubt = Some(InDoubt { token, request: query });
            }
            let created = created?;
            let id = created.id.clone();
            partial.interfaces.push(created);
            for prefix in [&nic.ipv4_prefix, &nic.ipv6_prefix].into_iter().flatten() {
                self.assign_prefix(&id, prefix)?;
            }
            if self.properties.has_public_ip() {
                self.session.ec2().set_public_address(&id, true).send()?;
            }
        }
        Ok(())
    }

    /// Delegates a prefix to an interface. EC2 refuses this in the request that creates the interface with an address.
    fn assign_prefix(&self, interface: &str, prefix: &str) -> Result<(), Failure> {
        let ec2 = self.session.ec2();
        let (assign, lookup) = (ec2.assign_prefix(interface, prefix), ec2.interface(interface));
        let poll = Poll::for_at_most(ADDRESS_BUDGET).with_jitter();
        poll.until(&format!("prefix {prefix} to be free for network interface {interface}"), || {
            let Err(error) = assign.send() else { return Ok(Some(())) };
            // An earlier request may have had its effect although its answer got lost.
            let found = lookup.send().map_err(Failure::from)?;
            match found.iter().any(|found| found.prefixes.iter().any(|own| own == prefix)) {
                true => Ok(Some(())),
                false if error.is("InvalidIPAddress.InUse") => Ok(None),
                false => Err(Failure::from(error).into()),
            }
        })
        .map_err(Failure::from)
    }

    pub(super) fn settings(&self, partial: &PartialVm) -> Settings {
        let disks = &self.plan.disks;
        let addition = |(nic, name): (usize, &String)| NetworkAddition {
            mac: partial.interfaces.get(nic).map(|interface| interface.mac.clone()),
            use_dhcp: Some(true),
            ..agent::addition(name)
        };
        let names = self
            .networks
            .nics
            .iter()
            .enumerate()
            .flat_map(|(index, nic)| nic.networks.iter().map(move |name| (index, name)));
        Settings {
            system_disk: Some(disks.system.clone()),
            ephemeral_disk: disks.ephemeral.clone().map(DiskHint::Text),
            raw_ephemeral_disks: disks.raw.iter().cloned().map(DiskHint::Text).collect(),
            networks: names.map(addition).collect(),
            encodings: vec![Encoding::Base64],
            ..agent::settings(&partial.name)
        }
    }

    /// Launches the instance, as a spot instance first if the operator wants one.
    pub(super) fn launch(&self, user_data: &Seal, partial: &mut PartialVm) -> Result<String, Failure> {
        let Some(price) = self.properties.max_price()? else {
            return self.run_instance("vm", self.parameters(user_data, partial)?, partial).map_err(Failure::from);
        };
        let mut spot = self.parameters(user_data, partial)?;
        let options =
            json!({"MaxPrice": price, "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"});
        spot.insert("InstanceMarketOptions".to_owned(), json!({"MarketType": "spot", "SpotOptions": options}));
        match self.run_instance("spot vm", spot, partial) {
            Err(error)
                if self.properties.falls_back_to_demand() && !error.may_have_succeeded() && error.code.is_some() =>
            {
                log::warn(format_args!("{error}; launching an instance on demand (spot_ondemand_fallback)"));
                Ok(self.run_instance("vm", self.parameters(user_data, partial)?, partial)?)
            }
            Err(error) if is_capacity(error.code()) => {
                let mut failure = Failure::from(error);
                failure.message += "; raise spot_bid_price, or set spot_ondemand_fallback";
                Err(failure)
            }
            outcome => Ok(outcome?),
        }
    }

    fn run_instance(
        &self,
        resource: &str,
        mut parameters: Map<String, Value>,
        partial: &mut PartialVm,
    ) -> Result<String, ApiError> {
        let token = self.session.tokens.token(resource);
        parameters.insert("ClientToken".to_owned(), json!(token));
        let query = self.session.ec2().run_instances(&Value::Object(parameters));
        let query = query.passing(PASSING).for_at_most(ADDRESS_BUDGET);
        let launched = query.send();
        match &launched {
            Ok(vm) => partial.instance = Some(vm.clone()),
            Err(error) if error.may_have_succeeded() => {
                partial.launches_in_doubt.push(InDoubt { token, request: query });
            }
            Err(_) => {}
        }
        launched
    }

    /// Returns the parameters of `RunInstances` without its token.
    fn parameters(&self, user_data: &Seal, partial: &PartialVm) -> Result<Map<String, Value>, Failure> {
        let (vm, plan, properties) = (self.properties, self.plan, &self.session.properties);
        let mut instance_tags = plan.tags.clone();
        plan.connections.note(&mut instance_tags);
        let mut specifications: Vec<Value> = vec![];
        let types: &[&str] = if partial.interfaces.is_empty() { &["volume", "network-interface"] } else { &["volume"] };
        for (tags, types) in [(&instance_tags, &["instance"][..]), (&plan.tags, types)] {
            specifications.extend(tags.specification(types).as_array().cloned().unwrap_or_default());
        }
        let mut placement = json!({"AvailabilityZone": vm.zone()});
        if let Some(group) = vm.placement_group() {
            placement["GroupName"] = json!(group);
        }
        if let Some(tenancy) = vm.tenancy() {
            placement["Tenancy"] = json!(tenancy);
        }
        let parameters = json!({
            "ImageId": plan.image, "InstanceType": vm.instance_type(), "MinCount": 1, "MaxCount": 1,
            "UserData": user_data.as_str(), "Placement": placement, "BlockDeviceMapping": plan.disks.mappings,
            "KeyName": vm.key_name(properties), "MetadataOptions": vm.metadata_options(properties)?,
            "IamInstanceProfile": vm.instance_profile(properties).map(|name| json!({"Name": name})),
            "NetworkInterface": self.network_interfaces(partial),
            "TagSpecification": if specifications.is_empty() { Value::Null } else { json!(specifications) },
        });
        Ok(parameters.as_object().cloned().unwrap_or_default())
    }

    /// Returns the interfaces of the instance: those that exist already, or the only one, which the launch creates.
    fn network_interfaces(&self, partial: &PartialVm) -> Vec<Value> {
        if !partial.interfaces.is_empty() {
            let existing = partial.interfaces.iter().enumerate();
            return existing
                .map(|(index, interface)| json!({"DeviceIndex": index, "NetworkInterfaceId": interface.id}))
                .collect();
        }
        let new = self.networks.nics.iter().enumerate().map(|(index, nic)| {
            let mut interface = self.interface(nic);
            interface.insert("DeviceIndex".to_owned(), json!(index));
            interface.insert("DeleteOnTermination".to_owned(), json!(true));
            // Without this, the subnet decides (MapPublicIpOnLaunch), and not the operator's cloud-config.
            let has_public_ip = json!(self.properties.has_public_ip());
            interface.insert("AssociatePublicIpAddress".to_owned(), has_public_ip);
            Value::Object(interface)
        });
        new.collect()
    }

    /// Returns the parameters that a new interface has in both requests.
    fn interface(&self, nic: &Nic) -> Map<String, Value> {
        let parameters = json!({
            "SubnetId": nic.subnet, "SecurityGroupId": self.plan.security_groups, "PrivateIpAddress": nic.ipv4,
            "Ipv6Addresses": nic.ipv6.as_ref().map(|address| json!([{"Ipv6Address": address}])),
        });
        parameters.as_object().cloned().unwrap_or_default()
    }
}
