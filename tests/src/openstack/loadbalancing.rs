//! Octavia: load balancers with pools, and pools with members. A load balancer
//! does one thing at a time: until a member is there or gone, it is immutable.

use super::message::{Answer, Response};
use super::simulator::Call;
use super::state::{Effect, State};
use super::table::{Item, matches};
use serde_json::{Value, json};

const NOT_FILTERS: [&str; 3] = ["limit", "marker", "fields"];

fn refusal(status: u16, message: &str) -> Response {
    Response::json(status, &json!({"faultcode": "Client", "faultstring": message, "debuginfo": null}))
}

fn missing(kind: &str, id: &str) -> Response {
    refusal(404, &format!("{kind} {id} not found."))
}

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        ("POST", ["lbaas", "loadbalancers"]) => {
            let asked = &call.body["loadbalancer"];
            let more = json!({"name": asked["name"], "vip_subnet_id": asked["vip_subnet_id"]});
            let view = add(state, call, "loadbalancer", more);
            Ok(Response::json(201, &json!({"loadbalancer": view})))
        }
        ("POST", ["lbaas", "pools"]) => {
            let asked = &call.body["pool"];
            let balancer = asked["loadbalancer_id"].as_str().unwrap_or_default();
            find(state, call, "loadbalancer", balancer).ok_or_else(|| missing("Load Balancer", balancer))?;
            let more = json!({"name": asked["name"], "loadbalancers": [{"id": balancer}], "members": []});
            let view = add(state, call, "pool", more);
            Ok(Response::json(201, &json!({"pool": view})))
        }
        ("GET", ["lbaas", "pools"]) => {
            let pools = state.balancing.iter().filter(|item| is(item, "pool") && call.session.sees(&item.project));
            let pools = pools.map(|pool| &pool.view).filter(|view| matches(call.request, view, &NOT_FILTERS));
            Ok(Response::json(200, &json!({"pools": pools.collect::<Vec<_>>(), "pools_links": []})))
        }
        ("DELETE", ["lbaas", "pools" | "loadbalancers", id]) => {
            state.balancing.get(id).filter(|item| call.session.sees(&item.project)).ok_or_else(|| missing("It", id))?;
            state.balancing.remove(id);
            Ok(Response::new(204))
        }
        (_, ["lbaas", "pools", pool, "members", ..]) => {
            find(state, call, "pool", pool).ok_or_else(|| missing("Pool", pool))?;
            members(state, call, pool)
        }
        _ => Err(refusal(404, "The resource could not be found.")),
    }
}

fn members(state: &mut State, call: &Call, pool: &str) -> Answer {
    let of_pool = |item: &&Item| is(item, "member") && item.hidden["pool"] == pool;
    match call.route() {
        ("GET", [.., "members"]) => {
            let found = state.balancing.iter().filter(of_pool).map(|member| &member.view);
            let found = found.filter(|view| matches(call.request, view, &NOT_FILTERS));
            Ok(Response::json(200, &json!({"members": found.collect::<Vec<_>>(), "members_links": []})))
        }
        ("POST", [.., "members"]) => {
            mutable(state, pool)?;
            let asked = &call.body["member"];
            let taken = |other: &Item| ["address", "protocol_port"].iter().all(|key| other.view[key] == asked[key]);
            if state.balancing.iter().filter(of_pool).any(taken) {
                let message = format!(
                    "Another member on this pool is already using ip {} on protocol_port {}",
                    asked["address"].as_str().unwrap_or_default(),
                    asked["protocol_port"]
                );
                return Err(refusal(409, &message));
            }
            let keys = ["name", "address", "protocol_port", "subnet_id", "monitor_port"];
            let mut more: Value = keys.iter().map(|key| ((*key).to_owned(), asked[*key].clone())).collect();
            more["weight"] = json!(1);
            let view = add(state, call, "member", more);
            let id = view["id"].as_str().unwrap_or_default().to_owned();
            if let Some(member) = state.balancing.get_mut(&id) {
                member.hidden["pool"] = json!(pool);
            }
            state.balancing.set(&id, "provisioning_status", json!("PENDING_CREATE"));
            state.later(&[&id], Effect::MemberReady { member: id.clone() });
            Ok(Response::json(201, &json!({"member": state.balancing.get(&id).map(|member| &member.view)})))
        }
        ("GET", [.., "members", id]) => {
            state.read([*id]);
            let member = state.balancing.get(id).filter(of_pool).ok_or_else(|| missing("Member", id))?;
            Ok(Response::json(200, &json!({"member": member.view})))
        }
        ("DELETE", [.., "members", id]) => {
            state.balancing.get(id).filter(of_pool).ok_or_else(|| missing("Member", id))?;
            mutable(state, pool)?;
            state.balancing.set(id, "provisioning_status", json!("PENDING_DELETE"));
            state.later(&[*id], Effect::MemberGone { member: (*id).to_owned() });
            Ok(Response::new(204))
        }
        _ => Err(refusal(404, "The resource could not be found.")),
    }
}

fn is(item: &Item, kind: &str) -> bool {
    item.hidden["kind"] == kind
}

fn find<'a>(state: &'a State, call: &Call, kind: &str, id: &str) -> Option<&'a Item> {
    state.balancing.get(id).filter(|item| is(item, kind) && call.session.sees(&item.project))
}

fn add(state: &mut State, call: &Call, kind: &str, more: Value) -> Value {
    let (id, project) = (state.uuid(), call.session.project.clone());
    let mut view = json!({"id": id, "project_id": project, "provisioning_status": "ACTIVE", "admin_state_up": true});
    if let (Some(view), Value::Object(more)) = (view.as_object_mut(), more) {
        view.extend(more);
    }
    state.balancing.add(Item { hidden: json!({"kind": kind}), ..Item::new(&id, &project, view.clone()) });
    view
}

/// Nothing is under way at any pool of its load balancer.
fn mutable(state: &State, pool: &str) -> Result<(), Response> {
    let balancer = |pool: &str| state.balancing.get(pool).map(|pool| pool.view["loadbalancers"][0]["id"].clone());
    let own = balancer(pool);
    let pending = |item: &Item| {
        is(item, "member")
            && item.text("provisioning_status").starts_with("PENDING")
            && item.hidden["pool"].as_str().and_then(balancer) == own
    };
    if !state.balancing.iter().any(pending) {
        return Ok(());
    }
    let id = own.as_ref().and_then(Value::as_str).unwrap_or_default();
    Err(refusal(409, &format!("Load Balancer {id} is immutable and cannot be updated.")))
}
