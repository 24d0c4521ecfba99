//! Network interfaces.

use super::interface_addresses::{self, Addresses};
use super::{Call, done, tags};
use crate::aws::error::{Error, combination};
use crate::aws::idempotency;
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, describe as list_resources};
use crate::aws::parameters::{flag, only, required, text, texts};
use crate::aws::state::State;
use crate::simulation::Item;
use serde_json::{Value, json};

const LISTING: Listing = Listing {
    kind: Kind::NetworkInterface,
    ids: "NetworkInterfaceId",
    filters: &[
        ("addresses.private-ip-address", "privateIpAddressesSet.privateIpAddress"),
        ("attachment.attachment-id", "attachment.attachmentId"),
        ("attachment.instance-id", "attachment.instanceId"),
        ("availability-zone", "availabilityZone"),
        ("description", "description"),
        ("group-id", "groupSet.groupId"),
        ("ipv6-addresses.ipv6-address", "ipv6AddressesSet.ipv6Address"),
        ("mac-address", "macAddress"),
        ("network-interface-id", "networkInterfaceId"),
        ("private-ip-address", "privateIpAddress"),
        ("status", "status"),
        ("subnet-id", "subnetId"),
        ("vpc-id", "vpcId"),
    ],
    result: "networkInterfaceSet",
};

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    list_resources(state, call, &LISTING, |_, item| item.view.clone())
}

pub(super) fn create(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = idempotency::once(state, call, |state| {
        let tags = tags::specified(state, call.parameters, Kind::NetworkInterface, &[Kind::NetworkInterface])?;
        add(state, call.account, call.parameters, tags).map(|id| json!(id))
    })?;
    let id = id.as_str().unwrap_or_default();
    let item = state.resources.get(id).ok_or_else(|| Kind::NetworkInterface.not_found(id))?;
    Ok(json!({"networkInterface": item.view, "clientToken": call.parameters["ClientToken"]}))
}

/// Adds the interface that the parameters describe, and returns its id.
pub(super) fn add(state: &mut State, account: &str, given: &Value, tags: Vec<Value>) -> Result<String, Error> {
    let subnet = state.find(Kind::Subnet, account, required(given, "SubnetId")?)?;
    let groups = groups(state, account, &subnet, &texts(given, "SecurityGroupId"))?;
    let limit = state.limit("network-interfaces");
    if state.own(Kind::NetworkInterface, account).len() >= limit {
        let message = format!("Maximum number of network interfaces '{limit}' exceeded.");
        return Err(Error::new("NetworkInterfaceLimitExceeded", message));
    }
    let addresses = interface_addresses::choose(state, &subnet, given)?;
    let id = state.new_id(Kind::NetworkInterface);
    let mac = state.ids.hex();
    let mac: Vec<&str> = (0..5).map(|at| &mac[2 * at..2 * at + 2]).collect();
    let mut view = json!({
        "networkInterfaceId": id, "subnetId": subnet.id, "vpcId": subnet.view["vpcId"],
        "availabilityZone": subnet.view["availabilityZone"], "ownerId": account, "requesterManaged": false,
        "description": text(given, "Description").unwrap_or_default(), "status": "available",
        "macAddress": format!("02:{}", mac.join(":")), "sourceDestCheck": true, "interfaceType": "interface",
        "groupSet": groups, "tagSet": tags,
    });
    show_addresses(&mut view, &addresses);
    state.add(&id, account, view, json!({}));
    Ok(id)
}

fn show_addresses(view: &mut Value, addresses: &Addresses) {
    let elements =
        |texts: &[String], key: &str| -> Vec<Value> { texts.iter().map(|text| json!({key: text})).collect() };
    let mut private = vec![json!({"privateIpAddress": addresses.primary, "primary": true})];
    private.extend(addresses.secondary.iter().map(|text| json!({"privateIpAddress": text, "primary": false})));
    view["privateIpAddress"] = json!(addresses.primary);
    view["privateDnsName"] = json!(format!("ip-{}.ec2.internal", addresses.primary.replace('.', "-")));
    view["privateIpAddressesSet"] = json!(private);
    view["ipv6AddressesSet"] = json!(elements(&addresses.ipv6, "ipv6Address"));
    if !addresses.ipv4_prefixes.is_empty() {
        view["ipv4PrefixSet"] = json!(elements(&addresses.ipv4_prefixes, "ipv4Prefix"));
    }
    if !addresses.ipv6_prefixes.is_empty() {
        view["ipv6PrefixSet"] = json!(elements(&addresses.ipv6_prefixes, "ipv6Prefix"));
    }
}

