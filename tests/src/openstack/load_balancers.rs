//! Octavia: load balancers with pools, and pools with members. A load balancer
//! handles one change at a time: it is immutable until a member is created or deleted.

use super::message::{Answer, Response};
use super::simulator::Call;
use super::state::{Effect, State};
use super::table::{Item, matches_query};
use serde_json::{Value, json};

const NOT_FILTERS: [&str; 3] = ["limit", "marker", "fields"];

fn octavia_error(status: u16, message: &str) -> Response {
    Response::json(status, &json!({"faultcode": "Client", "faultstring": message, "debuginfo": null}))
}

fn missing(kind: &str, id: &str) -> Response {
    octavia_error(404, &format!("{kind} {id} not found."))
}

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        ("POST", ["lbaas", "loadbalancers"]) => {
            let requested = &call.body["loadbalancer"];
            let more = json!({"name": requested["name"], "vip_subnet_id": requested["vip_subnet_id"]});
            let view = add(state, call, "loadbalancer", more);
            Ok(Response::json(201, &json!({"loadbalancer": view})))
        }
        ("POST", ["lbaas", "pools"]) => {
            let requested = &call.body["pool"];
            let balancer = requested["loadbalancer_id"].as_str().unwrap_or_default();
            find(state, call, "loadbalancer", balancer).ok_or_else(|| missing("Load Balancer", balancer))?;
            let more = json!({"name": requested["name"], "loadbalancers": [{"id": balancer}], "members": []});
            let view = add(state, call, "pool", more);
            Ok(Response::json(201, &json!({"pool": view})))
        }
        ("GET", ["lbaas", "pools"]) => {
            let pools =
                state.load_balancing.iter().filter(|item| is_kind(item, "pool") && call.session.sees(&item.project));
            let pools = pools.map(|pool| &pool.view).filter(|view| matches_query(call.request, view, &NOT_FILTERS));
            Ok(Response::json(200, &json!({"pools": pools.collect::<Vec<_>>(), "pools_links": []})))
        }
        ("DELETE", ["lbaas", "pools" | "loadbalancers", id]) => {
            state
                .load_balancing
                .get(id)
                .filter(|item| call.session.sees(&item.project))
                .ok_or_else(|| missing("It", id))?;
            state.load_balancing.remove(id);
            Ok(Response::new(204))
        }
        (_, ["lbaas", "pools", pool, "members", ..]) => {
            find(state, call, "pool", pool).ok_or_else(|| missing("Pool", pool))?;
            members(state, call, pool)
        }
        _ => Err(octavia_error(404, "The resource could not be found.")),
    }
}

fn members(state: &mut State, call: &Call, pool: &str) -> Answer {
    let of_pool = |item: &&Item| is_kind(item, "member") && item.hidden["pool"] == pool;
    match call.route() {
        ("GET", [.., "members"]) => {
            let found = state.load_balancing.iter().filter(of_pool).map(|member| &member.view);
            let found = found.filter(|view| matches_query(call.request, view, &NOT_FILTERS));
            Ok(Response::json(200, &json!({"members": found.collect::<Vec<_>>(), "members_links": []})))
        }
        ("POST", [.., "members"]) => {
            check_mutable(state, pool)?;
            let requested = &call.body["member"];
            let same_target =
                |other: &Item| ["address", "protocol_port"].iter().all(|key| other.view[key] == requested[key]);
            if state.load_balancing.iter().filter(of_pool).any(same_target) {
                let message = format!(
                    "Another member on this pool is already using ip {} on protocol_port {}",
                    requested["address"].as_str().unwrap_or_default(),
                    requested["protocol_port"]
                );
                return Err(octavia_error(409, &message));
            }
            let keys = ["name", "address", "protocol_port", "subnet_id", "monitor_port"];
            let mut more: Value = keys.iter().map(|key| ((*key).to_owned(), requested[*key].clone())).collect();
            more["weight"] = json!(1);
            let view = add(state, call, "member", more);
            let id = view["id"].as_str().unwrap_or_default().to_owned();
            if let Some(member) = state.load_balancing.get_mut(&id) {
                member.hidden["pool"] = json!(pool);
            }
            state.load_balancing.set(&id, "provisioning_status", json!("PENDING_CREATE"));
            state.schedule(&[&id], Effect::MemberReady { member: id.clone() });
            Ok(Response::json(201, &json!({"member": state.load_balancing.get(&id).map(|member| &member.view)})))
        }
        ("GET", [.., "members", id]) => {
            state.count_read([*id]);
            let member = state.load_balancing.get(id).filter(of_pool).ok_or_else(|| missing("Member", id))?;
            Ok(Response::json(200, &json!({"member": member.view})))
        }
        ("DELETE", [.., "members", id]) => {
            state.load_balancing.get(id).filter(of_pool).ok_or_else(|| missing("Member", id))?;
            check_mutable(state, pool)?;
            state.load_balancing.set(id, "provisioning_status", json!("PENDING_DELETE"));
            state.schedule(&[*id], Effect::MemberDeleted { member: (*id).to_owned() });
            Ok(Response::new(204))
        }
        _ => Err(octavia_error(404, "The resource could not be found.")),
    }
}

fn is_kind(item: &Item, kind: &str) -> bool {
    item.hidden["kind"] == kind
}

fn find<'a>(state: &'a State, call: &Call, kind: &str, id: &str) -> Option<&'a Item> {
    state.load_balancing.get(id).filter(|item| is_kind(item, kind) && call.session.sees(&item.project))
}

fn add(state: &mut State, call: &Call, kind: &str, more: Value) -> Value {
    let (id, project) = (state.uuid(), call.session.project.clone());
    let mut view = json!({"id": id, "project_id": project, "provisioning_status": "ACTIVE", "admin_state_up": true});
    if let (Some(view), Value::Object(more)) = (view.as_object_mut(), more) {
        view.extend(more);
    }
    state.load_balancing.add(Item { hidden: json!({"kind": kind}), ..Item::new(&id, &project, view.clone()) });
    view
}

/// Rejects a change while another one is in progress in any pool of the same load
/// balancer.
fn check_mutable(state: &State, pool: &str) -> Result<(), Response> {
    let balancer = |pool: &str| state.load_balancing.get(pool).map(|pool| pool.view["loadbalancers"][0]["id"].clone());
    let own = balancer(pool);
    let pending = |item: &Item| {
        is_kind(item, "member")
            && item.text("provisioning_status").starts_with("PENDING")
            && item.hidden["pool"].as_str().and_then(balancer) == own
    };
    if !state.load_balancing.iter().any(pending) {
        return Ok(());
    }
    let id = own.as_ref().and_then(Value::as_str).unwrap_or_default();
    Err(octavia_error(409, &format!("Load Balancer {id} is immutable and cannot be updated.")))
}
