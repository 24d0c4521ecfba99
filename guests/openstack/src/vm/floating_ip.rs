//! The vip network: associates a floating IP, which the operator allocated, with the
//! port of the VM's default network. It may be associated with another port before.

use wasm_cpi_sdk::{Error, log};

use crate::api::{FloatingIp, Networking};

/// Returns the floating IP with this address.
pub(super) fn find(networking: &Networking, address: &str) -> Result<FloatingIp, Error> {
    let mut found = networking.floating_ips(address)?;
    if found.len() > 1 {
        let networks: Vec<&str> = found.iter().map(|ip| ip.floating_network_id.as_str()).collect();
        return Err(Error::cpi(format!(
            "floating IP {address} is in several networks ({}), and the CPI cannot choose one; release all but one",
            networks.join(", ")
        )));
    }
    found.pop().ok_or_else(|| Error::cpi(format!("floating IP {address} is not allocated; allocate it first")))
}

pub(super) fn associate(networking: &Networking, floating_ip: &FloatingIp, port: &str) -> Result<(), Error> {
    match floating_ip.port_id.as_deref() {
        Some(old) if old == port => return Ok(()),
        Some(old) => log::debug(format_args!("moving floating IP {} from port {old}", floating_ip.id)),
        None => {}
    }
    Ok(networking.associate(&floating_ip.id, Some(port))?)
}
