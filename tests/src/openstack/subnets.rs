//! Neutron's subnets and their free addresses.

use super::message::{Answer, Response, neutron_error};
use super::network::{check_quota, list_matching, not_found, sees};
use super::simulator::Call;
use super::state::State;
use super::table::Item;
use super::{clock, subnet_pools};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    let missing = |id: &str| neutron_error(404, "SubnetNotFound", &format!("Subnet {id} could not be found."));
    let visible = |state: &State, subnet: &Item| {
        let network = state.networks.get(subnet.text("network_id"));
        network.is_some_and(|network| sees(&call.session, network) && network.view["router:external"] != true)
            || call.session.sees(&subnet.project)
    };
    match call.route() {
        ("GET", ["subnets"]) => {
            let seen = state.subnets.iter().filter(|subnet| visible(state, subnet));
            Ok(Response::json(200, &json!({"subnets": list_matching(call, seen)})))
        }
        ("GET", ["subnets", id]) => {
            let subnet = state.subnets.get(id).filter(|subnet| visible(state, subnet));
            let subnet = subnet.ok_or_else(|| missing(id))?;
            Ok(Response::json(200, &json!({"subnet": subnet.view})))
        }
        ("POST", ["subnets"]) => {
            let requested = &call.body["subnet"];
            let project = &call.session.project;
            let network = requested["network_id"].as_str().unwrap_or_default();
            let known = state.networks.get(network).filter(|network| call.session.sees(&network.project));
            let message = format!("Network {network} could not be found.");
            known.ok_or_else(|| neutron_error(404, "NetworkNotFound", &message))?;
            check_quota(state, project, "subnet", state.subnets.of(project).count())?;
            let id = add(state, project, requested)?;
            Ok(Response::json(201, &json!({"subnet": state.subnets.get(&id).map(|subnet| &subnet.view)})))
        }
        ("PUT", ["subnets", id]) => {
            state.subnets.get(id).filter(|subnet| call.session.sees(&subnet.project)).ok_or_else(|| missing(id))?;
            for key in ["name", "allocation_pools", "enable_dhcp", "gateway_ip", "dns_nameservers"] {
                if let Some(value) = call.body["subnet"].get(key) {
                    state.subnets.set(id, key, value.clone());
                }
            }
            Ok(Response::json(200, &json!({"subnet": state.subnets.get(id).map(|subnet| &subnet.view)})))
        }
        ("DELETE", ["subnets", id]) => {
            state.subnets.get(id).filter(|subnet| call.session.sees(&subnet.project)).ok_or_else(|| missing(id))?;
            let holds = |port: &Item| {
                port.view["fixed_ips"].as_array().is_some_and(|ips| ips.iter().any(|ip| ip["subnet_id"] == *id))
            };
            if state.ports.iter().any(holds) {
                let message = format!(
                    "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet."
                );
                return Err(neutron_error(409, "SubnetInUse", &message));
            }
            let subnet = state.subnets.remove(id);
            let network = subnet.and_then(|subnet| state.networks.get_mut(subnet.text("network_id")));
            if let Some(all) = network.and_then(|network| network.view["subnets"].as_array_mut()) {
                all.retain(|known| known != *id);
            }
            Ok(Response::new(204))
        }
        _ => Err(not_found(call)),
    }
}

