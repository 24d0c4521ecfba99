//! Neutron's subnet pools: who asks for a subnet of a size gets a part of one.

use super::message::{Answer, Response, refusal};
use super::network::{listed, nowhere};
use super::simulator::Call;
use super::state::State;
use super::subnets::bounds;
use super::table::Item;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    let missing = |id: &str| refusal(404, "SubnetPoolNotFound", &format!("Subnet pool {id} could not be found."));
    match call.route() {
        ("GET", ["subnetpools"]) => {
            let seen = state.pools.iter().filter(|pool| call.session.sees(&pool.project));
            Ok(Response::json(200, &json!({"subnetpools": listed(call, seen)})))
        }
        ("POST", ["subnetpools"]) => {
            let asked = &call.body["subnetpool"];
            let project = &call.session.project;
            let id = state.uuid();
            let view = json!({
                "id": id, "name": asked["name"], "prefixes": asked["prefixes"], "ip_version": 4, "shared": false,
                "tenant_id": project, "project_id": project, "min_prefixlen": "8", "max_prefixlen": "32",
                "default_prefixlen": asked.get("default_prefixlen").unwrap_or(&json!("8")), "is_default": false,
                "description": "", "tags": [], "default_quota": null, "address_scope_id": null,
            });
            state.pools.add(Item::new(&id, project, view.clone()));
            Ok(Response::json(201, &json!({"subnetpool": view})))
        }
        ("DELETE", ["subnetpools", id]) => {
            state.pools.get(id).filter(|pool| call.session.sees(&pool.project)).ok_or_else(|| missing(id))?;
            if state.subnets.iter().any(|subnet| subnet.text("subnetpool_id") == *id) {
                let message = "Unable to delete subnet pool: Subnet pool has existing allocations.";
                return Err(refusal(409, "SubnetPoolDeleteError", message));
            }
            state.pools.remove(id);
            Ok(Response::new(204))
        }
        _ => Err(nowhere(call)),
    }
}

/// The first range of that size that is nobody's; nothing where no pool is asked.
pub(super) fn allocate(state: &State, asked: &Value) -> Result<Option<String>, Response> {
    let Some(id) = asked["subnetpool_id"].as_str() else { return Ok(None) };
    let pool = state.pools.get(id);
    let missing = || refusal(404, "SubnetPoolNotFound", &format!("Subnet pool {id} could not be found."));
    let pool = pool.ok_or_else(missing)?;
    let length = asked["prefixlen"].as_u64().or_else(|| asked["prefixlen"].as_str()?.parse().ok()).unwrap_or(24);
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
    Err(refusal(400, "SubnetAllocationError", message))
}
