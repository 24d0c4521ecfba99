//! Nova's server groups, on a cloud with a single host.

use super::message::{Answer, Response, fault, not_found};
use super::python::{invalid_value, missing_property, unexpected_property};
use super::simulator::Call;
use super::state::State;
use super::table::{Item, unknown_key};
use serde_json::{Value, json};

/// The microversions that added soft policies, the project in the view, and a single
/// policy instead of a list.
const SOFT: u32 = 15;
const PROJECT: u32 = 13;
const ONE_POLICY: u32 = 64;

/// The maximum number of groups in one list.
const MAX_PAGE: usize = 1000;

pub(super) fn answer(state: &mut State, call: &Call, version: u32) -> Answer {
    let project = &call.session.project;
    match call.route() {
        ("GET", ["os-server-groups"]) => {
            let number =
                |name: &str, other: usize| call.request.query_value(name).and_then(|n| n.parse().ok()).unwrap_or(other);
            let page = state.server_groups.of(project).skip(number("offset", 0)).take(number("limit", MAX_PAGE));
            let page: Vec<Value> = page.map(|group| view(group, version)).collect();
            Ok(Response::json(200, &json!({"server_groups": page})))
        }
        ("POST", ["os-server-groups"]) => create(state, call, version),
        ("GET", ["os-server-groups", id]) => {
            let group = find(state, call, id).ok_or_else(|| missing(404, id))?;
            Ok(Response::json(200, &json!({"server_group": view(group, version)})))
        }
        ("DELETE", ["os-server-groups", id]) => {
            find(state, call, id).ok_or_else(|| missing(404, id))?;
            state.server_groups.remove(id);
            Ok(Response::new(204))
        }
        _ => Err(not_found(call.request)),
    }
}

fn missing(status: u16, id: &str) -> Response {
    fault(status, &format!("Instance group {id} could not be found."))
}

fn find<'a>(state: &'a State, call: &Call, id: &str) -> Option<&'a Item> {
    state.server_groups.get(id).filter(|group| call.session.sees(&group.project))
}

fn view(group: &Item, version: u32) -> Value {
    let mut view = json!({"id": group.id, "name": group.view["name"]});
    if version >= ONE_POLICY {
        view["policy"] = group.view["policy"].clone();
        view["rules"] = group.view["rules"].clone();
    } else {
        view["policies"] = json!([group.view["policy"]]);
        view["metadata"] = json!({});
    }
    view["members"] = group.view["members"].clone();
    if version >= PROJECT {
        view["project_id"] = json!(group.project);
        view["user_id"] = group.view["user_id"].clone();
    }
    view
}

fn create(state: &mut State, call: &Call, version: u32) -> Answer {
    let requested = &call.body["server_group"];
    let keys: &[&str] = if version >= ONE_POLICY { &["name", "policy", "rules"] } else { &["name", "policies"] };
    if let Some(key) = ["name", keys[1]].into_iter().find(|key| requested.get(key).is_none()) {
        return Err(missing_property("server_group", requested, key));
    }
    if let Some(key) = unknown_key(requested, keys) {
        return Err(unexpected_property("server_group", requested, key));
    }
    let policy = if version >= ONE_POLICY { &requested["policy"] } else { &requested["policies"][0] };
    let hard = ["anti-affinity", "affinity"];
    let soft = ["soft-anti-affinity", "soft-affinity"];
    let known =
        policy.as_str().is_some_and(|policy| hard.contains(&policy) || (version >= SOFT && soft.contains(&policy)));
    if !known || requested["name"].as_str().is_none_or(str::is_empty) {
        let field = if version >= ONE_POLICY { "policy" } else { "0" };
        return Err(invalid_value(field, policy, "is not one of ['anti-affinity', 'affinity']"));
    }
    let project = call.session.project.clone();
    let limit = state.quota(&project, "server_groups");
    if limit.is_some_and(|limit| state.server_groups.of(&project).count() as u64 >= limit) {
        return Err(fault(403, "Quota exceeded, too many server groups."));
    }
    let id = state.uuid();
    let group = json!({
        "id": id, "name": requested["name"], "policy": policy, "rules": requested.get("rules").unwrap_or(&json!({})),
        "members": [], "user_id": call.session.user,
    });
    let group = Item::new(&id, &project, group);
    let shown = view(&group, version);
    state.server_groups.add(group);
    Ok(Response::json(200, &json!({"server_group": shown})))
}

/// Returns the group in the scheduler hints, if they contain one.
pub(super) fn find_hinted(state: &State, call: &Call, hints: &Value) -> Result<Option<String>, Response> {
    let Some(id) = hints["group"].as_str() else { return Ok(None) };
    if id.len() != 36 {
        return Err(invalid_value("group", &hints["group"], "is not a 'uuid'"));
    }
    let group = find(state, call, id).ok_or_else(|| missing(400, id))?;
    let members = group.view["members"].as_array().map_or(0, Vec::len) as u64;
    if state.quota(&call.session.project, "server_group_members").is_some_and(|limit| members >= limit) {
        return Err(fault(403, "Quota exceeded, too many servers in group"));
    }
    Ok(Some(id.to_owned()))
}

pub(super) fn join(state: &mut State, group: &str, server: &str) {
    if let Some(members) = state.server_groups.get_mut(group).and_then(|group| group.view["members"].as_array_mut()) {
        members.push(json!(server));
    }
}

pub(super) fn leave(state: &mut State, server: &str) {
    for group in state.server_groups.iter_mut() {
        if let Some(members) = group.view["members"].as_array_mut() {
            members.retain(|member| member != server);
        }
    }
}

/// Returns true if the server's group allows the server to run on the only host.
pub(super) fn has_room(state: &State, server: &str) -> bool {
    let group = state.servers.get(server).and_then(|server| state.server_groups.get(server.hidden["group"].as_str()?));
    let Some(group) = group.filter(|group| group.text("policy") == "anti-affinity") else { return true };
    let most = group.view["rules"]["max_server_per_host"].as_u64().unwrap_or(1);
    let members = group.view["members"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let running = members
        .filter_map(|id| state.servers.get(id))
        .filter(|other| other.id != server && !other.text("hostId").is_empty());
    (running.count() as u64) < most
}
