//! A server comes into being, and goes: what Nova does behind its API.

use super::state::State;
use super::{blockdevices, clock, groups, ports, seed, servers};
use serde_json::{Value, json};

/// The only host's CPUs, RAM in MiB and disk in GiB.
const HOST: [(&str, u64); 3] = [("vcpus", 1_000), ("ram", 800_000), ("disk", 600_000)];

/// The server runs now, or says why it does not.
pub(super) fn finish(state: &mut State, id: &str) {
    match build(state, id) {
        Ok(()) => {
            servers::turn(state, id, "ACTIVE");
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
    let server = state.servers.get(id).cloned().ok_or("It is gone.")?;
    let flavor = state.flavors.get(server.hidden["flavor"].as_str().unwrap_or_default());
    let fits = flavor.is_some_and(|flavor| HOST.iter().all(|(key, most)| flavor.number(key) <= *most));
    if !fits || !groups::has_room(state, id) {
        return Err("No valid host was found. ".to_owned());
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
                let mut wanted = json!({"network_id": network["uuid"], "security_groups": groups});
                if let Some(address) = network["fixed_ip"].as_str() {
                    wanted["fixed_ips"] = json!([{"ip_address": address}]);
                }
                let made = ports::add(state, &server.project, &wanted);
                (made.map_err(|_| aborted("Failed to allocate the network(s), not rescheduling."))?, true)
            }
        };
        connected.push(json!({"id": port, "made": made}));
        keep(state, id, "ports", &connected);
        if !ports::bind(state, &port, id) {
            return Err(aborted(&format!("Port id {port} could not be found.")));
        }
    }
    blockdevices::build(state, &server)
}

fn keep(state: &mut State, id: &str, key: &str, values: &[Value]) {
    if let Some(server) = state.servers.get_mut(id) {
        server.hidden[key] = json!(values);
    }
}

/// The server is gone, and with it the ports that it was given; a port that
/// was there before is free again, and so is a volume.
pub(super) fn tear_down(state: &mut State, id: &str) {
    let Some(server) = state.servers.remove(id) else { return };
    for port in server.hidden["ports"].as_array().into_iter().flatten() {
        let name = port["id"].as_str().unwrap_or_default();
        if port["made"] == true {
            ports::remove(state, name);
        } else {
            ports::unbind(state, name, id);
        }
    }
    blockdevices::release(state, &server);
    groups::leave(state, id);
}
