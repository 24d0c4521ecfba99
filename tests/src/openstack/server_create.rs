//! Creates servers: the checks that Nova makes before it accepts a request.
//!
//! An accepted request can still fail later. Such a failure is visible in the server.

use super::message::{Answer, Response, fault};
use super::python::{invalid_value, is_uuid, missing_property, unexpected_property};
use super::simulator::Call;
use super::state::{Effect, State};
use super::table::{Item, unknown_key};
use super::{block_devices, clock, seed, server_groups, server_metadata, server_views};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::IpAddr;

/// The keys of a request, and the microversions that added the later ones.
const KEYS: [&str; 18] = [
    "name",
    "imageRef",
    "flavorRef",
    "adminPass",
    "metadata",
    "networks",
    "OS-DCF:diskConfig",
    "accessIPv4",
    "accessIPv6",
    "personality",
    "availability_zone",
    "block_device_mapping_v2",
    "config_drive",
    "key_name",
    "min_count",
    "max_count",
    "security_groups",
    "user_data",
];
const LATER_KEYS: [(&str, u32); 5] =
    [("description", 19), ("tags", 52), ("host", 74), ("hypervisor_hostname", 74), ("hostname", 90)];
/// The microversion that made `networks` mandatory.
const NETWORKS: u32 = 37;
/// The microversion that added `tag` to networks and volumes.
pub(super) const TAGGED: u32 = 42;
const MAX_USER_DATA: usize = 65_535;
const GIB: u64 = 1 << 30;

pub(super) fn create(state: &mut State, call: &Call, version: u32) -> Answer {
    let requested = &call.body["server"];
    check_shape(requested, &call.body, version)?;
    let zone = requested["availability_zone"].as_str();
    if zone.is_some_and(|zone| zone != seed::ZONE) {
        return Err(fault(400, "The requested availability zone is not available"));
    }
    let devices = block_devices::check(state, call, requested, version)?;
    let networks = check_networks(state, call, requested, version)?;
    let flavor_id = text_or_number(&requested["flavorRef"]);
    let flavor = state.flavors.get(&flavor_id).cloned();
    let flavor = flavor.ok_or_else(|| fault(400, &format!("Flavor {flavor_id} could not be found.")))?;
    let image = check_image(state, call, requested, &flavor, !devices.is_empty())?;
    check_key_and_groups(state, call, requested)?;
    let hints = call.body.get("os:scheduler_hints").or_else(|| call.body.get("OS-SCH-HNT:scheduler_hints"));
    let group = server_groups::find_hinted(state, call, hints.unwrap_or(&Value::Null))?;
    check_quota(state, &call.session.project, &flavor)?;

    let (id, now) = (state.uuid(), clock::now() + "Z");
    let mut names = requested["security_groups"].clone();
    if names.as_array().is_none_or(Vec::is_empty) {
        names = json!([{"name": "default"}]);
    }
    let view = json!({
        "id": id, "name": requested["name"], "status": "BUILD", "tenant_id": call.session.project,
        "user_id": call.session.user, "metadata": requested.get("metadata").unwrap_or(&json!({})), "hostId": "",
        "image": "", "flavor": {}, "created": now, "updated": now, "addresses": {}, "accessIPv4": "",
        "accessIPv6": "", "links": server_views::links("servers", &id), "OS-DCF:diskConfig": "MANUAL", "progress": 0,
        "OS-EXT-AZ:availability_zone": zone.unwrap_or_default(),
        "config_drive": if is_truthy(&requested["config_drive"]) { "True" } else { "" },
        "key_name": requested.get("key_name"), "OS-SRV-USG:launched_at": null, "OS-SRV-USG:terminated_at": null,
        "OS-EXT-STS:task_state": "scheduling", "OS-EXT-STS:vm_state": "building", "OS-EXT-STS:power_state": 0,
        "os-extended-volumes:volumes_attached": [],
    });
    let hidden = json!({
        "flavor": flavor.id, "image": image, "user_data": requested.get("user_data"), "networks": networks,
        "security_groups": names, "devices": devices, "volumes": [], "ports": [], "group": group, "zone": zone,
        "hints": hints.unwrap_or(&json!({})), "tags": requested.get("tags").unwrap_or(&json!([])),
        "description": requested.get("description").unwrap_or(&requested["name"]), "hostname": requested["name"],
    });
    state.servers.add(Item { hidden, ..Item::new(&id, &call.session.project, view) });
    if let Some(group) = group.as_deref() {
        server_groups::join(state, group, &id);
    }
    let used_ports: Vec<&str> = networks.iter().filter_map(|network| network["port"].as_str()).collect();
    state.schedule(&[&[id.as_str()], used_ports.as_slice()].concat(), Effect::ServerBuilt { server: id.clone() });
    let password = state.hex()[..12].to_owned();
    let answer = json!({"server": {
        "id": id, "links": server_views::links("servers", &id), "OS-DCF:diskConfig": "MANUAL", "security_groups": names,
        "adminPass": password,
    }});
    Ok(Response::json(202, &answer).with("Location", &format!("{}/v2.1/servers/{id}", seed::COMPUTE)))
}