/// Returns the security groups as interfaces show them: those with these ids, or the default one of the network.
pub(super) fn groups(state: &mut State, account: &str, subnet: &Item, ids: &[&str]) -> Result<Value, Error> {
    let mut found = Vec::new();
    for id in ids {
        let group = state.find(Kind::SecurityGroup, account, id)?;
        if group.view["vpcId"] != subnet.view["vpcId"] {
            let message = format!("Security group {id} and subnet {} belong to different networks.", subnet.id);
            return Err(Error::new("InvalidParameter", message));
        }
        found.push(group);
    }
    if ids.is_empty() {
        let own = state.own(Kind::SecurityGroup, account).into_iter();
        found.extend(
            own.filter(|group| group.view["groupName"] == "default" && group.view["vpcId"] == subnet.view["vpcId"]),
        );
    }
    Ok(found.iter().map(|group| json!({"groupId": group.id, "groupName": group.view["groupName"]})).collect())
}

pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = required(call.parameters, "NetworkInterfaceId")?;
    let interface = state.find(Kind::NetworkInterface, call.account, id)?;
    if interface.text("status") != "available" {
        // A client that waits for the end of an instance must see it.
        let instance = interface.view["attachment"]["instanceId"].as_str().unwrap_or_default().to_owned();
        state.count_read(&[&instance]);
        let message = format!("Network interface '{id}' is currently in use.");
        return Err(Error::new("InvalidParameterValue", message));
    }
    super::elastic_ips::release_interface(state, id);
    state.resources.remove(id);
    done()
}

pub(super) fn modify_attribute(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    let id = required(given, "NetworkInterfaceId")?;
    let interface = state.find(Kind::NetworkInterface, call.account, id)?;
    // A request changes one attribute.
    if given.as_object().map_or(0, serde_json::Map::len) != 2 {
        return Err(combination("Exactly one attribute must be specified."));
    }
    if let Some(value) = given["SourceDestCheck"]["Value"].as_bool() {
        state.resources.set(id, "sourceDestCheck", json!(value));
    }
    if let Some(value) = given["Description"]["Value"].as_str() {
        state.resources.set(id, "description", json!(value));
    }
    if given.get("SecurityGroupId").is_some() {
        let subnet = state.find(Kind::Subnet, call.account, interface.text("subnetId"))?;
        let groups = groups(state, call.account, &subnet, &texts(given, "SecurityGroupId"))?;
        state.resources.set(id, "groupSet", groups);
    }
    if let Some(attachment) = given.get("Attachment") {
        only(attachment, &["AttachmentId", "DeleteOnTermination"])?;
        let wanted = required(attachment, "AttachmentId")?;
        if interface.view["attachment"]["attachmentId"] != wanted {
            let message = format!("The attachment '{wanted}' does not exist.");
            return Err(Error::new("InvalidAttachmentID.NotFound", message));
        }
        let mut own = interface.view["attachment"].clone();
        own["deleteOnTermination"] = json!(flag(attachment, "DeleteOnTermination"));
        state.resources.set(id, "attachment", own);
    }
    if given.get("AssociatePublicIpAddress").is_some() {
        set_public_address(state, id, flag(given, "AssociatePublicIpAddress"));
    }
    done()
}

/// Gives an interface a public address that is not an Elastic IP, or takes it away.
pub(super) fn set_public_address(state: &mut State, id: &str, wanted: bool) {
    let number = u8::from_str_radix(&state.ids.hex()[..2], 16).unwrap_or_default();
    let Some(item) = state.resources.get_mut(id) else { return };
    if wanted {
        item.view["association"] = json!({"publicIp": format!("203.0.113.{number}"), "ipOwnerId": "amazon"});
    } else if item.view["association"]["allocationId"].is_null() {
        item.view.as_object_mut().map(|view| view.remove("association"));
    }
}
