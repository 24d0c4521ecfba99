//! Neutron: networks, subnets, security groups, quotas. Ports and floating
//! addresses are next door.

use super::message::{Answer, Response, refusal};
use super::simulator::Call;
use super::state::{Session, State};
use super::table::{Item, matches, only, stranger};
use super::{clock, floating, pools, ports, subnets};
use serde_json::{Value, json};

const NOT_FILTERS: [&str; 6] = ["fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse"];
/// Of a network that a tenant asks for.
const KEYS: [&str; 8] =
    ["name", "admin_state_up", "description", "port_security_enabled", "mtu", "tenant_id", "project_id", "shared"];
pub(super) const QUOTAS: [&str; 5] = ["network", "subnet", "port", "floatingip", "security_group"];

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        (_, ["networks", ..]) => networks(state, call),
        (_, ["subnets", ..]) => subnets::answer(state, call),
        (_, ["subnetpools", ..]) => pools::answer(state, call),
        (_, ["ports", ..]) => ports::answer(state, call),
        (_, ["floatingips", ..]) => floating::answer(state, call),
        (_, ["security-groups", ..]) => security_groups(state, call),
        (_, ["quotas", project, ..]) => quotas(state, call, project),
        _ => Err(nowhere(call)),
    }
}

pub(super) fn nowhere(_: &Call) -> Response {
    refusal(404, "HTTPNotFound", "The resource could not be found.")
}

/// Those that the query is about, with the fields that it wants.
pub(super) fn listed<'a>(call: &Call, items: impl Iterator<Item = &'a Item>) -> Vec<Value> {
    let found = items.map(|item| &item.view).filter(|view| matches(call.request, view, &NOT_FILTERS));
    found.map(|view| selected(call, view)).collect()
}

/// Only what `fields` names, if it names something.
pub(super) fn selected(call: &Call, view: &Value) -> Value {
    let fields: Vec<&str> =
        call.request.query.iter().filter(|(name, _)| name == "fields").map(|(_, field)| field.as_str()).collect();
    if fields.is_empty() { view.clone() } else { only(view, &fields) }
}

pub(super) fn unknown(key: &str) -> Response {
    refusal(400, "HTTPBadRequest", &format!("Unrecognized attribute(s) '{key}'"))
}

/// More of these would be too many.
pub(super) fn check_quota(state: &State, project: &str, name: &'static str, count: usize) -> Result<(), Response> {
    if state.quota(project, name).is_some_and(|limit| count as u64 >= limit) {
        return Err(refusal(409, "OverQuota", &format!("Quota exceeded for resources: ['{name}'].")));
    }
    Ok(())
}

pub(super) fn sees(session: &Session, network: &Item) -> bool {
    session.sees(&network.project) || network.view["shared"] == true || network.view["router:external"] == true
}

fn networks(state: &mut State, call: &Call) -> Answer {
    let missing = |id: &str| refusal(404, "NetworkNotFound", &format!("Network {id} could not be found."));
    match call.route() {
        ("GET", ["networks"]) => {
            let seen = state.networks.iter().filter(|network| sees(&call.session, network));
            Ok(Response::json(200, &json!({"networks": listed(call, seen)})))
        }
        ("GET", ["networks", id]) => {
            let network = state.networks.get(id).filter(|network| sees(&call.session, network));
            let network = network.ok_or_else(|| missing(id))?;
            Ok(Response::json(200, &json!({"network": selected(call, &network.view)})))
        }
        ("POST", ["networks"]) => {
            let asked = &call.body["network"];
            if !asked.is_object() {
                return Err(refusal(400, "HTTPBadRequest", "Resource body required"));
            }
            if let Some(key) = stranger(asked, &KEYS) {
                return Err(unknown(key));
            }
            let project = &call.session.project;
            check_quota(state, project, "network", state.networks.of(project).count())?;
            let id = add_network(state, project, asked["name"].as_str().unwrap_or_default(), json!({}));
            Ok(Response::json(201, &json!({"network": state.networks.get(&id).map(|network| &network.view)})))
        }
        ("DELETE", ["networks", id]) => {
            let network = state.networks.get(id).filter(|network| call.session.sees(&network.project));
            network.ok_or_else(|| missing(id))?;
            let used: Vec<&str> =
                state.ports.iter().filter(|port| port.text("network_id") == *id).map(|port| port.id.as_str()).collect();
            if !used.is_empty() {
                let message = format!(
                    "Unable to complete operation on network {id}. There are one or more ports still in use on the network, id for these ports is: {}.",
                    used.join(",")
                );
                return Err(refusal(409, "NetworkInUse", &message));
            }
            state.networks.remove(id);
            let gone: Vec<String> = state
                .subnets
                .iter()
                .filter(|subnet| subnet.text("network_id") == *id)
                .map(|subnet| subnet.id.clone())
                .collect();
            for subnet in gone {
                state.subnets.remove(&subnet);
            }
            Ok(Response::new(204))
        }
        _ => Err(nowhere(call)),
    }
}

