//! Instances as responses show them: with their interfaces and volumes.

use super::attachments;
use crate::aws::kind::Kind;
use crate::aws::state::State;
use crate::simulation::Item;
use serde_json::{Value, json};

/// Returns the interfaces of an instance, in the order of their devices.
pub(super) fn interfaces(state: &State, instance: &Item) -> Vec<Item> {
    let mut own = state.own(Kind::NetworkInterface, &instance.project);
    own.retain(|interface| interface.view["attachment"]["instanceId"] == instance.id);
    own.sort_by_key(|interface| interface.view["attachment"]["deviceIndex"].as_i64());
    own
}

pub(super) fn view(state: &State, instance: &Item) -> Value {
    let mut view = instance.view.clone();
    let interfaces = interfaces(state, instance);
    view["networkInterfaceSet"] = interfaces.iter().map(interface_view).collect();
    view["blockDeviceMapping"] = attachments::attachments_of(state, instance)
        .iter()
        .map(|attachment| {
            let keys = ["volumeId", "status", "attachTime", "deleteOnTermination"];
            let ebs: serde_json::Map<String, Value> =
                keys.iter().map(|key| ((*key).to_owned(), attachment[*key].clone())).collect();
            json!({"deviceName": attachment["device"], "ebs": ebs})
        })
        .collect();
    if let Some(first) = interfaces.first() {
        for key in ["subnetId", "vpcId", "privateIpAddress", "privateDnsName", "sourceDestCheck", "groupSet"] {
            view[key] = first.view[key].clone();
        }
        if let Some(address) = first.view["association"].get("publicIp") {
            view["ipAddress"] = address.clone();
        }
        if let Some(address) = first.view["ipv6AddressesSet"][0].get("ipv6Address") {
            view["ipv6Address"] = address.clone();
        }
    }
    view
}

fn interface_view(interface: &Item) -> Value {
    const KEYS: [&str; 16] = [
        "networkInterfaceId",
        "subnetId",
        "vpcId",
        "description",
        "ownerId",
        "status",
        "macAddress",
        "privateIpAddress",
        "privateDnsName",
        "sourceDestCheck",
        "groupSet",
        "interfaceType",
        "privateIpAddressesSet",
        "ipv6AddressesSet",
        "ipv4PrefixSet",
        "ipv6PrefixSet",
    ];
    let mut view = json!({});
    for key in KEYS {
        if let Some(value) = interface.view.get(key) {
            view[key] = value.clone();
        }
    }
    let attachment = &interface.view["attachment"];
    let keys = ["attachmentId", "deviceIndex", "status", "attachTime", "deleteOnTermination"];
    view["attachment"] = keys.iter().map(|key| ((*key).to_owned(), attachment[*key].clone())).collect();
    let association = &interface.view["association"];
    if association.is_object() {
        view["association"] = json!({"publicIp": association["publicIp"], "ipOwnerId": association["ipOwnerId"]});
    }
    view
}

/// Returns the reservation of these instances.
pub(super) fn reservation(state: &State, instances: &[&Item]) -> Value {
    let first = instances.first().map(|first| (&first.hidden["reservation"], &first.project));
    let (reservation, owner) = first.map_or((json!(""), ""), |(id, owner)| (id.clone(), owner.as_str()));
    let shown: Vec<Value> = instances.iter().map(|instance| view(state, instance)).collect();
    json!({"reservationId": reservation, "ownerId": owner, "groupSet": [], "instancesSet": shown})
}
