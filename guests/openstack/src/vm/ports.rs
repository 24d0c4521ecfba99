//! Ports for the fixed addresses of manual networks. They are created before the
//! server and are not deleted with it, so `delete_vm` deletes them.

use serde_json::json;
use wasm_cpi_sdk::http::Error as HttpError;
use wasm_cpi_sdk::{Error, log};

use super::networks::Nic;
use super::properties::{VmProperties, invalid};
use crate::api::{Networking, Port, create_once};
use crate::session::Session;

/// The attributes of a port besides its network and address.
pub(super) struct PortAttributes<'a> {
    /// The name of the VM, which is unique. The port has the same name.
    pub(super) name: &'a str,
    pub(super) security_groups: &'a [String],
    pub(super) allowed_address: Option<&'a str>,
}

/// Creates a port with the `net_id` and `ip` of a manual network.
pub(super) fn create(networking: &Networking, nic: &Nic, attributes: &PortAttributes<'_>) -> Result<Port, HttpError> {
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
    match send() {
        Err(error) if error.status() == Some(409) && delete_unused(networking, net_id, ip)? => send(),
        outcome => outcome,
    }
}

/// Deletes ports that have the address but no server: an interrupted creation of a
/// VM leaves them. Returns true if there was one.
fn delete_unused(networking: &Networking, net_id: &str, ip: &str) -> Result<bool, HttpError> {
    let mut deleted = false;
    let holders = networking.ports(&[("network_id", net_id), ("fixed_ips", &format!("ip_address={ip}"))])?;
    for port in holders.iter().filter(|port| port.fixed_ips.iter().any(|fixed| fixed.ip_address == ip)) {
        if port.status == "DOWN" && port.device_id.is_empty() && port.device_owner.is_empty() {
            log::warn(format_args!("port {} has the address {ip} but no server; deleting it", port.id));
            networking.delete_port(&port.id)?;
            deleted = true;
        } else {
            let (device, owner) = (&port.device_id, &port.device_owner);
            log::warn(format_args!("port {} of `{device}` ({owner}) has the address {ip}", port.id));
        }
    }
    Ok(deleted)
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
    if gateway.is_none_or(|nic| nic.ip.is_none()) {
        return Err(invalid(
            "allowed_address_pairs",
            "needs a manual network as the VM's default network; use one, or remove the key",
        ));
    }
    if properties.checks_vrrp_port()
        && session.networking()?.ports(&[("fixed_ips", &format!("ip_address={address}"))])?.is_empty()
    {
        return Err(invalid(
            "allowed_address_pairs",
            &format!("no port has the address {address}; create one, or set vrrp_port_check: false"),
        ));
    }
    Ok(Some(address))
}
