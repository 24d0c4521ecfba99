//! The view of a server in Nova's API, which depends on the microversion.

use super::seed;
use super::state::State;
use super::table::{Item, select_keys};
use serde_json::{Map, Value, json};

/// The microversions that changed the view of a server.
const DELETE_ON_TERMINATION: u32 = 3;
const LOCKED: u32 = 9;
const DESCRIPTION: u32 = 19;
const TAGS: u32 = 26;
const FLAVOR_INLINE: u32 = 47;
const TRUSTED: u32 = 63;
const GROUPS: u32 = 71;
const LOCKED_REASON: u32 = 73;
/// The microversion from which the answer to an update shows the whole server.
const WHOLE_AFTER_CHANGE: u32 = 75;
const HOSTNAME: u32 = 90;
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
            view["image"]["properties"] = properties(state, server, id);
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
    if !["ACTIVE", "BUILD"].contains(&server.text("status"))
        && let Some(view) = view.as_object_mut()
    {
        view.shift_remove("progress");
    }
    let hidden = &server.hidden;
    for (since, key, value) in [
        (LOCKED, "locked", json!(false)),
        (DESCRIPTION, "description", hidden["description"].clone()),
        (TAGS, "tags", hidden["tags"].clone()),
        (TRUSTED, "trusted_image_certificates", Value::Null),
        (GROUPS, "server_groups", hidden["group"].as_str().map_or(json!([]), |group| json!([group]))),
        (HOSTNAME, "OS-EXT-SRV-ATTR:hostname", hidden["hostname"].clone()),
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

/// Returns the answer to an update, which shows less in early microversions.
pub(super) fn server_after_update(state: &State, item: &Item, version: u32) -> Value {
    let mut view = server(state, item, version);
    let more = |key: &String| key.starts_with("OS-EXT") || key.starts_with("OS-SRV") || key.starts_with("os-ext");
    if let Some(view) = view.as_object_mut().filter(|_| version < WHOLE_AFTER_CHANGE) {
        view.retain(|key, _| !more(key) && !["config_drive", "key_name", "security_groups"].contains(&key.as_str()));
        let networks = view["addresses"].as_object_mut().into_iter().flat_map(Map::values_mut);
        for entry in networks.filter_map(Value::as_array_mut).flatten() {
            *entry = select_keys(entry, &["version", "addr"]);
        }
    }
    view
}

/// Returns the properties of the image, with those that Nova derives for the server.
fn properties(state: &State, server: &Item, id: &str) -> Value {
    let image = state.images.get(id).map(|image| &image.view);
    let flavor = state.flavors.get(server.hidden["flavor"].as_str().unwrap_or_default());
    let disk = flavor.map_or(0, |flavor| flavor.number("disk"));
    let mut properties = json!({
        "min_ram": "0", "min_disk": disk.to_string(), "base_image_ref": id,
        "disk_format": image.map(|image| &image["disk_format"]),
        "container_format": image.map(|image| &image["container_format"]),
    });
    for key in ["os_type", "os_distro", "hypervisor_type", "architecture"] {
        if let Some(value) = image.and_then(|image| image.get(key)) {
            properties[key] = value.clone();
        }
    }
    properties
}

/// Returns a reference to the flavor in early microversions, later its values.
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

/// Returns the fixed and floating addresses by network.
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
        let floating = state.floating_ips.iter().filter(|floating| floating.view["port_id"] == port.id);
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

/// Returns the names of the ports' security groups; `None` if there is no port yet.
fn security_groups(state: &State, server: &Item) -> Option<Value> {
    let ports = state.ports.iter().filter(|port| port.text("device_id") == server.id);
    let ids = ports.flat_map(|port| port.view["security_groups"].as_array().cloned().unwrap_or_default());
    let mut names: Vec<Value> = Vec::new();
    for id in ids {
        let group = state.security_groups.get(id.as_str().unwrap_or_default());
        let name = json!({"name": group.map_or("", |group| group.text("name"))});
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| json!(names))
}
