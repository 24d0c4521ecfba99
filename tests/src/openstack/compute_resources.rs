//! Nova's flavors, key pairs, availability zones, quotas and interfaces.

use super::message::{Answer, Response, fault, not_found};
use super::python::missing_property;
use super::simulator::Call;
use super::state::State;
use super::table::{Item, select_keys};
use super::{seed, servers};
use serde_json::{Value, json};

/// The microversions that added a flavor's description and extra specs and a key
/// pair's type, and that removed the generation of key pairs.
const FLAVOR_DESCRIPTION: u32 = 55;
const FLAVOR_SPECS: u32 = 61;
const KEY_TYPE: u32 = 2;
const NO_KEY_GENERATION: u32 = 92;
pub(super) const COMPUTE_QUOTAS: [&str; 7] =
    ["instances", "cores", "ram", "key_pairs", "server_groups", "server_group_members", "metadata_items"];

pub(super) fn answer(state: &mut State, call: &Call, version: u32) -> Answer {
    match call.route() {
        ("GET", ["flavors"]) => {
            let flavors = state.flavors.iter().map(|flavor| select_keys(&flavor.view, &["id", "name", "links"]));
            Ok(Response::json(200, &json!({"flavors": flavors.collect::<Vec<_>>()})))
        }
        ("GET", ["flavors", "detail"]) => {
            let flavors: Vec<Value> = state.flavors.iter().map(|flavor| flavor_view(flavor, version)).collect();
            Ok(Response::json(200, &json!({"flavors": flavors})))
        }
        ("GET", ["flavors", id]) => {
            let flavor = state.flavors.get(id);
            let flavor = flavor.ok_or_else(|| fault(404, &format!("Flavor {id} could not be found.")))?;
            Ok(Response::json(200, &json!({"flavor": flavor_view(flavor, version)})))
        }
        ("POST", ["flavors"]) => create_flavor(state, call, version),
        ("DELETE", ["flavors", id]) => {
            let policy = "Policy doesn't allow os_compute_api:os-flavor-manage:delete to be performed.";
            call.check_admin(|| fault(403, policy))?;
            let removed = state.flavors.remove(id).map(|_| Response::new(202));
            removed.ok_or_else(|| fault(404, &format!("Flavor {id} could not be found.")))
        }
        (_, ["os-keypairs", ..]) => keypairs(state, call, version),
        ("GET", ["os-availability-zone"]) => {
            let zone = json!({"zoneName": seed::ZONE, "zoneState": {"available": true}, "hosts": null});
            Ok(Response::json(200, &json!({"availabilityZoneInfo": [zone]})))
        }
        (_, ["os-quota-sets", project, ..]) => quota_sets(state, call, project, &COMPUTE_QUOTAS, &[]),
        _ => Err(not_found(call.request)),
    }
}

fn flavor_view(flavor: &Item, version: u32) -> Value {
    let mut view = flavor.view.clone();
    if version >= FLAVOR_DESCRIPTION {
        view["description"] = Value::Null;
    }
    if version >= FLAVOR_SPECS {
        view["extra_specs"] = json!({});
    }
    view
}

fn create_flavor(state: &mut State, call: &Call, version: u32) -> Answer {
    let policy = "Policy doesn't allow os_compute_api:os-flavor-manage:create to be performed.";
    call.check_admin(|| fault(403, policy))?;
    let requested = &call.body["flavor"];
    let name = requested["name"].as_str().unwrap_or_default();
    let number = |key: &str| requested[key].as_u64().unwrap_or_default();
    if state.flavors.iter().any(|flavor| flavor.text("name") == name) {
        return Err(fault(409, &format!("Flavor with name {name} already exists.")));
    }
    let id = requested["id"].as_str().filter(|id| *id != "auto").map_or_else(|| state.uuid(), str::to_owned);
    let sizes = [number("ram"), number("vcpus"), number("disk"), number("OS-FLV-EXT-DATA:ephemeral")];
    seed::add_flavor(state, &id, name, sizes);
    let flavor = state.flavors.get(&id).map(|flavor| flavor_view(flavor, version));
    Ok(Response::json(200, &json!({"flavor": flavor})))
}

