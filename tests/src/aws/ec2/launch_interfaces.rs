//! The network interfaces of a new instance.

use super::instance_types::InstanceType;
use super::interfaces;
use crate::aws::error::{Error, combination, missing};
use crate::aws::kind::Kind;
use crate::aws::parameters::{flag, list, number, only, required, text};
use crate::aws::state::State;
use serde_json::{Value, json};

/// The parameters of the request that describe the only interface of an instance.
const DIRECT: [&str; 5] = ["SubnetId", "SecurityGroupId", "SecurityGroup", "PrivateIpAddress", "Ipv6Address"];

/// An interface that the instance uses or creates.
pub(super) struct PlannedInterface {
    pub(super) zone: String,
    device: i64,
    /// The id of an interface that exists.
    existing: Option<String>,
    /// The parameters of a new one.
    given: Value,
    delete_on_termination: bool,
    public_address: Option<bool>,
}

pub(super) fn plan(
    state: &mut State,
    account: &str,
    given: &Value,
    kind: &InstanceType,
) -> Result<Vec<PlannedInterface>, Error> {
    let specified = list(given, "NetworkInterface");
    if specified.is_empty() {
        return Ok(vec![direct(state, account, given)?]);
    }
    if DIRECT.iter().any(|name| given.get(*name).is_some()) {
        let message = "Network interfaces and an instance-level subnet ID, security groups or addresses may not be \
                       specified on the same request";
        return Err(combination(message));
    }
    if specified.len() > kind.interfaces {
        let message = format!("Interface count {} exceeds the limit for {}", specified.len(), kind.name);
        return Err(Error::new("AttachmentLimitExceeded", message));
    }
    let mut planned: Vec<PlannedInterface> = Vec::new();
    for interface in specified {
        let new = specified_interface(state, account, interface, specified.len())?;
        if planned.iter().any(|known| known.device == new.device) {
            let message = format!("Each network interface requires a unique device index, got {} twice.", new.device);
            return Err(combination(message));
        }
        if planned.iter().any(|known| known.zone != new.zone) {
            return Err(combination("All network interfaces must be in the same availability zone."));
        }
        planned.push(new);
    }
    if !planned.iter().any(|interface| interface.device == 0) {
        return Err(combination("The network interface with device index 0 must be specified."));
    }
    Ok(planned)
}

/// Returns the interface of a request without `NetworkInterface`.
fn direct(state: &mut State, account: &str, given: &Value) -> Result<PlannedInterface, Error> {
    if given.get("SecurityGroup").is_some() {
        return Err(combination("The parameter groupName cannot be used with the parameter subnet"));
    }
    let subnet = text(given, "SubnetId").ok_or_else(|| missing("subnetId"))?;
    let subnet = state.find(Kind::Subnet, account, subnet)?;
    let mut new = json!({"SubnetId": subnet.id});
    for name in ["SecurityGroupId", "PrivateIpAddress"] {
        if let Some(value) = given.get(name) {
            new[name] = value.clone();
        }
    }
    if let Some(value) = given.get("Ipv6Address") {
        new["Ipv6Addresses"] = value.clone();
    }
    Ok(PlannedInterface {
        zone: subnet.text("availabilityZone").to_owned(),
        device: 0,
        existing: None,
        given: new,
        delete_on_termination: true,
        public_address: None,
    })
}

fn specified_interface(
    state: &mut State,
    account: &str,
    given: &Value,
    count: usize,
) -> Result<PlannedInterface, Error> {
    only(
        given,
        &[
            "AssociatePublicIpAddress",
            "DeleteOnTermination",
            "Description",
            "DeviceIndex",
            "SecurityGroupId",
            "Ipv6AddressCount",
            "Ipv6Addresses",
            "NetworkInterfaceId",
            "PrivateIpAddress",
            "PrivateIpAddresses",
            "SecondaryPrivateIpAddressCount",
            "SubnetId",
            "Ipv4Prefix",
            "Ipv4PrefixCount",
            "Ipv6Prefix",
            "Ipv6PrefixCount",
        ],
    )?;
    let device = number(given, "DeviceIndex").ok_or_else(|| missing("deviceIndex"))?;
    let public_address = given["AssociatePublicIpAddress"].as_bool();
    let existing = text(given, "NetworkInterfaceId");
    if public_address.is_some() && (count > 1 || existing.is_some() || device != 0) {
        let message = "The associatePublicIPAddress parameter can only be specified for the network interface with \
                       the device index 0, if it is new and the only one.";
        return Err(combination(message));
    }
    let (zone, delete_on_termination) = match existing {
        None => {
            let subnet = state.find(Kind::Subnet, account, required(given, "SubnetId")?)?;
            // New interfaces are deleted with the instance unless the client says otherwise.
            (subnet.text("availabilityZone").to_owned(), given["DeleteOnTermination"] != false)
        }
        Some(id) => {
            if let Some(name) =
                ["SubnetId", "SecurityGroupId", "PrivateIpAddress"].iter().find(|name| given.get(**name).is_some())
            {
                let message = format!("The parameter {name} cannot be used with the ID of a network interface.");
                return Err(combination(message));
            }
            let interface = state.find(Kind::NetworkInterface, account, id)?;
            if interface.text("status") != "available" {
                let message = format!("Interface: [{id}] in use.");
                return Err(Error::new("InvalidNetworkInterface.InUse", message));
            }
            (interface.text("availabilityZone").to_owned(), flag(given, "DeleteOnTermination"))
        }
    };
    let existing = existing.map(str::to_owned);
    Ok(PlannedInterface { zone, device, existing, given: given.clone(), delete_on_termination, public_address })
}

/// Creates the interface if it is new, and attaches it to the instance.
pub(super) fn attach(
    state: &mut State,
    account: &str,
    instance: &str,
    planned: &PlannedInterface,
    tags: &[Value],
) -> Result<(), Error> {
    let id = match &planned.existing {
        Some(id) => id.clone(),
        None => interfaces::add(state, account, &planned.given, tags.to_vec())?,
    };
    let attachment = json!({
        "attachmentId": format!("eni-attach-0{}", &state.ids.hex()[..16]), "deviceIndex": planned.device,
        "status": "attached", "attachTime": state.time(), "deleteOnTermination": planned.delete_on_termination,
        "instanceId": instance, "instanceOwnerId": account,
    });
    state.resources.set(&id, "attachment", attachment);
    state.resources.set(&id, "status", json!("in-use"));
    if let Some(wanted) = planned.public_address {
        interfaces::set_public_address(state, &id, wanted);
    }
    Ok(())
}
