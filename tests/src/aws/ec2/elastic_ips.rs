//! Elastic IP addresses.

use super::{Call, done, instance_views};
use crate::aws::error::{Error, combination, missing};
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, select};
use crate::aws::parameters::{required, text, texts};
use crate::aws::state::State;
use crate::simulation::Item;
use serde_json::{Value, json};

const LISTING: Listing = Listing {
    kind: Kind::Address,
    ids: "AllocationId",
    filters: &[
        ("allocation-id", "allocationId"),
        ("association-id", "associationId"),
        ("domain", "domain"),
        ("instance-id", "instanceId"),
        ("network-interface-id", "networkInterfaceId"),
        ("private-ip-address", "privateIpAddress"),
        ("public-ip", "publicIp"),
    ],
    result: "addressesSet",
};

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let mut found = select(state, call, &LISTING, |_, item| item.view.clone())?;
    let wanted = texts(call.parameters, "PublicIp");
    if let Some(address) = wanted.iter().find(|address| !found.iter().any(|view| view["publicIp"] == **address)) {
        return Err(Error::new("InvalidAddress.NotFound", format!("Address '{address}' not found.")));
    }
    found.retain(|view| wanted.is_empty() || wanted.iter().any(|address| view["publicIp"] == *address));
    Ok(json!({"addressesSet": found}))
}

pub(super) fn associate(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    let address = state.find(Kind::Address, call.account, required(given, "AllocationId")?)?;
    let interface = target(state, call)?;
    let private = text(given, "PrivateIpAddress").unwrap_or(interface.text("privateIpAddress")).to_owned();
    let own = interface.view["privateIpAddressesSet"].as_array().into_iter().flatten();
    if !own.into_iter().any(|own| own["privateIpAddress"] == private) {
        let message = format!("The address {private} does not belong to {}", interface.id);
        return Err(Error::new("InvalidParameterValue", message));
    }
    let current = address.text("networkInterfaceId");
    let free = current.is_empty() || current == interface.id;
    // In a VPC, an address moves to another interface unless the client forbids it.
    if !free && given["AllowReassociation"] == false {
        let message = format!(
            "resource {} is already associated with associate-id {}",
            address.id,
            address.text("associationId")
        );
        return Err(Error::new("Resource.AlreadyAssociated", message));
    }
    if current == interface.id {
        return Ok(json!({"associationId": address.view["associationId"]}));
    }
    release(state, &address);
    for other in state.own(Kind::Address, call.account) {
        if other.view["networkInterfaceId"] == interface.id && other.view["privateIpAddress"] == private {
            release(state, &other);
        }
    }
    let association = format!("eipassoc-0{}", &state.ids.hex()[..16]);
    let shown = json!({
        "publicIp": address.view["publicIp"], "ipOwnerId": call.account, "allocationId": address.id,
        "associationId": association,
    });
    state.resources.set(&interface.id, "association", shown);
    for (key, value) in [
        ("associationId", json!(association)),
        ("networkInterfaceId", json!(interface.id)),
        ("networkInterfaceOwnerId", json!(call.account)),
        ("privateIpAddress", json!(private)),
        ("instanceId", interface.view["attachment"]["instanceId"].clone()),
    ] {
        state.resources.set(&address.id, key, value);
    }
    Ok(json!({"associationId": association}))
}

/// Returns the interface that an address is associated with.
fn target(state: &mut State, call: &Call<'_>) -> Result<Item, Error> {
    match (text(call.parameters, "InstanceId"), text(call.parameters, "NetworkInterfaceId")) {
        (None, None) => Err(missing("instanceId")),
        (Some(_), Some(_)) => Err(combination("The parameters instanceId and networkInterfaceId exclude each other.")),
        (None, Some(id)) => state.find(Kind::NetworkInterface, call.account, id),
        (Some(id), None) => {
            let instance = state.find(Kind::Instance, call.account, id)?;
            match instance.view["instanceState"]["name"].as_str() {
                Some("running" | "stopped") => {}
                Some("terminated") => return Err(Kind::Instance.not_found(id)),
                _ => {
                    let message = format!("The pending instance '{id}' is not in a valid state for this operation.");
                    return Err(Error::new("InvalidInstanceID", message));
                }
            }
            match instance_views::interfaces(state, &instance).as_slice() {
                [only] => Ok(only.clone()),
                _ => {
                    let message = format!("There are multiple interfaces attached to instance '{id}'.");
                    Err(Error::new("InvalidInstanceID", message))
                }
            }
        }
    }
}

pub(super) fn disassociate(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = required(call.parameters, "AssociationId")?;
    let address = state.own(Kind::Address, call.account).into_iter().find(|item| item.view["associationId"] == id);
    let address = address.ok_or_else(|| {
        let message = format!("The association ID '{id}' does not exist");
        Error::new("InvalidAssociationID.NotFound", message)
    })?;
    release(state, &address);
    done()
}

/// Ends the association of an address.
fn release(state: &mut State, address: &Item) {
    if let Some(interface) = state.resources.get_mut(address.text("networkInterfaceId")) {
        interface.view.as_object_mut().map(|view| view.remove("association"));
    }
    if let Some(view) = state.resources.get_mut(&address.id).and_then(|item| item.view.as_object_mut()) {
        for key in ["associationId", "networkInterfaceId", "networkInterfaceOwnerId", "privateIpAddress", "instanceId"]
        {
            view.remove(key);
        }
    }
}

/// Ends the associations of an interface.
pub(super) fn release_interface(state: &mut State, interface: &str) {
    let used: Vec<Item> =
        state.resources.iter().filter(|item| item.id.starts_with(&Kind::Address.prefix())).cloned().collect();
    for address in used.iter().filter(|address| address.view["networkInterfaceId"] == interface) {
        release(state, address);
    }
}
