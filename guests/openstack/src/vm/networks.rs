//! Checks the networks of a VM before anything is created: there must be at least
//! one manual or dynamic network, and at most one dynamic and one vip network, and
//! every net_id must be unique.

use serde::Deserialize;
use wasm_cpi_sdk::{Error, Network};

use crate::properties::Properties;

#[derive(Debug, Default, Deserialize)]
struct NetworkProperties {
    net_id: Option<String>,
    security_groups: Option<Vec<String>>,
    vrrp_port_check: Option<bool>,
}

/// A network interface, in the order of the request.
#[derive(Debug)]
pub(super) struct Nic {
    pub(super) name: String,
    /// If a dynamic network has none, Nova chooses the network.
    pub(super) net_id: Option<String>,
    /// Set on manual networks only.
    pub(super) ip: Option<String>,
    /// Whether the VM's allowed address must have a port.
    pub(super) vrrp_port_check: Option<bool>,
}

#[derive(Debug)]
pub(super) struct Networks {
    pub(super) nics: Vec<Nic>,
    /// The floating IP.
    pub(super) vip: Option<String>,
    /// The security groups of all networks, without duplicates.
    pub(super) security_groups: Vec<String>,
    /// The index of the NIC with the default gateway.
    gateway: usize,
}

impl Networks {
    pub(super) fn plan(networks: &[Network], properties: &Properties) -> Result<Self, Error> {
        let (mut nics, mut vip, mut gateway): (Vec<Nic>, _, _) = (vec![], None, None);
        let mut security_groups: Vec<String> = vec![];
        for network in networks {
            let NetworkProperties { net_id, security_groups: groups, vrrp_port_check } =
                network.cloud_properties.parse()?;
            for group in groups.into_iter().flatten() {
                if !security_groups.contains(&group) {
                    security_groups.push(group);
                }
            }
            let invalid = |what: &str| Error::cpi(format!("networks.{}: {what}", network.name));
            if network.is_default_for("gateway") && !network.is_vip() {
                gateway = Some(nics.len());
            }
            match network.kind.as_str() {
                "manual" | "" => {
                    let ip = network
                        .ip
                        .clone()
                        .ok_or_else(|| invalid("a manual network needs an ip; set it in the deployment"))?;
                    if net_id.is_none() {
                        return Err(invalid("cloud_properties.net_id: is missing; set it to the ID of the network"));
                    }
                    nics.push(Nic { name: network.name.clone(), net_id, ip: Some(ip), vrrp_port_check });
                }
                "dynamic" => {
                    if nics.iter().any(|nic| nic.ip.is_none()) {
                        return Err(invalid("this VM has two dynamic networks; use at most one"));
                    }
                    nics.push(Nic { name: network.name.clone(), net_id, ip: None, vrrp_port_check });
                }
                "vip" if vip.is_some() => return Err(invalid("this VM has two vip networks; use at most one")),
                "vip" => {
                    vip = Some(
                        network
                            .ip
                            .clone()
                            .ok_or_else(|| invalid("a vip network needs an ip; set it in the deployment"))?,
                    )
                }
                other => return Err(invalid(&format!("type `{other}` is not supported; use manual, dynamic or vip"))),
            }
        }
        for (index, nic) in nics.iter().enumerate() {
            if nic.net_id.is_some() && nics[..index].iter().any(|other| other.net_id == nic.net_id) {
                let net_id = nic.net_id.as_deref().unwrap_or_default();
                return Err(Error::cpi(format!(
                    "networks.{}: another network of this VM has the same net_id `{net_id}`; use different ones",
                    nic.name
                )));
            }
        }
        if nics.is_empty() {
            return Err(Error::cpi("networks: the VM has no manual or dynamic network; add one"));
        }
        if nics.len() > 1 && (properties.use_dhcp() || properties.config_drive()?.is_none()) {
            let what = "a VM with several networks needs the properties use_dhcp: false and config_drive: cdrom or disk; set them, or use one network";
            return Err(Error::vm_creation_failed(format!("networks: {what}")));
        }
        security_groups.sort();
        Ok(Self { nics, vip, security_groups, gateway: gateway.unwrap_or(0) })
    }

    pub(super) fn gateway(&self) -> Option<&Nic> {
        self.nics.get(self.gateway)
    }

    pub(super) fn is_gateway(&self, index: usize) -> bool {
        self.gateway == index
    }

    pub(super) fn has_dynamic(&self) -> bool {
        self.nics.iter().any(|nic| nic.ip.is_none())
    }
}
