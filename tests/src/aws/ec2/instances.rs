//! Instances: lists them, and changes their attributes.

use super::{Call, done, instance_views};
use crate::aws::error::{Error, combination, invalid};
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, page, select};
use crate::aws::parameters::{required, texts};
use crate::aws::state::State;
use crate::simulation::Item;
use serde_json::{Map, Value, json};

const LISTING: Listing = Listing {
    kind: Kind::Instance,
    ids: "InstanceId",
    filters: &[
        ("availability-zone", "placement.availabilityZone"),
        ("block-device-mapping.volume-id", "blockDeviceMapping.ebs.volumeId"),
        ("client-token", "clientToken"),
        ("image-id", "imageId"),
        ("instance-id", "instanceId"),
        ("instance-state-code", "instanceState.code"),
        ("instance-state-name", "instanceState.name"),
        ("instance-type", "instanceType"),
        ("instance.group-id", "groupSet.groupId"),
        ("key-name", "keyName"),
        (
            "network-interface.addresses.private-ip-address",
            "networkInterfaceSet.privateIpAddressesSet.privateIpAddress",
        ),
        ("network-interface.network-interface-id", "networkInterfaceSet.networkInterfaceId"),
        ("private-ip-address", "privateIpAddress"),
        ("subnet-id", "subnetId"),
        ("vpc-id", "vpcId"),
    ],
    result: "reservationSet",
};

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let found = select(state, call, &LISTING, instance_views::view)?;
    let ids = found.iter().filter_map(|view| view["instanceId"].as_str());
    let reservations =
        ids.filter_map(|id| state.resources.get(id).map(|item| instance_views::reservation(state, &[item])));
    page(call.parameters, &LISTING, reservations.collect())
}

/// Finds an instance that was not terminated.
pub(super) fn find_alive(state: &mut State, call: &Call<'_>, id: &str) -> Result<Item, Error> {
    let instance = state.find(Kind::Instance, call.account, id)?;
    match instance.view["instanceState"]["name"].as_str() {
        Some("terminated" | "shutting-down") => {
            let message = format!("The instance '{id}' is not in a state from which it can be changed.");
            Err(Error::new("IncorrectInstanceState", message))
        }
        _ => Ok(instance),
    }
}

pub(super) fn reboot(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    for id in texts(call.parameters, "InstanceId") {
        find_alive(state, call, id)?;
    }
    done()
}

pub(super) fn describe_attribute(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let instance = state.find(Kind::Instance, call.account, required(call.parameters, "InstanceId")?)?;
    let mut result = json!({"instanceId": instance.id});
    match required(call.parameters, "Attribute")? {
        "userData" => {
            let data = &instance.hidden["user_data"];
            result["userData"] = if data.is_null() { json!({}) } else { json!({"value": data}) };
        }
        "disableApiTermination" => {
            result["disableApiTermination"] = json!({"value": instance.hidden["protected"] == true});
        }
        "sourceDestCheck" => {
            let view = instance_views::view(state, &instance);
            result["sourceDestCheck"] = json!({"value": view["sourceDestCheck"]});
        }
        "instanceType" => result["instanceType"] = json!({"value": instance.view["instanceType"]}),
        other => return Err(invalid("attribute", other, "The simulator does not have this attribute.")),
    }
    Ok(result)
}

pub(super) fn modify_attribute(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    let instance = find_alive(state, call, required(given, "InstanceId")?)?;
    if given.as_object().map_or(0, Map::len) != 2 {
        return Err(combination("Exactly one attribute must be specified."));
    }
    if let Some(value) = given["SourceDestCheck"]["Value"].as_bool() {
        match instance_views::interfaces(state, &instance).as_slice() {
            [only] => state.resources.set(&only.id, "sourceDestCheck", json!(value)),
            _ => {
                let message = format!("There are multiple interfaces attached to instance '{}'.", instance.id);
                return Err(Error::new("InvalidInstanceID", message));
            }
        }
    }
    if let Some(value) = given["DisableApiTermination"]["Value"].as_bool()
        && let Some(item) = state.resources.get_mut(&instance.id)
    {
        item.hidden["protected"] = json!(value);
    }
    done()
}
