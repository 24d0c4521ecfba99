//! Ports for the fixed addresses of manual networks. They are made before the
//! server, which then gets them, and outlive it: whoever deletes the server
//! deletes them.

use serde_json::json;
use wasm_cpi_sdk::http::Error as HttpError;
use wasm_cpi_sdk::{Error, log};

use super::networks::Nic;
use super::properties::{VmProperties, wrong};
use crate::api::{Networking, Port, once};
use crate::session::Session;

/// What a port needs beside its network and address.
pub(super) struct PortNeeds<'a> {
    /// The VM's name, which is unique: the port gets it, too.
    pub(super) name: &'a str,
    pub(super) security_groups: &'a [String],
    pub(super) allowed_address: Option<&'a str>,
}

/// With `net_id` and `ip` of a manual network.
pub(super) fn create(networking: &Networking, nic: &Nic, with: &PortNeeds<'_>) -> Result<Port, HttpError> {
    let net_id = nic.net_id.as_deref().unwrap_or_default();
    let ip = nic.ip.as_deref().unwrap_or_default();
    let mut body = json!({"name": with.name, "network_id": net_id, "fixed_ips": [{"ip_address": ip}]});
    if !with.security_groups.is_empty() {
        body["security_groups"] = json!(with.security_groups);
    }
    if let Some(address) = with.allowed_address {
        body["allowed_address_pairs"] = json!([{"ip_address": address}]);
    }
    let send = || {
        let find = || Ok(networking.ports_named(with.name)?.into_iter().find(|port| port.network_id == net_id));
        once(&format!("port {} for {ip}", with.name), || networking.create_port(&body), find)
    };
    match send() {
        Err(error) if error.status() == Some(409) && drop_unused(networking, net_id, ip)? => send(),
        outcome => outcome,
    }
}

/// Deletes ports that hold the address and belong to nothing: what is left of a
/// VM whose creation was interrupted. Answers whether there was one.
fn drop_unused(networking: &Networking, net_id: &str, ip: &str) -> Result<bool, HttpError> {
    let mut dropped = false;
    let holders = networking.ports(&[("network_id", net_id), ("fixed_ips", &format!("ip_address={ip}"))])?;
    for port in holders.iter().filter(|port| port.fixed_ips.iter().any(|fixed| fixed.ip_address == ip)) {
        if port.status == "DOWN" && port.device_id.is_empty() && port.device_owner.is_empty() {
            log::warn(format_args!("port {} holds {ip} and belongs to nothing; deleting it", port.id));
            networking.delete_port(&port.id)?;
            dropped = true;
        } else {
            let (device, owner) = (&port.device_id, &port.device_owner);
            log::warn(format_args!("port {} of `{device}` ({owner}) holds {ip}", port.id));
        }
    }
    Ok(dropped)
}

/// The address that the VM may use beside its own.
pub(super) fn allowed_address<'a>(
    session: &Session,
    properties: &'a VmProperties,
    gateway: Option<&Nic>,
) -> Result<Option<&'a str>, Error> {
    let Some(address) = properties.allowed_address_pairs.as_deref().filter(|address| !address.is_empty()) else {
        return Ok(None);
    };
    if gateway.is_none_or(|nic| nic.ip.is_none()) {
        return Err(wrong("allowed_address_pairs", "the VM's default network must be a manual one"));
    }
    if properties.checks_vrrp_port()
        && session.networking()?.ports(&[("fixed_ips", &format!("ip_address={address}"))])?.is_empty()
    {
        return Err(wrong("allowed_address_pairs", &format!("there is no port with the address {address}")));
    }
    Ok(Some(address))
}
