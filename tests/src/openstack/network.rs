//! Neutron: networks, security groups and quotas. Subnets, subnet pools, ports and
//! floating IPs have their own modules.

use super::message::{Answer, Response, neutron_error};
use super::simulator::Call;
use super::state::{Session, State};
use super::table::{Item, matches_query, select_keys, unknown_key};
use super::{clock, floating_ips, ports, subnet_pools, subnets};
use serde_json::{Value, json};

const NOT_FILTERS: [&str; 6] = ["fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse"];
/// The keys of a request to create a network.
const KEYS: [&str; 8] =
    ["name", "admin_state_up", "description", "port_security_enabled", "mtu", "tenant_id", "project_id", "shared"];
pub(super) const QUOTAS: [&str; 5] = ["network", "subnet", "port", "floatingip", "security_group"];

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        (_, ["networks", ..]) => networks(state, call),
        (_, ["subnets", ..]) => subnets::answer(state, call),
        (_, ["subnetpools", ..]) => subnet_pools::answer(state, call),
        (_, ["ports", ..]) => ports::answer(state, call),
        (_, ["floatingips", ..]) => floating_ips::answer(state, call),
        (_, ["security-groups", ..]) => security_groups(state, call),
        (_, ["quotas", project, ..]) => quotas(state, call, project),
        _ => Err(not_found(call)),
    }
}

pub(super) fn not_found(_: &Call) -> Response {
    neutron_error(404, "HTTPNotFound", "The resource could not be found.")
}

/// Returns the items that match the query, with the requested fields.
pub(super) fn list_matching<'a>(call: &Call, items: impl Iterator<Item = &'a Item>) -> Vec<Value> {
    let found = items.map(|item| &item.view).filter(|view| matches_query(call.request, view, &NOT_FILTERS));
    found.map(|view| select_fields(call, view)).collect()
}

/// Returns the fields that the query parameter `fields` lists; all if it is absent.
pub(super) fn select_fields(call: &Call, view: &Value) -> Value {
    let fields: Vec<&str> =
        call.request.query.iter().filter(|(name, _)| name == "fields").map(|(_, field)| field.as_str()).collect();
    if fields.is_empty() { view.clone() } else { select_keys(view, &fields) }
}

pub(super) fn unrecognized_attribute(key: &str) -> Response {
    neutron_error(400, "HTTPBadRequest", &format!("Unrecognized attribute(s) '{key}'"))
}

/// Rejects another resource if the project has reached its quota.
pub(super) fn check_quota(state: &State, project: &str, name: &'static str, count: usize) -> Result<(), Response> {
    if state.quota(project, name).is_some_and(|limit| count as u64 >= limit) {
        return Err(neutron_error(409, "OverQuota", &format!("Quota exceeded for resources: ['{name}'].")));
    }
    Ok(())
}

pub(super) fn sees(session: &Session, network: &Item) -> bool {
    session.sees(&network.project) || network.view["shared"] == true || network.view["router:external"] == true
}

