//! Neutron's floating addresses.

use super::message::{Answer, Response, refusal};
use super::network::{check_quota, listed, nowhere};
use super::simulator::Call;
use super::state::State;
use super::table::{Item, only};
use super::{clock, subnets};
use serde_json::{Value, json};

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        ("GET", ["floatingips"]) => {
            let seen = state.floating.iter().filter(|floating| call.session.sees(&floating.project));
            Ok(Response::json(200, &json!({"floatingips": listed(call, seen)})))
        }
        ("GET", ["floatingips", id]) => Ok(shown(200, find(state, call, id)?)),
        ("POST", ["floatingips"]) => create(state, call),
        ("PUT", ["floatingips", id]) => {
            find(state, call, id)?;
            let port = call.body["floatingip"]["port_id"].as_str();
            associate(state, call, id, port)?;
            Ok(shown(200, find(state, call, id)?))
        }
        ("DELETE", ["floatingips", id]) => {
            find(state, call, id)?;
            state.floating.remove(id);
            Ok(Response::new(204))
        }
        _ => Err(nowhere(call)),
    }
}

fn shown(status: u16, floating: &Item) -> Response {
    Response::json(status, &json!({"floatingip": floating.view}))
}

fn find<'a>(state: &'a State, call: &Call, id: &str) -> Result<&'a Item, Response> {
    let floating = state.floating.get(id).filter(|floating| call.session.sees(&floating.project));
    floating.ok_or_else(|| refusal(404, "FloatingIPNotFound", &format!("Floating IP {id} could not be found")))
}

fn create(state: &mut State, call: &Call) -> Answer {
    let asked = &call.body["floatingip"];
    let network = asked["floating_network_id"].as_str().unwrap_or_default();
    let known = state.networks.get(network);
    let known =
        known.ok_or_else(|| refusal(404, "NetworkNotFound", &format!("Network {network} could not be found.")))?;
    if known.view["router:external"] != true {
        let message = format!("Bad floatingip request: Network {network} is not a valid external network.");
        return Err(refusal(400, "BadRequest", &message));
    }
    let project = &call.session.project;
    check_quota(state, project, "floatingip", state.floating.of(project).count())?;
    let address = add(state, project, network);
    let id = state.floating.iter().find(|floating| floating.text("floating_ip_address") == address);
    let id = id.map(|floating| floating.id.clone()).unwrap_or_default();
    associate(state, call, &id, asked["port_id"].as_str())?;
    Ok(shown(201, find(state, call, &id)?))
}

/// A new one, that floats to nothing; answers its address.
pub(super) fn add(state: &mut State, project: &str, network: &str) -> String {
    let subnet = state.subnets.iter().find(|subnet| subnet.text("network_id") == network);
    let address = subnet.and_then(|subnet| subnets::free(state, subnet)).unwrap_or_default();
    let (id, now) = (state.uuid(), clock::now() + "Z");
    let view = json!({
        "id": id, "tenant_id": project, "floating_ip_address": address, "floating_network_id": network,
        "router_id": null, "port_id": null, "fixed_ip_address": null, "status": "DOWN", "description": "",
        "port_details": null, "tags": [], "created_at": now, "updated_at": now, "revision_number": 0,
        "project_id": project,
    });
    state.floating.add(Item::new(&id, project, view));
    address
}

fn associate(state: &mut State, call: &Call, id: &str, port: Option<&str>) -> Result<(), Response> {
    let Some(port_id) = port else {
        point(state, id, Value::Null, Value::Null);
        return Ok(());
    };
    let port = state.ports.get(port_id).filter(|port| call.session.sees(&port.project));
    let port = port.ok_or_else(|| refusal(404, "PortNotFound", &format!("Port {port_id} could not be found.")))?;
    let fixed = port.view["fixed_ips"][0].clone();
    let subnet = fixed["subnet_id"].as_str().unwrap_or_default();
    let floating = find(state, call, id)?;
    let network = floating.text("floating_network_id");
    let routed = state.subnets.get(subnet).is_some_and(|subnet| subnet.hidden["routed"] == network);
    if !routed {
        let message = format!(
            "External network {network} is not reachable from subnet {subnet}.  Therefore, cannot associate Port {port_id} with a Floating IP."
        );
        return Err(refusal(404, "ExternalGatewayForFloatingIPNotFound", &message));
    }
    if let Some(other) = state.floating.iter().find(|other| other.id != id && other.view["port_id"] == port_id) {
        let message = format!(
            "Cannot associate floating IP {} ({}) with port {port_id} using fixed IP {}, as that fixed IP already has a floating IP on external network {network}.",
            floating.text("floating_ip_address"),
            other.id,
            fixed["ip_address"].as_str().unwrap_or_default()
        );
        return Err(refusal(409, "FloatingIPPortAlreadyAssociated", &message));
    }
    point(state, id, json!(port_id), fixed["ip_address"].clone());
    Ok(())
}

fn point(state: &mut State, id: &str, port: Value, fixed: Value) {
    // Without an agent that does it, an address stays down.
    let details = port.as_str().and_then(|port| state.ports.get(port)).map(|port| {
        let keys = ["name", "network_id", "mac_address", "admin_state_up", "status", "device_id", "device_owner"];
        only(&port.view, &keys)
    });
    let router = state.ports.iter().find(|port| port.text("device_owner") == "network:router_interface");
    let router = router.filter(|_| !port.is_null()).map(|router| router.view["device_id"].clone());
    state.floating.set(id, "port_details", json!(details));
    state.floating.set(id, "router_id", json!(router));
    state.floating.set(id, "port_id", port);
    state.floating.set(id, "fixed_ip_address", fixed);
    state.floating.set(id, "updated_at", json!(clock::now() + "Z"));
}

/// The port is gone.
pub(super) fn release(state: &mut State, port: &str) {
    let pointing = state.floating.iter().filter(|floating| floating.view["port_id"] == port);
    let ids: Vec<String> = pointing.map(|floating| floating.id.clone()).collect();
    for id in ids {
        point(state, &id, Value::Null, Value::Null);
    }
}