fn keypairs(state: &mut State, call: &Call, version: u32) -> Answer {
    let user = &call.session.user;
    let mine = |key: &&Item| key.hidden["user"] == **user;
    let shown = |key: &Item| match version {
        0..KEY_TYPE => select_keys(&key.view, &["name", "public_key", "fingerprint"]),
        _ => key.view.clone(),
    };
    let missing = |name: &str| fault(404, &format!("Keypair {name} not found for user {user}"));
    match call.route() {
        ("GET", ["os-keypairs"]) => {
            let keys: Vec<Value> =
                state.keypairs.iter().filter(mine).map(|key| json!({"keypair": shown(key)})).collect();
            Ok(Response::json(200, &json!({"keypairs": keys})))
        }
        ("GET", ["os-keypairs", name]) => {
            let mut keys = state.keypairs.iter().filter(mine);
            let key = keys.find(|key| key.text("name") == *name).ok_or_else(|| missing(name))?;
            let mut view = shown(key);
            let more = json!({"created_at": key.hidden["created_at"], "deleted": false, "deleted_at": null, "id": 1, "updated_at": null});
            if let (Some(view), Value::Object(more)) = (view.as_object_mut(), more) {
                view.insert("user_id".to_owned(), json!(user));
                view.extend(more);
            }
            Ok(Response::json(200, &json!({"keypair": view})))
        }
        ("POST", ["os-keypairs"]) => {
            let requested = &call.body["keypair"];
            let name = requested["name"].as_str().unwrap_or_default();
            if state.keypairs.iter().filter(mine).any(|key| key.text("name") == name) {
                return Err(fault(409, &format!("Key pair '{name}' already exists.")));
            }
            if requested.get("public_key").is_none() && version >= NO_KEY_GENERATION {
                return Err(missing_property("keypair", requested, "public_key"));
            }
            let generated = "ssh-rsa AAAA made-by-nova";
            let public = requested["public_key"].as_str().unwrap_or(generated);
            let view = json!({"name": name, "public_key": public, "fingerprint": "00:11:22", "type": "ssh"});
            let key = Item { hidden: json!({"user": user}), ..Item::new(name, &call.session.project, view) };
            let mut answer = shown(&key);
            answer["user_id"] = json!(user);
            if public == generated {
                answer["private_key"] = json!("-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----\n");
            }
            state.keypairs.add(key);
            Ok(Response::json(if version >= KEY_TYPE { 201 } else { 200 }, &json!({"keypair": answer})))
        }
        ("DELETE", ["os-keypairs", name]) => {
            state.keypairs.iter().filter(mine).find(|key| key.text("name") == *name).ok_or_else(|| missing(name))?;
            state.keypairs.remove(name);
            Ok(Response::new(if version >= KEY_TYPE { 204 } else { 202 }))
        }
        _ => Err(not_found(call.request)),
    }
}

/// Answers a quota request of Nova or Cinder. All users of the project can read quotas,
/// only admins can set them.
pub(super) fn quota_sets(
    state: &mut State,
    call: &Call,
    project: &str,
    names: &[&'static str],
    used: &[(&str, u64)],
) -> Answer {
    if !call.session.sees(project) {
        return Err(fault(403, "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed."));
    }
    if call.request.method == "PUT" {
        let volumes = names.contains(&"volumes");
        let rule = if volumes { "volume_extension:quotas:update" } else { "os_compute_api:os-quota-sets:update" };
        call.check_admin(|| fault(403, &format!("Policy doesn't allow {rule} to be performed.")))?;
        for name in names {
            if let Some(limit) = call.body["quota_set"][name].as_i64() {
                state.quotas.insert((project.to_owned(), name), limit);
            }
        }
    }
    let mut set = json!({"id": project});
    let usage = call.request.query_value("usage").is_some_and(|usage| usage.eq_ignore_ascii_case("true"));
    for name in names {
        let limit = state.quota(project, name).map_or(json!(-1), Value::from);
        let count = used.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
        set[name] = if usage { json!({"limit": limit, "in_use": count, "reserved": 0}) } else { limit };
    }
    if call.request.method == "PUT"
        && let Some(set) = set.as_object_mut()
    {
        set.shift_remove("id");
    }
    Ok(Response::json(200, &json!({"quota_set": set})))
}

pub(super) fn interfaces(state: &State, call: &Call, id: &str) -> Answer {
    servers::find(state, &call.session, id)?;
    let ports = state.ports.iter().filter(|port| port.text("device_id") == id);
    let ports = ports.map(|port| {
        json!({
            "net_id": port.view["network_id"], "port_id": port.id, "mac_addr": port.view["mac_address"],
            "port_state": port.view["status"], "fixed_ips": port.view["fixed_ips"],
        })
    });
    Ok(Response::json(200, &json!({"interfaceAttachments": ports.collect::<Vec<_>>()})))
}
