//! A server as Nova shows it, which depends on the microversion.

use super::seed;
use super::state::State;
use super::table::Item;
use serde_json::{Value, json};

/// Microversions from which on a server shows more, or otherwise.
const DELETE_ON_TERMINATION: u32 = 3;
const LOCKED: u32 = 9;
const DESCRIPTION: u32 = 19;
const TAGS: u32 = 26;
const FLAVOR_INLINE: u32 = 47;
const TRUSTED: u32 = 63;
const GROUPS: u32 = 71;
const LOCKED_REASON: u32 = 73;
const PINNED_ZONE: u32 = 96;
const IMAGE_PROPERTIES: u32 = 98;
const HINTS: u32 = 100;

pub(super) fn links(kind: &str, id: &str) -> Value {
    json!([
        {"rel": "self", "href": format!("{}/v2.1/{kind}/{id}", seed::COMPUTE)},
        {"rel": "bookmark", "href": format!("{}/{kind}/{id}", seed::COMPUTE)},
    ])
}

pub(super) fn server(state: &State, server: &Item, version: u32) -> Value {
    let mut view = server.view.clone();
    view["flavor"] = flavor(state, server, version);
    view["addresses"] = addresses(state, &server.id);
    if server.hidden["image"].is_null() {
        view["image"] = json!("");
    } else {
        let id = server.hidden["image"].as_str().unwrap_or_default();
        view["image"] = json!({"id": id, "links": [links("images", id)[1]]});
        if version >= IMAGE_PROPERTIES {
            view["image"]["properties"] = json!({});
        }
    }
    if let Some(names) = security_groups(state, server) {
        view["security_groups"] = names;
    }
    let volumes = server.hidden["volumes"].as_array().cloned().unwrap_or_default();
    let volumes = volumes.iter().map(|volume| match version {
        0..DELETE_ON_TERMINATION => json!({"id": volume["id"]}),
        _ => json!({"id": volume["id"], "delete_on_termination": volume["delete_on_termination"]}),
    });
    view["os-extended-volumes:volumes_attached"] = volumes.collect();
    if ["ACTIVE", "BUILD"].contains(&server.text("status")) {
        view["progress"] = json!(0);
    }
    let hidden = &server.hidden;
    for (since, key, value) in [
        (LOCKED, "locked", json!(false)),
        (DESCRIPTION, "description", hidden["description"].clone()),
        (TAGS, "tags", hidden["tags"].clone()),
        (TRUSTED, "trusted_image_certificates", Value::Null),
        (GROUPS, "server_groups", hidden["group"].as_str().map_or(json!([]), |group| json!([group]))),
        (LOCKED_REASON, "locked_reason", Value::Null),
        (PINNED_ZONE, "pinned_availability_zone", hidden["zone"].clone()),
        (HINTS, "scheduler_hints", hidden["hints"].clone()),
    ] {
        if version >= since {
            view[key] = value;
        }
    }
    view
}

/// By reference at first, later all of it.
fn flavor(state: &State, server: &Item, version: u32) -> Value {
    let id = server.hidden["flavor"].as_str().unwrap_or_default();
    match state.flavors.get(id) {
        Some(flavor) if version >= FLAVOR_INLINE => json!({
            "vcpus": flavor.view["vcpus"], "ram": flavor.view["ram"], "disk": flavor.view["disk"],
            "ephemeral": flavor.view["OS-FLV-EXT-DATA:ephemeral"], "swap": 0, "original_name": flavor.view["name"],
            "extra_specs": {},
        }),
        _ => json!({"id": id, "links": [links("flavors", id)[1]]}),
    }
}

/// By network, fixed ones and those that float to them.
fn addresses(state: &State, id: &str) -> Value {
    let mut all = json!({});
    for port in state.ports.iter().filter(|port| port.text("device_id") == id) {
        let network = state.networks.get(port.text("network_id")).map_or("", |network| network.text("name"));
        let entry = |address: &Value, kind: &str| {
            json!({
                "version": 4, "addr": address, "OS-EXT-IPS:type": kind,
                "OS-EXT-IPS-MAC:mac_addr": port.view["mac_address"],
            })
        };
        let fixed = port.view["fixed_ips"].as_array().cloned().unwrap_or_default();
        let mut entries: Vec<Value> = fixed.iter().map(|ip| entry(&ip["ip_address"], "fixed")).collect();
        let floating = state.floating.iter().filter(|floating| floating.view["port_id"] == port.id);
        entries.extend(floating.map(|floating| entry(&floating.view["floating_ip_address"], "floating")));
        if !all[network].is_array() {
            all[network] = json!([]);
        }
        if let Some(known) = all[network].as_array_mut() {
            known.extend(entries);
        }
    }
    all
}

/// Those of its ports, by name; None as long as it has no port.
fn security_groups(state: &State, server: &Item) -> Option<Value> {
    let ports = state.ports.iter().filter(|port| port.text("device_id") == server.id);
    let ids = ports.flat_map(|port| port.view["security_groups"].as_array().cloned().unwrap_or_default());
    let mut names: Vec<Value> = Vec::new();
    for id in ids {
        let group = state.security.get(id.as_str().unwrap_or_default());
        let name = json!({"name": group.map_or("", |group| group.text("name"))});
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| json!(names))
}
