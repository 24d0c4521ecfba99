//! Neutron's ports: addresses on networks, and the devices that use them.

use super::message::{Answer, Response, neutron_error};
use super::network::{
    check_quota, list_matching, not_found, security_group, sees, select_fields, unrecognized_attribute,
};
use super::simulator::Call;
use super::state::State;
use super::table::{Item, unknown_key};
use super::{clock, subnets};
use serde_json::{Value, json};
use std::net::IpAddr;

const KEYS: [&str; 15] = [
    "network_id",
    "name",
    "fixed_ips",
    "security_groups",
    "allowed_address_pairs",
    "port_security_enabled",
    "device_id",
    "device_owner",
    "admin_state_up",
    "mac_address",
    "description",
    "binding:vnic_type",
    "tenant_id",
    "project_id",
    "tags",
];

/// Further query parameters of a list.
const FILTERS: [&str; 8] = ["id", "status", "fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse"];

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        ("GET", ["ports"]) => list(state, call),
        ("POST", ["ports"]) => create(state, call),
        ("GET", ["ports", id]) => {
            state.count_read([*id]);
            let port = find(state, call, id)?;
            Ok(Response::json(200, &json!({"port": select_fields(call, &port.view)})))
        }
        ("PUT", ["ports", id]) => update(state, call, id),
        ("PUT", ["ports", id, "tags"]) => {
            find(state, call, id)?;
            let tags = call.body["tags"].clone();
            state.ports.set(id, "tags", tags.clone());
            Ok(Response::json(200, &json!({"tags": tags})))
        }
        ("PUT", ["ports", id, "tags", tag]) => {
            let mut tags = find(state, call, id)?.view["tags"].as_array().cloned().unwrap_or_default();
            if !tags.contains(&json!(tag)) {
                tags.push(json!(tag));
            }
            state.ports.set(id, "tags", json!(tags));
            Ok(Response::new(201))
        }
        ("DELETE", ["ports", id]) => {
            let owner = find(state, call, id)?.text("device_owner").to_owned();
            if owner.starts_with("network:router") {
                let message =
                    format!("Port {id} cannot be deleted directly via the port API: has device owner {owner}.");
                return Err(neutron_error(409, "ServicePortInUse", &message));
            }
            remove(state, id);
            Ok(Response::new(204))
        }
        _ => Err(not_found(call)),
    }
}

fn find<'a>(state: &'a State, call: &Call, id: &str) -> Result<&'a Item, Response> {
    let port = state.ports.get(id).filter(|port| call.session.sees(&port.project));
    port.ok_or_else(|| neutron_error(404, "PortNotFound", &format!("Port {id} could not be found.")))
}

fn list(state: &mut State, call: &Call) -> Answer {
    let names = call.request.query.iter().map(|(name, _)| name.as_str());
    let known = |name: &&str| KEYS.contains(name) || FILTERS.contains(name);
    if let Some(name) = names.into_iter().find(|name| !known(name)) {
        let message = format!("['{name}'] is invalid attribute for filtering");
        return Err(neutron_error(400, "HTTPBadRequest", &message));
    }
    let ids: Vec<String> = state.ports.iter().map(|port| port.id.clone()).collect();
    state.count_read(ids.iter().map(String::as_str));
    // `fixed_ips=ip_address=10.0.0.5`: some address must match each of these.
    let wanted: Vec<(&str, &str)> = call
        .request
        .query
        .iter()
        .filter(|(name, _)| name == "fixed_ips")
        .filter_map(|(_, value)| value.split_once('='))
        .collect();
    let addressed = |port: &&Item| {
        let ips = port.view["fixed_ips"].as_array().cloned().unwrap_or_default();
        wanted.iter().all(|(key, value)| ips.iter().any(|ip| ip[key].as_str() == Some(value)))
    };
    // `tags=a,b`: the port must have all of these tags.
    let tags: Vec<Value> =
        call.request.query_value("tags").into_iter().flat_map(|tags| tags.split(',')).map(Value::from).collect();
    let tagged = |port: &&Item| {
        let has = |tag| port.view["tags"].as_array().is_some_and(|all| all.contains(tag));
        tags.iter().all(has)
    };
    let seen = state.ports.iter().filter(|port| call.session.sees(&port.project)).filter(addressed).filter(tagged);
    let mut request = call.request.clone();
    request.query.retain(|(name, _)| name != "fixed_ips" && name != "tags");
    let filtered = Call { request: &request, session: call.session.clone(), body: Value::Null, parts: Vec::new() };
    Ok(Response::json(200, &json!({"ports": list_matching(&filtered, seen)})))
}

