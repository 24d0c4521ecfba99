//! Adds a guest's additions to the Director's networks.
//!
//! The Director decides the addresses of manual and vip networks. A guest cannot change them,
//! because a VM could then take the place of another. The cloud decides the addresses of dynamic
//! networks, so the guest provides them.

use super::AgentError;
use super::additions::NetworkAddition;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::strict_json;

type Networks = Map<String, Value>;

/// Returns the networks with the additions. Rejects unknown networks and invalid values.
pub(super) fn with_additions(networks: &Networks, additions: &[NetworkAddition]) -> Result<Networks, AgentError> {
    let mut networks = networks.clone();
    for (index, addition) in additions.iter().enumerate() {
        let name = &addition.name;
        if additions[..index].iter().any(|earlier| earlier.name == *name) {
            return Err(AgentError::refused(format!("network `{name}` is given twice; give each network once")));
        }
        match networks.get_mut(name) {
            Some(Value::Object(network)) => {
                let in_network = |error: AgentError| {
                    let message = format!("network `{name}`: {}", error.message);
                    AgentError { message, ..error }
                };
                add(network, addition).map_err(in_network)?;
            }
            _ => {
                return Err(AgentError::refused(format!(
                    "the call has no network `{name}`; use the names of the networks in the arguments"
                )));
            }
        }
    }
    Ok(networks)
}

/// Returns what an addition writes into a dynamic network, where it can write most.
pub(super) fn added(addition: &NetworkAddition) -> Result<Value, AgentError> {
    let mut network = Map::from_iter([("type".to_owned(), json!("dynamic"))]);
    add(&mut network, addition)?;
    Ok(Value::Object(network))
}

fn add(network: &mut Map<String, Value>, addition: &NetworkAddition) -> Result<(), AgentError> {
    let dynamic = network.get("type").and_then(Value::as_str) == Some("dynamic");
    let dns = (!addition.dns.is_empty()).then(|| json!(addition.dns));
    let address = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    for (key, given) in [
        ("ip", address(&addition.ip)),
        ("netmask", address(&addition.netmask)),
        ("gateway", address(&addition.gateway)),
        ("dns", dns),
    ] {
        let Some(given) = given else { continue };
        check_addresses(key, &given)?;
        Check::NetworkDecided.ensure(dynamic || network.get(key) == Some(&given), || {
            let why = "was chosen by the Director and cannot be changed, because the network is not dynamic";
            AgentError::refused(format!("`{key}` {why}"))
        })?;
        network.insert(key.into(), given);
    }
    if let Some(mac) = &addition.mac {
        network.insert("mac".into(), Value::String(canonical_mac(mac)?));
    }
    if let Some(routes) = &addition.routes {
        network.insert("routes".into(), parse_routes(routes)?);
    }
    if let Some(alias) = &addition.alias {
        network.insert("alias".into(), json!(alias));
    }
    for (key, given) in [("use_dhcp", addition.use_dhcp), ("preconfigured", addition.preconfigured)] {
        if let Some(given) = given {
            network.insert(key.into(), Value::Bool(given));
        }
    }
    Ok(())
}

fn check_addresses(key: &str, given: &Value) -> Result<(), String> {
    let is_address = |value: &Value| value.as_str().is_some_and(|text| text.parse::<IpAddr>().is_ok());
    let fine = match given {
        Value::Array(addresses) => addresses.iter().all(is_address),
        address => is_address(address),
    };
    if fine { Ok(()) } else { Err(format!("`{key}` is not an IP address; give addresses like 10.0.0.5 or fd00::5")) }
}

/// Returns the address as the kernel writes it, because the Agent compares MAC addresses as text.
fn canonical_mac(mac: &str) -> Result<String, String> {
    let octets: Vec<&str> = mac.split([':', '-']).collect();
    let is_octet = |octet: &&str| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit());
    if octets.len() == 6 && octets.iter().all(is_octet) {
        return Ok(octets.join(":").to_ascii_lowercase());
    }
    Err("`mac` must be six hexadecimal octets with colons between them".into())
}

fn parse_routes(routes: &str) -> Result<Value, String> {
    let of_strings = |route: &Value| route.as_object().is_some_and(|fields| fields.values().all(Value::is_string));
    match strict_json::parse(routes, 2) {
        Ok(Value::Array(routes)) if routes.iter().all(of_strings) => Ok(Value::Array(routes)),
        _ => Err("`routes` must be a JSON array of objects with string values (destination, netmask, gateway)".into()),
    }
}

/// Returns the name servers of the default network for DNS, or of the first network that has any.
pub(super) fn name_servers(networks: &Networks) -> Option<&Value> {
    let servers =
        |network: &'_ Value| network.get("dns").is_some_and(|dns| dns.as_array().is_some_and(|dns| !dns.is_empty()));
    let is_default = |network: &&Value| {
        network.get("default").and_then(Value::as_array).is_some_and(|default| default.contains(&json!("dns")))
    };
    let with_servers: Vec<&Value> = networks.values().filter(|network| servers(network)).collect();
    let chosen = with_servers.iter().copied().find(is_default).or_else(|| with_servers.first().copied());
    chosen.and_then(|network| network.get("dns"))
}

#[cfg(test)]
mod tests;
