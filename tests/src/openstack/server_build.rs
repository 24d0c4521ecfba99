//! Builds and removes servers: the work that Nova does after it has answered.

use super::state::{Effect, State};
use super::table::Item;
use super::{block_devices, clock, ports, seed, server_groups, servers};
use serde_json::{Value, json};

/// CPUs, RAM in MiB and disk in GiB of the only host.
const HOST: [(&str, u64); 3] = [("vcpus", 1_000), ("ram", 800_000), ("disk", 600_000)];

/// The start of the message if no host can run a server.
pub(super) const NO_HOST: &str = "No valid host was found. ";

/// The kind of hypervisor of the only host. An image can demand another one.
const HYPERVISOR: &str = "fake";

/// Completes the build of a server: it is active, or has a fault.
pub(super) fn finish(state: &mut State, id: &str) {
    match build(state, id) {
        Ok(()) => {
            servers::set_status(state, id, "ACTIVE");
            let launched = clock::now() + ".000000";
            for (key, value) in [
                ("hostId", json!(format!("{0}{0}", seed::digest("host"))[..56])),
                ("OS-EXT-AZ:availability_zone", json!(seed::ZONE)),
                ("OS-SRV-USG:launched_at", json!(launched)),
            ] {
                state.servers.set(id, key, value);
            }
        }
        Err(message) => {
            let fault = json!({"code": 500, "created": clock::now() + "Z", "message": message});
            for (key, value) in [
                ("status", json!("ERROR")),
                ("OS-EXT-STS:vm_state", json!("error")),
                ("OS-EXT-STS:task_state", Value::Null),
                ("fault", fault),
            ] {
                state.servers.set(id, key, value);
            }
        }
    }
}

fn build(state: &mut State, id: &str) -> Result<(), String> {
    let server = state.servers.get(id).cloned().ok_or("The server was deleted.")?;
    let flavor = state.flavors.get(server.hidden["flavor"].as_str().unwrap_or_default());
    let fits = flavor.is_some_and(|flavor| HOST.iter().all(|(key, most)| flavor.number(key) <= *most));
    if !fits {
        return Err(NO_HOST.to_owned());
    }
    if !runs_image(state, &server) || !server_groups::has_room(state, id) {
        return Err(format!("{NO_HOST}There are not enough hosts available."));
    }
    let networks = server.hidden["networks"].as_array().cloned().unwrap_or_default();
    let groups: Vec<String> = server.hidden["security_groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|group| super::network::security_group(state, &server.project, group["name"].as_str()?))
        .collect();
    let mut connected = Vec::new();
    for network in networks {
        let aborted = |why: &str| format!("Build of instance {id} aborted: {why}");
        let (port, made) = match network["port"].as_str() {
            Some(port) => (port.to_owned(), false),
            None => {
                let uuid = network["uuid"].as_str().unwrap_or_default();
                let outer = state.networks.get(uuid).is_some_and(|network| network.view["router:external"] == true);
                if outer {
                    return Err(aborted("Failed to allocate the network(s), not rescheduling."));
                }
                let mut wanted = json!({"network_id": uuid, "security_groups": groups});
                let address = network["fixed_ip"].as_str();
                if let Some(address) = address {
                    wanted["fixed_ips"] = json!([{"ip_address": address}]);
                }
                let made = ports::add(state, &server.project, &wanted).map_err(|refusal| match address {
                    Some(address) if refusal.status == 400 => aborted(&format!(
                        "Invalid input received: Fixed IP {address} is not a valid ip address for network {uuid}."
                    )),
                    _ => aborted("Failed to allocate the network(s), not rescheduling."),
                });
                (made?, true)
            }
        };
        connected.push(json!({"id": port, "made": made}));
        set_hidden(state, id, "ports", &connected);
        if !ports::bind(state, &port, id) {
            return Err(aborted(&format!("Port id {port} could not be found.")));
        }
    }
    block_devices::build(state, &server)
}

/// Returns true if the host has the hypervisor that the server's image demands, whether the
/// server boots from the image or from a volume with its content.
fn runs_image(state: &State, server: &Item) -> bool {
    let devices = server.hidden["devices"].as_array().into_iter().flatten();
    let sources = devices.filter(|device| device["source_type"] == "image").map(|device| &device["uuid"]);
    let mut images = sources.chain([&server.hidden["image"]]).filter_map(|id| state.images.get(id.as_str()?));
    images.all(|image| image.view.get("hypervisor_type").is_none_or(|kind| kind == HYPERVISOR))
}

fn set_hidden(state: &mut State, id: &str, key: &str, values: &[Value]) {
    if let Some(server) = state.servers.get_mut(id) {
        server.hidden[key] = json!(values);
    }
}

/// Deletes a server and the ports that were created for it. Ports that existed before
/// and volumes are free again. The server's record is removed at the next read.
pub(super) fn tear_down(state: &mut State, id: &str) {
    let Some(server) = state.servers.get(id).cloned() else { return };
    for port in server.hidden["ports"].as_array().into_iter().flatten() {
        let name = port["id"].as_str().unwrap_or_default();
        if port["made"] == true {
            ports::remove(state, name);
        } else {
            ports::unbind(state, name, id);
        }
    }
    block_devices::release(state, &server);
    server_groups::leave(state, id);
    for (key, value) in [
        ("status", json!("DELETED")),
        ("OS-EXT-STS:vm_state", json!("deleted")),
        ("OS-EXT-STS:task_state", Value::Null),
        ("OS-SRV-USG:terminated_at", json!(clock::now() + ".000000")),
    ] {
        state.servers.set(id, key, value);
    }
    state.schedule_at_next_read(id, Effect::ServerRecordRemoved { server: id.to_owned() });
}
