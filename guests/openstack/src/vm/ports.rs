//! Ports for the fixed addresses of manual networks. They are created before the
//! server and are not deleted with it, so `delete_vm` deletes them.

use serde_json::json;
use wasm_cpi_sdk::http::{Cause, Request, RequestError};
use wasm_cpi_sdk::{Error, log};

use super::networks::Nic;
use super::properties::{VmProperties, invalid};
use crate::api::{Networking, Port, create_once, with_detail};
use crate::session::Session;

/// The attributes of a port besides its network and address.
pub(super) struct PortAttributes<'a> {
    /// The name of the VM, which is unique. The port has the same name.
    pub(super) name: &'a str,
    pub(super) security_groups: &'a [String],
    pub(super) allowed_address: Option<&'a str>,
}

/// Creates a port with the `net_id` and `ip` of a manual network.
pub(super) fn create(
    networking: &Networking,
    nic: &Nic,
    attributes: &PortAttributes<'_>,
) -> Result<Port, RequestError> {
    let net_id = nic.net_id.as_deref().unwrap_or_default();
    let ip = nic.ip.as_deref().unwrap_or_default();
    let mut body = json!({"name": attributes.name, "network_id": net_id, "fixed_ips": [{"ip_address": ip}]});
    if !attributes.security_groups.is_empty() {
        body["security_groups"] = json!(attributes.security_groups);
    }
    if let Some(address) = attributes.allowed_address {
        body["allowed_address_pairs"] = json!([{"ip_address": address}]);
    }
    let send = || {
        let find = || Ok(networking.ports_named(attributes.name)?.into_iter().find(|port| port.network_id == net_id));
        create_once(&format!("port {} for {ip}", attributes.name), || networking.create_port(&body), find)
    };
    let first = match send() {
        Err(error) if error.status() == Some(409) => error,
        Err(error) if error.status() == Some(404) => {
            return Err(with_detail(error, "check that net_id is the ID of a network, not of a subnet"));
        }
        outcome => return outcome,
    };
    let holders = holders(networking, net_id, ip)?;
    if !delete_unused(networking, &holders, ip)? {
        return Err(with_holders(first, &holders, ip));
    }
    send().or_else(|error| match error.status() {
        Some(409) => Err(with_holders(error, &self::holders(networking, net_id, ip)?, ip)),
        _ => Err(error),
    })
}

/// Returns the ports of this network that have the address and that the project sees.
fn holders(networking: &Networking, net_id: &str, ip: &str) -> Result<Vec<Port>, RequestError> {
    let listed = networking.ports(&[("network_id", net_id), ("fixed_ips", &format!("ip_address={ip}"))])?;
    Ok(listed.into_iter().filter(|port| port.fixed_ips.iter().any(|fixed| fixed.ip_address == ip)).collect())
}

/// Deletes ports that have the address but no server: an interrupted creation of a
/// VM leaves them. Returns true if there was one.
fn delete_unused(networking: &Networking, holders: &[Port], ip: &str) -> Result<bool, RequestError> {
    let mut deleted = false;
    let unused = |port: &&Port| port.status == "DOWN" && port.device_id.is_empty() && port.device_owner.is_empty();
    for port in holders.iter().filter(unused) {
        log::warn(format_args!("port {} has the address {ip} but no server; deleting it", port.id));
        networking.delete_port(&port.id)?;
        deleted = true;
    }
    Ok(deleted)
}

/// Adds to a 409 which VM or port has the address. Neutron also answers 409 if a quota is used up.
fn with_holders(error: RequestError, holders: &[Port], ip: &str) -> RequestError {
    let describe = |port: &Port| match (port.device_owner.as_str(), port.device_id.as_str()) {
        (owner, vm) if owner.starts_with("compute:") => format!("VM `{vm}` has it, with port `{}`", port.id),
        (_, "") => format!("port `{}` has it", port.id),
        ("", device) => format!("port `{}` of device `{device}` has it", port.id),
        (owner, device) => format!("port `{}` of device `{device}` ({owner}) has it", port.id),
    };
    let found: Vec<String> = holders.iter().map(describe).collect();
    if !found.is_empty() {
        let found = found.join(", ");
        return with_detail(error, &format!("address {ip}: {found}; delete that, or use another address"));
    }
    if matches!(&error.cause, Cause::Status { text: Some(text), .. } if text.contains(ip)) {
        let what = format!("address {ip}: a port that this project cannot see has it; use another address");
        return with_detail(error, &what);
    }
    error
}

/// Returns true if the additional address must have a port. The Ruby CPI reads that from the network, the
/// Go CPI from the VM type.
fn checks_port(nic: &Nic, properties: &VmProperties) -> bool {
    nic.vrrp_port_check.or(properties.vrrp_port_check).unwrap_or(true)
}

/// Returns the request that [`allowed_address`] sends, to read it ahead.
pub(super) fn allowed_address_request(
    session: &Session,
    properties: &VmProperties,
    gateway: Option<&Nic>,
) -> Result<Option<Request>, Error> {
    let address = properties.allowed_address_pairs.as_deref().filter(|address| !address.is_empty());
    let nic = gateway.filter(|nic| nic.ip.is_some() && checks_port(nic, properties));
    match (address, nic) {
        (Some(address), Some(_)) => Ok(session.networking()?.ports_at_request(address)),
        _ => Ok(None),
    }
}

/// Returns the address that the VM may use besides its own.
pub(super) fn allowed_address<'a>(
    session: &Session,
    properties: &'a VmProperties,
    gateway: Option<&Nic>,
) -> Result<Option<&'a str>, Error> {
    let Some(address) = properties.allowed_address_pairs.as_deref().filter(|address| !address.is_empty()) else {
        return Ok(None);
    };
    let Some(nic) = gateway.filter(|nic| nic.ip.is_some()) else {
        return Err(invalid(
            "allowed_address_pairs",
            "needs a manual network as the VM's default network; use one, or remove the key",
        ));
    };
    if checks_port(nic, properties) && session.networking()?.ports_at(address)?.is_empty() {
        let what = format!(
            "no port has the address {address}; create a port that reserves it, or set vrrp_port_check: false in the \
             cloud_properties of network `{}`",
            nic.name
        );
        return Err(invalid("allowed_address_pairs", &what));
    }
    Ok(Some(address))
}
