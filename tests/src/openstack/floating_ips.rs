//! Neutron's floating IPs.

use super::message::{Answer, Response, neutron_error};
use super::network::{check_quota, list_matching, not_found};
use super::simulator::Call;
use super::state::State;
use super::table::{Item, select_keys};
use super::{clock, subnets};
use serde_json::{Value, json};

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        ("GET", ["floatingips"]) => {
            let seen = state.floating_ips.iter().filter(|floating| call.session.sees(&floating.project));
            Ok(Response::json(200, &json!({"floatingips": list_matching(call, seen)})))
        }
        ("GET", ["floatingips", id]) => Ok(floating_ip_response(200, find(state, call, id)?)),
        ("POST", ["floatingips"]) => create(state, call),
        ("PUT", ["floatingips", id]) => {
            find(state, call, id)?;
            let port = call.body["floatingip"]["port_id"].as_str();
            associate(state, call, id, port)?;
            Ok(floating_ip_response(200, find(state, call, id)?))
        }
        ("DELETE", ["floatingips", id]) => {
            find(state, call, id)?;
            state.floating_ips.remove(id);
            Ok(Response::new(204))
        }
        _ => Err(not_found(call)),
    }
}

fn floating_ip_response(status: u16, floating: &Item) -> Response {
    Response::json(status, &json!({"floatingip": floating.view}))
}

fn find<'a>(state: &'a State, call: &Call, id: &str) -> Result<&'a Item, Response> {
    let floating = state.floating_ips.get(id).filter(|floating| call.session.sees(&floating.project));
    floating.ok_or_else(|| neutron_error(404, "FloatingIPNotFound", &format!("Floating IP {id} could not be found")))
}

fn create(state: &mut State, call: &Call) -> Answer {
    let requested = &call.body["floatingip"];
    let network = requested["floating_network_id"].as_str().unwrap_or_default();
    let known = state.networks.get(network);
    let known = known
        .ok_or_else(|| neutron_error(404, "NetworkNotFound", &format!("Network {network} could not be found.")))?;
    if known.view["router:external"] != true {
        let message = format!("Bad floatingip request: Network {network} is not a valid external network.");
        return Err(neutron_error(400, "BadRequest", &message));
    }
    let project = &call.session.project;
    check_quota(state, project, "floatingip", state.floating_ips.of(project).count())?;
    let address = add(state, project, network);
    let id = state.floating_ips.iter().find(|floating| floating.text("floating_ip_address") == address);
    let id = id.map(|floating| floating.id.clone()).unwrap_or_default();
    associate(state, call, &id, requested["port_id"].as_str())?;
    Ok(floating_ip_response(201, find(state, call, &id)?))
}

/// Creates a floating IP without a port and returns its address.
pub(super) fn add(state: &mut State, project: &str, network: &str) -> String {
    let subnet = state.subnets.iter().find(|subnet| subnet.text("network_id") == network);
    let address = subnet.and_then(|subnet| subnets::first_free_address(state, subnet)).unwrap_or_default();
    let (id, now) = (state.uuid(), clock::now() + "Z");
    let view = json!({
        "id": id, "tenant_id": project, "floating_ip_address": address, "floating_network_id": network,
        "router_id": null, "port_id": null, "fixed_ip_address": null, "status": "DOWN", "description": "",
        "port_details": null, "tags": [], "created_at": now, "updated_at": now, "revision_number": 0,
        "project_id": project,
    });
    state.floating_ips.add(Item::new(&id, project, view));
    address
}

fn associate(state: &mut State, call: &Call, id: &str, port: Option<&str>) -> Result<(), Response> {
    let Some(port_id) = port else {
        set_port(state, id, Value::Null, Value::Null);
        return Ok(());
    };
    let port = state.ports.get(port_id).filter(|port| call.session.sees(&port.project));
    let port =
        port.ok_or_else(|| neutron_error(404, "PortNotFound", &format!("Port {port_id} could not be found.")))?;
    let fixed = port.view["fixed_ips"][0].clone();
    let subnet = fixed["subnet_id"].as_str().unwrap_or_default();
    let floating = find(state, call, id)?;
    let network = floating.text("floating_network_id");
    let routed = state.subnets.get(subnet).is_some_and(|subnet| subnet.hidden["routed"] == network);
    if !routed {
        let message = format!(
            "External network {network} is not reachable from subnet {subnet}.  Therefore, cannot associate Port {port_id} with a Floating IP."
        );
        return Err(neutron_error(404, "ExternalGatewayForFloatingIPNotFound", &message));
    }
    if let Some(other) = state.floating_ips.iter().find(|other| other.id != id && other.view["port_id"] == port_id) {
        let message = format!(
            "Cannot associate floating IP {} ({}) with port {port_id} using fixed IP {}, as that fixed IP already has a floating IP on external network {network}.",
            floating.text("floating_ip_address"),
            other.id,
            fixed["ip_address"].as_str().unwrap_or_default()
        );
        return Err(neutron_error(409, "FloatingIPPortAlreadyAssociated", &message));
    }
    set_port(state, id, json!(port_id), fixed["ip_address"].clone());
    Ok(())
}

fn set_port(state: &mut State, id: &str, port: Value, fixed: Value) {
    // The status stays DOWN, as this cloud has no agent that would activate the address.
    let details = port.as_str().and_then(|port| state.ports.get(port)).map(|port| {
        let keys = ["name", "network_id", "mac_address", "admin_state_up", "status", "device_id", "device_owner"];
        select_keys(&port.view, &keys)
    });
    let router = state.ports.iter().find(|port| port.text("device_owner") == "network:router_interface");
    let router = router.filter(|_| !port.is_null()).map(|router| router.view["device_id"].clone());
    state.floating_ips.set(id, "port_details", json!(details));
    state.floating_ips.set(id, "router_id", json!(router));
    state.floating_ips.set(id, "port_id", port);
    state.floating_ips.set(id, "fixed_ip_address", fixed);
    state.floating_ips.set(id, "updated_at", json!(clock::now() + "Z"));
}

/// Clears the port of the floating IPs that used a deleted port.
pub(super) fn release(state: &mut State, port: &str) {
    let pointing = state.floating_ips.iter().filter(|floating| floating.view["port_id"] == port);
    let ids: Vec<String> = pointing.map(|floating| floating.id.clone()).collect();
    for id in ids {
        set_port(state, &id, Value::Null, Value::Null);
    }
}
