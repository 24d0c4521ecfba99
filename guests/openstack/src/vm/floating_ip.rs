//! The vip network: a floating IP that the operator allocated goes to the port
//! of the VM's default network, from wherever it was.

use wasm_cpi_sdk::{Error, log};

use crate::api::{FloatingIp, Networking};

/// The one floating IP with that address.
pub(super) fn find(networking: &Networking, address: &str) -> Result<FloatingIp, Error> {
    let mut found = networking.floating_ips(address)?;
    if found.len() > 1 {
        let networks: Vec<&str> = found.iter().map(|ip| ip.floating_network_id.as_str()).collect();
        return Err(Error::cpi(format!("floating IP {address} is in several networks: {}", networks.join(", "))));
    }
    found.pop().ok_or_else(|| Error::cpi(format!("floating IP {address} is not allocated; allocate it first")))
}

pub(super) fn associate(networking: &Networking, floating_ip: &FloatingIp, port: &str) -> Result<(), Error> {
    match floating_ip.port_id.as_deref() {
        Some(old) if old == port => return Ok(()),
        Some(old) => log::info(format_args!("taking floating IP {} from port {old}", floating_ip.id)),
        None => {}
    }
    Ok(networking.associate(&floating_ip.id, Some(port))?)
}