fn check_shape(requested: &Value, body: &Value, version: u32) -> Result<(), Response> {
    for key in ["name", "flavorRef"] {
        if requested.get(key).is_none() {
            return Err(missing_property("server", requested, key));
        }
    }
    if version >= NETWORKS && requested.get("networks").is_none() {
        return Err(missing_property("server", requested, "networks"));
    }
    let later = LATER_KEYS.iter().filter(|(_, since)| version >= *since).map(|(key, _)| *key);
    let known: Vec<&str> = KEYS.iter().copied().chain(later).collect();
    let outer = ["server", "os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"];
    if let Some(key) = unknown_key(requested, &known).or_else(|| unknown_key(body, &outer)) {
        return Err(unexpected_property("server", requested, key));
    }
    check_name(&requested["name"])?;
    let drive = &requested["config_drive"];
    let values = ["true", "1", "on", "yes", "false", "0", "off", "no"];
    let known = drive.as_str().is_some_and(|value| values.contains(&value.to_lowercase().as_str()));
    if !drive.is_null() && !drive.is_boolean() && !known {
        return Err(invalid_value(
            "config_drive",
            drive,
            "is not one of [True, 'True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes', False, 'False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no']",
        ));
    }
    if let Some(data) = requested.get("user_data") {
        let text = data.as_str().ok_or_else(|| invalid_value("user_data", data, "is not of type 'string'"))?;
        if text.len() > MAX_USER_DATA {
            return Err(invalid_value("user_data", data, "is too long"));
        }
        // Nova ignores characters that are not in the base64 alphabet.
        let letters: Vec<u8> =
            text.bytes().filter(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)).collect();
        if STANDARD.decode(letters).is_err() {
            return Err(invalid_value("user_data", data, "is not a 'base64'"));
        }
    }
    requested.get("tags").map_or(Ok(()), |tags| server_metadata::check_tags(tags).map(drop))?;
    requested.get("metadata").map_or(Ok(()), |metadata| server_metadata::check_metadata(metadata).map(drop))
}

fn check_name(name: &Value) -> Result<(), Response> {
    let text = name.as_str().ok_or_else(|| invalid_value("name", name, "is not of type 'string'"))?;
    if text.is_empty() {
        return Err(invalid_value("name", name, "should be non-empty"));
    }
    if text.chars().count() > 255 {
        return Err(invalid_value("name", name, "is too long"));
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        let message = "An invalid 'name' value was provided. The name must be: printable characters. Can not start or end with whitespace.";
        return Err(fault(400, message));
    }
    Ok(())
}

/// Returns the ports and networks that the server will use.
fn check_networks(state: &State, call: &Call, requested: &Value, version: u32) -> Result<Vec<Value>, Response> {
    let project = &call.session.project;
    let own = || state.networks.of(project).map(|network| json!({"uuid": network.id})).collect::<Vec<Value>>();
    let networks = match &requested["networks"] {
        Value::Array(networks) => networks.clone(),
        Value::String(word) if word == "none" => return Ok(Vec::new()),
        Value::Null | Value::String(_) => match own() {
            several if several.len() > 1 => {
                let message = "Multiple possible networks found, use a Network ID to be more specific.";
                return Err(fault(409, message));
            }
            networks => networks,
        },
        other => return Err(invalid_value("networks", other, "is not of type 'array'")),
    };
    let keys: &[&str] =
        if version >= TAGGED { &["uuid", "port", "fixed_ip", "tag"] } else { &["uuid", "port", "fixed_ip"] };
    for network in &networks {
        if let Some(key) = unknown_key(network, keys) {
            return Err(unexpected_property("0", network, key));
        }
        match (network["port"].as_str(), network["uuid"].as_str()) {
            (Some(id), _) => {
                if !is_uuid(id) {
                    return Err(invalid_value("port", &network["port"], "is not valid under any of the given schemas"));
                }
                let port = state.ports.get(id).filter(|port| call.session.sees(&port.project));
                let port = port.ok_or_else(|| fault(400, &format!("Port id {id} could not be found.")))?;
                if !port.text("device_id").is_empty() {
                    return Err(fault(409, &format!("Port {id} is still in use.")));
                }
                if port.view["fixed_ips"].as_array().is_none_or(Vec::is_empty) {
                    return Err(fault(400, &format!("Port {id} requires a FixedIP in order to be used.")));
                }
            }
            (None, Some(_))
                if network["fixed_ip"].as_str().is_some_and(|address| address.parse::<IpAddr>().is_err()) =>
            {
                return Err(invalid_value(
                    "fixed_ip",
                    &network["fixed_ip"],
                    "is not valid under any of the given schemas",
                ));
            }
            (None, Some(id)) => check_network(state, call, id, network["fixed_ip"].as_str())?,
            (None, None) => return Err(fault(400, "Bad network format: missing 'uuid'")),
        }
    }
    Ok(networks)
}