fn create(state: &mut State, call: &Call) -> Answer {
    let requested = &call.body["port"];
    if let Some(key) = unknown_key(requested, &KEYS) {
        return Err(unrecognized_attribute(key));
    }
    let network = requested["network_id"].as_str().unwrap_or_default();
    let known = state.networks.get(network).filter(|network| sees(&call.session, network));
    known.ok_or_else(|| neutron_error(404, "NetworkNotFound", &format!("Network {network} could not be found.")))?;
    let project = &call.session.project;
    check_quota(state, project, "port", state.ports.of(project).count())?;
    let id = add(state, project, requested)?;
    Ok(Response::json(201, &json!({"port": find(state, call, &id)?.view})))
}

/// Returns the port that uses this address.
pub(super) fn holder<'a>(state: &'a State, network: &str, address: &str) -> Option<&'a Item> {
    state.ports.iter().filter(|port| port.text("network_id") == network).find(|port| {
        port.view["fixed_ips"].as_array().is_some_and(|ips| ips.iter().any(|ip| ip["ip_address"] == address))
    })
}

pub(super) fn add(state: &mut State, project: &str, requested: &Value) -> Result<String, Response> {
    let network = requested["network_id"].as_str().unwrap_or_default().to_owned();
    let secure = requested.get("port_security_enabled").is_none_or(|enabled| enabled == true);
    let pairs = check_pairs(&requested["allowed_address_pairs"], secure)?;
    let groups = check_groups(state, project, requested.get("security_groups"), secure)?;
    let addresses = allocate_addresses(state, &network, requested.get("fixed_ips"), None)?;
    let (id, now, digits) = (state.uuid(), clock::now() + "Z", state.hex());
    let mac = format!("fa:16:3e:{}:{}:{}", &digits[..2], &digits[2..4], &digits[4..6]);
    let text = |key: &str| requested[key].as_str().unwrap_or_default();
    let pairs: Vec<Value> = pairs
        .into_iter()
        .map(|pair| json!({"ip_address": pair["ip_address"], "mac_address": pair.get("mac_address").unwrap_or(&json!(mac))}))
        .collect();
    let view = json!({
        "id": id, "name": text("name"), "network_id": network, "tenant_id": project,
        "mac_address": requested["mac_address"].as_str().unwrap_or(&mac), "admin_state_up": true, "status": "DOWN",
        "device_id": text("device_id"), "device_owner": text("device_owner"), "fixed_ips": addresses,
        "project_id": project, "port_security_enabled": secure, "allowed_address_pairs": pairs,
        "security_groups": groups, "binding:vnic_type": "normal", "extra_dhcp_opts": [],
        "description": text("description"), "tags": requested.get("tags").unwrap_or(&json!([])), "created_at": now,
        "updated_at": now, "revision_number": 1,
    });
    state.ports.add(Item::new(&id, project, view));
    Ok(id)
}

fn check_pairs(requested: &Value, secure: bool) -> Result<Vec<Value>, Response> {
    let pairs = requested.as_array().cloned().unwrap_or_default();
    if !secure && !pairs.is_empty() {
        let message = "Port Security must be enabled in order to have allowed address pairs on a port.";
        return Err(neutron_error(409, "AddressPairAndPortSecurityRequired", message));
    }
    Ok(pairs)
}

fn check_groups(
    state: &State,
    project: &str,
    requested: Option<&Value>,
    secure: bool,
) -> Result<Vec<String>, Response> {
    let Some(requested) = requested.and_then(Value::as_array) else {
        return Ok(if secure { security_group(state, project, "default").into_iter().collect() } else { Vec::new() });
    };
    if !secure && !requested.is_empty() {
        let message = "Port security must be enabled and port must have an IP address in order to use security groups.";
        return Err(neutron_error(400, "PortSecurityAndIPRequiredForSecurityGroups", message));
    }
    let ids = requested.iter().map(|id| {
        let id = id.as_str().unwrap_or_default();
        let group = state.security_groups.get(id).map(|group| group.id.clone());
        group.ok_or_else(|| neutron_error(404, "SecurityGroupNotFound", &format!("Security group {id} does not exist")))
    });
    ids.collect()
}

