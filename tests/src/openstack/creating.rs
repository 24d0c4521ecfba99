//! A server is asked for: what Nova checks before it says yes.
//!
//! Yes means that it will try. What goes wrong after that shows in the server.

use super::message::{Answer, Response, fault};
use super::python::{is_uuid, required, unexpected, unfit};
use super::simulator::Call;
use super::state::{Effect, State};
use super::table::{Item, stranger};
use super::{blockdevices, clock, groups, seed, tagging, views};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Keys of a server, and the microversion that brought those which were not always there.
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
/// From here on networks are asked for, or declined.
const NETWORKS: u32 = 37;
/// From here on networks and volumes have tags of their own.
pub(super) const TAGGED: u32 = 42;
const MAX_USER_DATA: usize = 65_535;
const GIB: u64 = 1 << 30;

pub(super) fn create(state: &mut State, call: &Call, version: u32) -> Answer {
    let asked = &call.body["server"];
    check_shape(asked, &call.body, version)?;
    let zone = asked["availability_zone"].as_str();
    if zone.is_some_and(|zone| zone != seed::ZONE) {
        return Err(fault(400, "The requested availability zone is not available"));
    }
    let devices = blockdevices::check(state, call, asked, version)?;
    let networks = check_networks(state, call, asked, version)?;
    let flavor_id = text_or_number(&asked["flavorRef"]);
    let flavor = state.flavors.get(&flavor_id).cloned();
    let flavor = flavor.ok_or_else(|| fault(400, &format!("Flavor {flavor_id} could not be found.")))?;
    let image = check_image(state, call, asked, &flavor, !devices.is_empty())?;
    check_rest(state, call, asked)?;
    let hints = call.body.get("os:scheduler_hints").or_else(|| call.body.get("OS-SCH-HNT:scheduler_hints"));
    let group = groups::hinted(state, call, hints.unwrap_or(&Value::Null))?;
    check_quota(state, &call.session.project, &flavor)?;

    let (id, now) = (state.uuid(), clock::now() + "Z");
    let mut names = asked["security_groups"].clone();
    if names.as_array().is_none_or(Vec::is_empty) {
        names = json!([{"name": "default"}]);
    }
    let view = json!({
        "id": id, "name": asked["name"], "status": "BUILD", "tenant_id": call.session.project,
        "user_id": call.session.user, "metadata": asked.get("metadata").unwrap_or(&json!({})), "hostId": "",
        "image": "", "flavor": {}, "created": now, "updated": now, "addresses": {}, "accessIPv4": "",
        "accessIPv6": "", "links": views::links("servers", &id), "OS-DCF:diskConfig": "MANUAL", "progress": 0,
        "OS-EXT-AZ:availability_zone": zone.unwrap_or_default(),
        "config_drive": if truthy(&asked["config_drive"]) { "True" } else { "" },
        "key_name": asked.get("key_name"), "OS-SRV-USG:launched_at": null, "OS-SRV-USG:terminated_at": null,
        "OS-EXT-STS:task_state": "scheduling", "OS-EXT-STS:vm_state": "building", "OS-EXT-STS:power_state": 0,
        "os-extended-volumes:volumes_attached": [],
    });
    let hidden = json!({
        "flavor": flavor.id, "image": image, "user_data": asked.get("user_data"), "networks": networks,
        "security_groups": names, "devices": devices, "volumes": [], "ports": [], "group": group, "zone": zone,
        "hints": hints.unwrap_or(&json!({})), "tags": asked.get("tags").unwrap_or(&json!([])),
        "description": asked.get("description").unwrap_or(&asked["name"]), "hostname": asked["name"],
    });
    state.servers.add(Item { hidden, ..Item::new(&id, &call.session.project, view) });
    if let Some(group) = group.as_deref() {
        groups::join(state, group, &id);
    }
    let taken: Vec<&str> = networks.iter().filter_map(|network| network["port"].as_str()).collect();
    state.later(&[&[id.as_str()], taken.as_slice()].concat(), Effect::Built { server: id.clone() });
    let password = state.hex()[..12].to_owned();
    let answer = json!({"server": {
        "id": id, "links": views::links("servers", &id), "OS-DCF:diskConfig": "MANUAL", "security_groups": names,
        "adminPass": password,
    }});
    Ok(Response::json(202, &answer).with("Location", &format!("{}/v2.1/servers/{id}", seed::COMPUTE)))
}

