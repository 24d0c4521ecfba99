//! Neutron's subnet pools, from which subnets of a requested size are allocated.

use super::message::{Answer, Response, neutron_error};
use super::network::{list_matching, not_found};
use super::simulator::Call;
use super::state::State;
use super::subnets::bounds;
use super::table::Item;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    let missing = |id: &str| neutron_error(404, "SubnetPoolNotFound", &format!("Subnet pool {id} could not be found."));
    match call.route() {
        ("GET", ["subnetpools"]) => {
            let seen = state.subnet_pools.iter().filter(|pool| call.session.sees(&pool.project));
            Ok(Response::json(200, &json!({"subnetpools": list_matching(call, seen)})))
        }
        ("POST", ["subnetpools"]) => {
            let requested = &call.body["subnetpool"];
            let project = &call.session.project;
            let id = state.uuid();
            let view = json!({
                "id": id, "name": requested["name"], "prefixes": requested["prefixes"], "ip_version": 4, "shared": false,
                "tenant_id": project, "project_id": project, "min_prefixlen": "8", "max_prefixlen": "32",
                "default_prefixlen": requested.get("default_prefixlen").unwrap_or(&json!("8")), "is_default": false,
                "description": "", "tags": [], "default_quota": null, "address_scope_id": null,
            });
            state.subnet_pools.add(Item::new(&id, project, view.clone()));
            Ok(Response::json(201, &json!({"subnetpool": view})))
        }
        ("DELETE", ["subnetpools", id]) => {
            state.subnet_pools.get(id).filter(|pool| call.session.sees(&pool.project)).ok_or_else(|| missing(id))?;
            if state.subnets.iter().any(|subnet| subnet.text("subnetpool_id") == *id) {
                let message = "Unable to delete subnet pool: Subnet pool has existing allocations.";
                return Err(neutron_error(409, "SubnetPoolDeleteError", message));
            }
            state.subnet_pools.remove(id);
            Ok(Response::new(204))
        }
        _ => Err(not_found(call)),
    }
}

/// Returns the first free range of the requested size, or `None` if the request names
/// no pool.
pub(super) fn allocate(state: &State, requested: &Value) -> Result<Option<String>, Response> {
    let Some(id) = requested["subnetpool_id"].as_str() else { return Ok(None) };
    let pool = state.subnet_pools.get(id);
    let missing = || neutron_error(404, "SubnetPoolNotFound", &format!("Subnet pool {id} could not be found."));
    let pool = pool.ok_or_else(missing)?;
    let length =
        requested["prefixlen"].as_u64().or_else(|| requested["prefixlen"].as_str()?.parse().ok()).unwrap_or(24);
    let taken: Vec<(u32, u32)> = state
        .subnets
        .iter()
        .filter(|subnet| subnet.text("subnetpool_id") == id)
        .filter_map(|subnet| bounds(subnet.text("cidr")))
        .collect();
    for prefix in pool.view["prefixes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let Some((first, last)) = bounds(prefix) else { continue };
        let mut start = first;
        while let Some((low, high)) =
            bounds(&format!("{}/{length}", Ipv4Addr::from(start))).filter(|(_, high)| *high <= last)
        {
            if !taken.iter().any(|(a, b)| low <= *b && *a <= high) {
                return Ok(Some(format!("{}/{length}", Ipv4Addr::from(low))));
            }
            match high.checked_add(1) {
                Some(next) => start = next,
                None => break,
            }
        }
    }
    let message = "Failed to allocate subnet: Insufficient prefix space to allocate subnet size.";
    Err(neutron_error(400, "SubnetAllocationError", message))
}