fn check_network(state: &State, call: &Call, id: &str, address: Option<&str>) -> Result<(), Response> {
    let shared = |network: &&Item| call.session.sees(&network.project) || network.view["router:external"] == true;
    let network = state.networks.get(id).filter(shared);
    let network = network.ok_or_else(|| fault(400, &format!("Network {id} could not be found.")))?;
    if network.view["subnets"].as_array().is_none_or(Vec::is_empty) {
        let message = format!("Network {id} requires a subnet in order to boot instances on.");
        return Err(fault(400, &message));
    }
    let holder = address.and_then(|address| super::ports::holder(state, id, address));
    holder.map_or(Ok(()), |port| {
        let (address, server) = (address.unwrap_or_default(), port.text("device_id"));
        Err(fault(400, &format!("Fixed IP address {address} is already in use on instance {server}.")))
    })
}

/// Returns the image that the server boots from; `None` if it boots from a volume.
fn check_image(
    state: &State,
    call: &Call,
    requested: &Value,
    flavor: &Item,
    has_devices: bool,
) -> Result<Option<String>, Response> {
    let id = requested["imageRef"].as_str().unwrap_or_default();
    if id.is_empty() {
        return if has_devices { Ok(None) } else { Err(fault(400, "Missing imageRef attribute")) };
    }
    if !is_uuid(id) {
        return Err(invalid_value("imageRef", &requested["imageRef"], "is not valid under any of the given schemas"));
    }
    let image = super::image::find(state, &call.session, call.request, id);
    let image = image.map_err(|_| fault(400, "Can not find requested image"))?;
    if image.text("status") != "active" {
        return Err(fault(400, &format!("Image {id} is not active.")));
    }
    if flavor.number("ram") < image.number("min_ram") {
        return Err(fault(400, "Flavor's memory is too small for requested image."));
    }
    let (disk, least, size) = (flavor.number("disk") * GIB, image.number("min_disk") * GIB, image.number("size"));
    if disk == 0 {
        return Err(fault(403, "Only volume-backed servers are allowed for flavors with zero disk."));
    }
    if disk < size {
        let message = format!(
            "Flavor's disk is too small for requested image. Flavor disk is {disk} bytes, image is {size} bytes."
        );
        return Err(fault(400, &message));
    }
    if disk < least {
        let message = format!(
            "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is {disk} bytes, minimum size is {least} bytes."
        );
        return Err(fault(400, &message));
    }
    Ok(Some(id.to_owned()))
}

fn check_key_and_groups(state: &State, call: &Call, requested: &Value) -> Result<(), Response> {
    if let Some(name) = requested["key_name"].as_str() {
        let mut keys = state.keypairs.iter().filter(|key| key.hidden["user"] == call.session.user);
        if !keys.any(|key| key.text("name") == name) {
            return Err(fault(400, "Invalid key_name provided."));
        }
    }
    for group in requested["security_groups"].as_array().into_iter().flatten() {
        let name = group["name"].as_str().unwrap_or_default();
        super::network::security_group(state, &call.session.project, name)
            .ok_or_else(|| fault(400, &format!("Unable to find security_group with name or id '{name}'")))?;
    }
    Ok(())
}

fn check_quota(state: &State, project: &str, flavor: &Item) -> Result<(), Response> {
    let sum = |key: &str| -> u64 {
        let flavors =
            state.servers.of(project).filter_map(|server| state.flavors.get(server.hidden["flavor"].as_str()?));
        flavors.map(|flavor| flavor.number(key)).sum()
    };
    let wanted = [
        ("instances", 1, state.servers.of(project).count() as u64),
        ("cores", flavor.number("vcpus"), sum("vcpus")),
        ("ram", flavor.number("ram"), sum("ram")),
    ];
    let mut over = Vec::new();
    for (name, more, used) in wanted {
        if let Some(limit) = state.quota(project, name).filter(|limit| used + more > *limit) {
            over.push((name, more.to_string(), used.to_string(), limit.to_string()));
        }
    }
    // Nova sorts them by name.
    over.sort();
    if over.is_empty() {
        return Ok(());
    }
    let names = over.iter().map(|over| over.0).collect::<Vec<_>>().join(", ");
    let [more, used, limits] = [1, 2, 3].map(|at| {
        let column = over.iter().map(|over| [&over.1, &over.2, &over.3][at - 1].as_str());
        column.collect::<Vec<_>>().join(", ")
    });
    let message = format!("Quota exceeded for {names}: Requested {more}, but already used {used} of {limits} {names}");
    Err(fault(403, &message))
}

pub(super) fn is_truthy(value: &Value) -> bool {
    value == true || value.as_str().is_some_and(|text| ["true", "True", "1", "yes", "on"].contains(&text))
}

fn text_or_number(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