fn check_shape(asked: &Value, body: &Value, version: u32) -> Result<(), Response> {
    for key in ["name", "flavorRef"] {
        if asked.get(key).is_none() {
            return Err(required("server", asked, key));
        }
    }
    if version >= NETWORKS && asked.get("networks").is_none() {
        return Err(required("server", asked, "networks"));
    }
    let later = LATER_KEYS.iter().filter(|(_, since)| version >= *since).map(|(key, _)| *key);
    let known: Vec<&str> = KEYS.iter().copied().chain(later).collect();
    let outer = ["server", "os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"];
    if let Some(key) = stranger(asked, &known).or_else(|| stranger(body, &outer)) {
        return Err(unexpected("server", asked, key));
    }
    check_name(&asked["name"])?;
    let drive = &asked["config_drive"];
    let words = ["true", "1", "on", "yes", "false", "0", "off", "no"];
    let known = drive.as_str().is_some_and(|word| words.contains(&word.to_lowercase().as_str()));
    if !drive.is_null() && !drive.is_boolean() && !known {
        return Err(unfit(
            "config_drive",
            drive,
            "is not one of [True, 'True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes', False, 'False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no']",
        ));
    }
    if let Some(data) = asked.get("user_data") {
        let text = data.as_str().ok_or_else(|| unfit("user_data", data, "is not of type 'string'"))?;
        if text.len() > MAX_USER_DATA {
            return Err(unfit("user_data", data, "is too long"));
        }
        // What is no letter of the encoding, it skips.
        let letters: Vec<u8> =
            text.bytes().filter(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)).collect();
        if STANDARD.decode(letters).is_err() {
            return Err(unfit("user_data", data, "is not a 'base64'"));
        }
    }
    asked.get("tags").map_or(Ok(()), |tags| tagging::check_tags(tags).map(drop))?;
    asked.get("metadata").map_or(Ok(()), |metadata| tagging::checked(metadata).map(drop))
}

fn check_name(name: &Value) -> Result<(), Response> {
    let text = name.as_str().ok_or_else(|| unfit("name", name, "is not of type 'string'"))?;
    if text.is_empty() {
        return Err(unfit("name", name, "should be non-empty"));
    }
    if text.chars().count() > 255 {
        return Err(unfit("name", name, "is too long"));
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        let message = "An invalid 'name' value was provided. The name must be: printable characters. Can not start or end with whitespace.";
        return Err(fault(400, message));
    }
    Ok(())
}

/// What to connect it to: ports that are there, or networks.
fn check_networks(state: &State, call: &Call, asked: &Value, version: u32) -> Result<Vec<Value>, Response> {
    let project = &call.session.project;
    let own = || state.networks.of(project).map(|network| json!({"uuid": network.id})).collect::<Vec<Value>>();
    let networks = match &asked["networks"] {
        Value::Array(networks) => networks.clone(),
        Value::String(word) if word == "none" => return Ok(Vec::new()),
        Value::Null | Value::String(_) => match own() {
            several if several.len() > 1 => {
                let message = "Multiple possible networks found, use a Network ID to be more specific.";
                return Err(fault(409, message));
            }
            networks => networks,
        },
        other => return Err(unfit("networks", other, "is not of type 'array'")),
    };
    let keys: &[&str] =
        if version >= TAGGED { &["uuid", "port", "fixed_ip", "tag"] } else { &["uuid", "port", "fixed_ip"] };
    for network in &networks {
        if let Some(key) = stranger(network, keys) {
            return Err(unexpected("0", network, key));
        }
        match (network["port"].as_str(), network["uuid"].as_str()) {
            (Some(id), _) => {
                if !is_uuid(id) {
                    return Err(unfit("port", &network["port"], "is not valid under any of the given schemas"));
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
                return Err(unfit("fixed_ip", &network["fixed_ip"], "is not valid under any of the given schemas"));
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

/// The image that it boots from; null if that is a volume.
fn check_image(
    state: &State,
    call: &Call,
    asked: &Value,
    flavor: &Item,
    has_devices: bool,
) -> Result<Option<String>, Response> {
    let id = asked["imageRef"].as_str().unwrap_or_default();
    if id.is_empty() {
        return if has_devices { Ok(None) } else { Err(fault(400, "Missing imageRef attribute")) };
    }
    if !is_uuid(id) {
        return Err(unfit("imageRef", &asked["imageRef"], "is not valid under any of the given schemas"));
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

fn check_rest(state: &State, call: &Call, asked: &Value) -> Result<(), Response> {
    if let Some(name) = asked["key_name"].as_str() {
        let mut keys = state.keypairs.iter().filter(|key| key.hidden["user"] == call.session.user);
        if !keys.any(|key| key.text("name") == name) {
            return Err(fault(400, "Invalid key_name provided."));
        }
    }
    for group in asked["security_groups"].as_array().into_iter().flatten() {
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
    // Nova lists them by name.
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

pub(super) fn truthy(value: &Value) -> bool {
    value == true || value.as_str().is_some_and(|text| ["true", "True", "1", "yes", "on"].contains(&text))
}

fn text_or_number(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