pub(super) fn add_network(state: &mut State, project: &str, name: &str, more: Value) -> String {
    let (id, now) = (state.uuid(), clock::now() + "Z");
    let mut view = json!({
        "id": id, "name": name, "tenant_id": project, "admin_state_up": true, "mtu": 1450, "status": "ACTIVE",
        "subnets": [], "shared": false, "project_id": project, "port_security_enabled": true,
        "router:external": false, "availability_zone_hints": [], "availability_zones": [], "ipv4_address_scope": null,
        "ipv6_address_scope": null, "description": "", "tags": [], "created_at": now, "updated_at": now,
        "revision_number": 1,
    });
    if let (Some(view), Value::Object(more)) = (view.as_object_mut(), more) {
        view.extend(more);
    }
    state.networks.add(Item::new(&id, project, view));
    id
}

pub(super) fn add_subnet(state: &mut State, project: &str, asked: &Value) -> String {
    subnets::add(state, project, asked).unwrap_or_default()
}

/// Joins a subnet (of a project and network) to an outer one.
pub(super) fn add_router(state: &mut State, inside: [&str; 3], outside: [&str; 2]) {
    let [project, network, subnet] = inside;
    let router = state.uuid();
    let gateway = state.subnets.get(subnet).map(|subnet| subnet.view["gateway_ip"].clone());
    let ends = [
        (project, network, json!([{"subnet_id": subnet, "ip_address": gateway}]), "network:router_interface"),
        ("", outside[0], json!([{"subnet_id": outside[1]}]), "network:router_gateway"),
    ];
    for (owner, network, addresses, kind) in ends {
        let wanted = json!({
            "network_id": network, "fixed_ips": addresses, "device_id": router, "device_owner": kind,
            "security_groups": [], "port_security_enabled": false,
        });
        if let Ok(port) = ports::add(state, owner, &wanted) {
            state.ports.set(&port, "status", json!("ACTIVE"));
        }
    }
    if let Some(subnet) = state.subnets.get_mut(subnet) {
        subnet.hidden["routed"] = json!(outside[0]);
    }
}

fn security_groups(state: &mut State, call: &Call) -> Answer {
    let project = &call.session.project;
    let missing = |id: &str| refusal(404, "SecurityGroupNotFound", &format!("Security group {id} does not exist"));
    match call.route() {
        ("GET", ["security-groups"]) => {
            let seen = state.security.iter().filter(|group| call.session.sees(&group.project));
            Ok(Response::json(200, &json!({"security_groups": listed(call, seen)})))
        }
        ("GET", ["security-groups", id]) => {
            let group = state.security.get(id).filter(|group| call.session.sees(&group.project));
            let group = group.ok_or_else(|| missing(id))?;
            Ok(Response::json(200, &json!({"security_group": group.view})))
        }
        ("POST", ["security-groups"]) => {
            let asked = &call.body["security_group"];
            check_quota(state, project, "security_group", state.security.of(project).count())?;
            let text = |key: &str| asked[key].as_str().unwrap_or_default();
            let id = add_security_group(state, project, text("name"), text("description"));
            Ok(Response::json(201, &json!({"security_group": state.security.get(&id).map(|group| &group.view)})))
        }
        ("DELETE", ["security-groups", id]) => {
            state.security.get(id).filter(|group| call.session.sees(&group.project)).ok_or_else(|| missing(id))?;
            let wanted = json!(id);
            let holds = |port: &Item| port.view["security_groups"].as_array().is_some_and(|all| all.contains(&wanted));
            if state.ports.iter().any(holds) {
                return Err(refusal(409, "SecurityGroupInUse", &format!("Security Group {id} in use.")));
            }
            state.security.remove(id);
            Ok(Response::new(204))
        }
        _ => Err(nowhere(call)),
    }
}

pub(super) fn add_security_group(state: &mut State, project: &str, name: &str, description: &str) -> String {
    let (id, now) = (state.uuid(), clock::now() + "Z");
    let view = json!({
        "id": id, "name": name, "stateful": true, "tenant_id": project, "description": description, "shared": false,
        "security_group_rules": [], "tags": [], "created_at": now, "updated_at": now, "revision_number": 1,
        "project_id": project,
    });
    state.security.add(Item::new(&id, project, view));
    id
}

/// The id of a group that is named by id or name.
pub(super) fn security_group(state: &State, project: &str, named: &str) -> Option<String> {
    let mut groups = state.security.of(project);
    groups.find(|group| group.id == named || group.text("name") == named).map(|group| group.id.clone())
}

/// How many a project has.
fn held(state: &State, project: &str, name: &str) -> usize {
    let table = match name {
        "network" => &state.networks,
        "subnet" => &state.subnets,
        "port" => &state.ports,
        "floatingip" => &state.floating,
        _ => &state.security,
    };
    table.of(project).count()
}

fn quotas(state: &mut State, call: &Call, project: &str) -> Answer {
    if call.request.method == "PUT" {
        let message = "rule:update_quota is disallowed by policy";
        call.admin(|| refusal(403, "PolicyNotAuthorized", message))?;
        for name in QUOTAS {
            if let Some(limit) = call.body["quota"][name].as_i64() {
                let used = i64::try_from(held(state, project, name)).unwrap_or(i64::MAX);
                if limit >= 0 && limit < used {
                    let message =
                        format!("Quota limit {limit} for {name} must be greater than or equal to already used {used}");
                    return Err(refusal(400, "HTTPBadRequest", &message));
                }
                state.quotas.insert((project.to_owned(), name), limit);
            }
        }
    }
    let mut quota = json!({});
    for name in QUOTAS {
        quota[name] = state.quota(project, name).map_or(json!(-1), Value::from);
    }
    Ok(Response::json(200, &json!({"quota": quota})))
}