/// Returns the requested addresses, or a free one of the first subnet. `own` is the
/// port that may already use a requested address.
fn allocate_addresses(
    state: &State,
    network: &str,
    requested: Option<&Value>,
    own: Option<&str>,
) -> Result<Vec<Value>, Response> {
    let subnets: Vec<&Item> = state.subnets.iter().filter(|subnet| subnet.text("network_id") == network).collect();
    let any = json!(subnets.first().map(|subnet| json!({"subnet_id": subnet.id})).into_iter().collect::<Vec<_>>());
    let requested = requested.filter(|requested| requested.is_array()).unwrap_or(&any);
    let mut found = Vec::new();
    for wanted in requested.as_array().into_iter().flatten() {
        let address = wanted["ip_address"].as_str();
        if let Some(garbage) = address.filter(|address| address.parse::<IpAddr>().is_err()) {
            let message = format!("Invalid input for fixed_ips. Reason: '{garbage}' is not a valid IP address.");
            return Err(neutron_error(400, "HTTPBadRequest", &message));
        }
        let subnet = match wanted["subnet_id"].as_str() {
            Some(id) => {
                let subnet = subnets.iter().find(|subnet| subnet.id == id);
                let message = format!("Subnet {id} could not be found.");
                let subnet = subnet.ok_or_else(|| neutron_error(404, "SubnetNotFound", &message))?;
                if address.is_some_and(|address| !subnets::contains(subnet, address)) {
                    let message = format!(
                        "IP address {} is not a valid IP for the specified subnet.",
                        address.unwrap_or_default()
                    );
                    return Err(neutron_error(400, "InvalidIpForSubnet", &message));
                }
                subnet
            }
            None => {
                let subnet =
                    subnets.iter().find(|subnet| address.is_some_and(|address| subnets::contains(subnet, address)));
                let message = format!(
                    "IP address {} is not a valid IP for any of the subnets on the specified network.",
                    address.unwrap_or_default()
                );
                subnet.ok_or_else(|| neutron_error(400, "InvalidIpForNetwork", &message))?
            }
        };
        let address = match address {
            Some(address) => {
                if holder(state, network, address).is_some_and(|port| own != Some(port.id.as_str())) {
                    let message = format!("IP address {address} already allocated in subnet {}", subnet.id);
                    return Err(neutron_error(409, "IpAddressAlreadyAllocated", &message));
                }
                address.to_owned()
            }
            None => {
                let message = format!("No more IP addresses available on network {network}.");
                subnets::first_free_address(state, subnet)
                    .ok_or_else(|| neutron_error(409, "IpAddressGenerationFailure", &message))?
            }
        };
        found.push(json!({"subnet_id": subnet.id, "ip_address": address}));
    }
    Ok(found)
}

fn update(state: &mut State, call: &Call, id: &str) -> Answer {
    let port = find(state, call, id)?.clone();
    let requested = &call.body["port"];
    if let Some(key) = unknown_key(requested, &KEYS) {
        return Err(unrecognized_attribute(key));
    }
    let secure = requested.get("port_security_enabled").unwrap_or(&port.view["port_security_enabled"]) == true;
    let mut view = port.view.clone();
    if let (Some(view), Some(requested)) = (view.as_object_mut(), requested.as_object()) {
        view.extend(requested.clone());
    }
    if requested.get("fixed_ips").is_some() {
        view["fixed_ips"] =
            json!(allocate_addresses(state, port.text("network_id"), requested.get("fixed_ips"), Some(id))?);
    }
    if let Some(wanted) = requested.get("security_groups") {
        view["security_groups"] = json!(check_groups(state, &port.project, Some(wanted), secure)?);
    }
    let changed = requested.get("allowed_address_pairs").unwrap_or(&port.view["allowed_address_pairs"]);
    let filled = check_pairs(changed, secure)?.into_iter().map(|pair| {
        json!({"ip_address": pair["ip_address"], "mac_address": pair.get("mac_address").unwrap_or(&port.view["mac_address"])})
    });
    view["allowed_address_pairs"] = filled.collect();
    if let Some(port) = state.ports.get_mut(id) {
        port.view = view;
    }
    Ok(Response::json(200, &json!({"port": find(state, call, id)?.view})))
}

/// Binds a port to a server. Returns false if the port does not exist.
pub(super) fn bind(state: &mut State, id: &str, server: &str) -> bool {
    for (key, value) in [("device_id", server), ("device_owner", "compute:nova"), ("status", "ACTIVE")] {
        state.ports.set(id, key, json!(value));
    }
    state.ports.get(id).is_some()
}

/// Frees a port if it is bound to this server.
pub(super) fn unbind(state: &mut State, id: &str, server: &str) {
    if state.ports.get(id).is_some_and(|port| port.text("device_id") == server) {
        for (key, value) in [("device_id", ""), ("device_owner", ""), ("status", "DOWN")] {
            state.ports.set(id, key, json!(value));
        }
    }
}

/// Deletes a port and clears it in its floating IPs.
pub(super) fn remove(state: &mut State, id: &str) {
    state.ports.remove(id);
    super::floating_ips::release(state, id);
}