pub(super) fn add(state: &mut State, project: &str, requested: &Value) -> Result<String, Response> {
    let allocated = subnet_pools::allocate(state, requested)?;
    let cidr = allocated.as_deref().or(requested["cidr"].as_str()).unwrap_or_default();
    let invalid =
        || neutron_error(400, "InvalidInput", &format!("Invalid input for operation: {cidr} is not in a CIDR format."));
    let (first, last) = bounds(cidr).ok_or_else(invalid)?;
    let network = requested["network_id"].as_str().unwrap_or_default().to_owned();
    let overlaps = state.subnets.iter().filter(|subnet| subnet.text("network_id") == network).find(|subnet| {
        bounds(subnet.text("cidr")).is_some_and(|(other_first, other_last)| first <= other_last && other_first <= last)
    });
    if overlaps.is_some() {
        let message = format!(
            "Invalid input for operation: Requested subnet with cidr: {cidr} for network: {network} overlaps with another subnet."
        );
        return Err(neutron_error(400, "InvalidInput", &message));
    }
    let (id, now) = (state.uuid(), clock::now() + "Z");
    let gateway = match requested.get("gateway_ip") {
        Some(gateway) => gateway.clone(),
        None => json!(Ipv4Addr::from(first + 1).to_string()),
    };
    let whole = json!([{"start": Ipv4Addr::from(first + 2).to_string(), "end": Ipv4Addr::from(last - 1).to_string()}]);
    let view = json!({
        "id": id, "name": requested["name"].as_str().unwrap_or_default(), "tenant_id": project, "network_id": network,
        "ip_version": 4, "subnetpool_id": requested["subnetpool_id"], "enable_dhcp": requested.get("enable_dhcp").unwrap_or(&json!(true)),
        "ipv6_ra_mode": null, "ipv6_address_mode": null, "gateway_ip": gateway, "cidr": cidr,
        "allocation_pools": requested.get("allocation_pools").unwrap_or(&whole), "host_routes": [],
        "dns_nameservers": requested.get("dns_nameservers").unwrap_or(&json!([])), "description": "",
        "router:external": state.networks.get(&network).map(|network| &network.view["router:external"]),
        "service_types": [], "tags": [], "created_at": now, "updated_at": now, "revision_number": 0,
        "project_id": project,
    });
    state.subnets.add(Item::new(&id, project, view));
    if let Some(all) = state.networks.get_mut(&network).and_then(|network| network.view["subnets"].as_array_mut()) {
        all.push(json!(id));
    }
    Ok(id)
}

/// Returns the first and the last address of a network, which ports cannot use.
pub(super) fn bounds(cidr: &str) -> Option<(u32, u32)> {
    let (address, length) = cidr.split_once('/')?;
    let (address, length): (Ipv4Addr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let mask = u32::MAX.checked_shl(32u32.checked_sub(length).filter(|bits| (2..32).contains(bits))?)?;
    Some((u32::from(address) & mask, u32::from(address) | !mask))
}

/// Returns true if a port can have this address.
pub(super) fn contains(subnet: &Item, address: &str) -> bool {
    let Some((first, last)) = bounds(subnet.text("cidr")) else { return false };
    address.parse::<Ipv4Addr>().is_ok_and(|address| (first + 1..last).contains(&u32::from(address)))
}

/// Returns the first free address of the allocation pools.
pub(super) fn first_free_address(state: &State, subnet: &Item) -> Option<String> {
    let pools = subnet.view["allocation_pools"].as_array().cloned().unwrap_or_default();
    let end =
        |pool: &Value, key: &str| pool[key].as_str().and_then(|text| text.parse::<Ipv4Addr>().ok()).map(u32::from);
    let ranges = pools.iter().filter_map(|pool| Some(end(pool, "start")?..=end(pool, "end")?));
    let mut addresses = ranges.flatten().map(|address| Ipv4Addr::from(address).to_string());
    addresses.find(|address| {
        let floats = state.floating_ips.iter().any(|floating| floating.text("floating_ip_address") == address);
        !floats && super::ports::holder(state, subnet.text("network_id"), address).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::bounds;
    use std::net::Ipv4Addr;

    #[test]
    fn bounds_are_the_first_and_last_address_of_a_network() {
        for (cidr, ends) in [
            ("10.0.0.0/24", Some(("10.0.0.0", "10.0.0.255"))),
            ("10.0.0.77/30", Some(("10.0.0.76", "10.0.0.79"))),
            ("10.0.0.0/33", None),
            ("10.0.0.0/31", None),
            ("10.0.0.0/0", None),
            ("nonsense", None),
        ] {
            let found = bounds(cidr).map(|(a, b)| (Ipv4Addr::from(a).to_string(), Ipv4Addr::from(b).to_string()));
            assert_eq!(found.as_ref().map(|(a, b)| (a.as_str(), b.as_str())), ends, "{cidr}");
        }
    }
}