fn networks(state: &mut State, call: &Call) -> Answer {
    let missing = |id: &str| neutron_error(404, "NetworkNotFound", &format!("Network {id} could not be found."));
    match call.route() {
        ("GET", ["networks"]) => {
            let seen = state.networks.iter().filter(|network| sees(&call.session, network));
            Ok(Response::json(200, &json!({"networks": list_matching(call, seen)})))
        }
        ("GET", ["networks", id]) => {
            let network = state.networks.get(id).filter(|network| sees(&call.session, network));
            let network = network.ok_or_else(|| missing(id))?;
            Ok(Response::json(200, &json!({"network": select_fields(call, &network.view)})))
        }
        ("POST", ["networks"]) => {
            let requested = &call.body["network"];
            if !requested.is_object() {
                return Err(neutron_error(400, "HTTPBadRequest", "Resource body required"));
            }
            if let Some(key) = unknown_key(requested, &KEYS) {
                return Err(unrecognized_attribute(key));
            }
            let project = &call.session.project;
            check_quota(state, project, "network", state.networks.of(project).count())?;
            let id = add_network(state, project, requested["name"].as_str().unwrap_or_default(), json!({}));
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
                return Err(neutron_error(409, "NetworkInUse", &message));
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
        _ => Err(not_found(call)),
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

pub(super) fn add_subnet(state: &mut State, project: &str, requested: &Value) -> String {
    subnets::add(state, project, requested).unwrap_or_default()
}

/// Connects a subnet (`[project, network, subnet]`) to an external one
/// (`[network, subnet]`).
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
    let missing =
        |id: &str| neutron_error(404, "SecurityGroupNotFound", &format!("Security group {id} does not exist"));
    match call.route() {
        ("GET", ["security-groups"]) => {
            let seen = state.security_groups.iter().filter(|group| call.session.sees(&group.project));
            Ok(Response::json(200, &json!({"security_groups": list_matching(call, seen)})))
        }
        ("GET", ["security-groups", id]) => {
            let group = state.security_groups.get(id).filter(|group| call.session.sees(&group.project));
            let group = group.ok_or_else(|| missing(id))?;
            Ok(Response::json(200, &json!({"security_group": group.view})))
        }
        ("POST", ["security-groups"]) => {
            let requested = &call.body["security_group"];
            check_quota(state, project, "security_group", state.security_groups.of(project).count())?;
            let text = |key: &str| requested[key].as_str().unwrap_or_default();
            let id = add_security_group(state, project, text("name"), text("description"));
            Ok(Response::json(201, &json!({"security_group": state.security_groups.get(&id).map(|group| &group.view)})))
        }
        ("DELETE", ["security-groups", id]) => {
            state
                .security_groups
                .get(id)
                .filter(|group| call.session.sees(&group.project))
                .ok_or_else(|| missing(id))?;
            let wanted = json!(id);
            let holds = |port: &Item| port.view["security_groups"].as_array().is_some_and(|all| all.contains(&wanted));
            if state.ports.iter().any(holds) {
                return Err(neutron_error(409, "SecurityGroupInUse", &format!("Security Group {id} in use.")));
            }
            state.security_groups.remove(id);
            Ok(Response::new(204))
        }
        _ => Err(not_found(call)),
    }
}

pub(super) fn add_security_group(state: &mut State, project: &str, name: &str, description: &str) -> String {
    let (id, now) = (state.uuid(), clock::now() + "Z");
    let view = json!({
        "id": id, "name": name, "stateful": true, "tenant_id": project, "description": description, "shared": false,
        "security_group_rules": [], "tags": [], "created_at": now, "updated_at": now, "revision_number": 1,
        "project_id": project,
    });
    state.security_groups.add(Item::new(&id, project, view));
    id
}

/// Returns the id of the group with this id or name.
pub(super) fn security_group(state: &State, project: &str, named: &str) -> Option<String> {
    let mut groups = state.security_groups.of(project);
    groups.find(|group| group.id == named || group.text("name") == named).map(|group| group.id.clone())
}

/// Returns how many resources of this kind a project has.
fn count_resources(state: &State, project: &str, name: &str) -> usize {
    let table = match name {
        "network" => &state.networks,
        "subnet" => &state.subnets,
        "port" => &state.ports,
        "floatingip" => &state.floating_ips,
        _ => &state.security_groups,
    };
    table.of(project).count()
}

fn quotas(state: &mut State, call: &Call, project: &str) -> Answer {
    if call.request.method == "PUT" {
        let message = "rule:update_quota is disallowed by policy";
        call.check_admin(|| neutron_error(403, "PolicyNotAuthorized", message))?;
        for name in QUOTAS {
            if let Some(limit) = call.body["quota"][name].as_i64() {
                let used = i64::try_from(count_resources(state, project, name)).unwrap_or(i64::MAX);
                if limit >= 0 && limit < used {
                    let message =
                        format!("Quota limit {limit} for {name} must be greater than or equal to already used {used}");
                    return Err(neutron_error(400, "HTTPBadRequest", &message));
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
