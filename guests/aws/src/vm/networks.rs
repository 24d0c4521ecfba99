//! The networks of a VM, and the network interfaces that they need. Manual networks of a `nic_group` share an
//! interface. Everything is checked before anything is created.

use serde::Deserialize;
use serde_json::Value;
use wasm_cpi_sdk::{Error, Network};

#[derive(Debug, Default, Deserialize)]
struct NetworkProperties {
    subnet: Option<String>,
    security_groups: Option<Vec<String>>,
}

/// A network interface, in the order of the devices of the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nic {
    /// The name of the group, by default that of the only network.
    group: String,
    pub(super) subnet: String,
    pub(super) ipv4: Option<String>,
    pub(super) ipv6: Option<String>,
    /// Delegated prefixes, as `ADDRESS/LENGTH`.
    pub(super) ipv4_prefix: Option<String>,
    pub(super) ipv6_prefix: Option<String>,
    pub(super) networks: Vec<String>,
    is_dynamic: bool,
}

/// An Elastic IP, and the index of the interface that gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vip {
    pub(super) ip: String,
    pub(super) nic: usize,
}

#[derive(Debug)]
pub(super) struct Networks {
    pub(super) nics: Vec<Nic>,
    pub(super) vip: Option<Vip>,
    /// The security groups of all networks, without duplicates.
    pub(super) security_groups: Vec<String>,
}

impl Networks {
    pub(super) fn plan(networks: &[Network]) -> Result<Self, Error> {
        let mut nics: Vec<Nic> = vec![];
        let (mut dynamic, mut vip): (Option<Nic>, Option<&Network>) = (None, None);
        let mut security_groups: Vec<String> = vec![];
        for network in networks {
            let properties: NetworkProperties = network.cloud_properties.parse()?;
            for group in properties.security_groups.into_iter().flatten() {
                if !security_groups.contains(&group) {
                    security_groups.push(group);
                }
            }
            match network.kind.as_str() {
                "manual" | "" => add_manual(&mut nics, network, properties.subnet)?,
                "dynamic" if dynamic.is_some() => {
                    return Err(invalid(network, "this VM has two dynamic networks; use at most one"));
                }
                "dynamic" => {
                    let subnet = subnet(network, properties.subnet)?;
                    let group = group(network)?.unwrap_or_else(|| network.name.clone());
                    let networks = vec![network.name.clone()];
                    dynamic = Some(Nic { group, subnet, networks, is_dynamic: true, ..Nic::default() });
                }
                "vip" if vip.is_some() => {
                    return Err(invalid(network, "this VM has two vip networks; use at most one"));
                }
                "vip" => vip = Some(network),
                other => {
                    return Err(invalid(
                        network,
                        &format!("type `{other}` is not supported; use manual, dynamic or vip"),
                    ));
                }
            }
        }
        nics.extend(dynamic);
        if let Some(nic) = nics.iter().find(|nic| nic.ipv4.is_none() && nic.ipv6.is_none() && !nic.is_dynamic) {
            let what = "has no single address, only prefixes; add a network with one address to it";
            return Err(Error::cpi(format!("networks: nic_group `{}` {what}", nic.group)));
        }
        if nics.is_empty() {
            return Err(Error::cpi("networks: the VM has no manual or dynamic network; add one"));
        }
        let vip = vip.map(|network| plan_vip(network, &nics)).transpose()?;
        Ok(Self { nics, vip, security_groups })
    }

    /// Returns true if the Agent finds the interface of each network without its MAC address.
    pub(super) fn is_single(&self) -> bool {
        self.nics.len() == 1 && self.nics.iter().all(|nic| nic.networks.len() == 1)
    }

    /// Returns the interface of a network that is not a vip network.
    pub(super) fn nic_of(&self, network: &str) -> Option<usize> {
        self.nics.iter().position(|nic| nic.networks.iter().any(|name| name == network))
    }
}

/// Adds a manual network to the interface of its group.
fn add_manual(nics: &mut Vec<Nic>, network: &Network, subnet_id: Option<String>) -> Result<(), Error> {
    let ip = network.ip.as_deref().filter(|ip| !ip.is_empty());
    let ip = ip.ok_or_else(|| invalid(network, "a manual network needs an ip; set it in the deployment"))?;
    let group = group(network)?.unwrap_or_else(|| network.name.clone());
    let index = match nics.iter().position(|nic| nic.group == group) {
        Some(index) => index,
        None => {
            let subnet = subnet(network, subnet_id.clone())?;
            nics.push(Nic { group: group.clone(), subnet, ..Nic::default() });
            nics.len() - 1
        }
    };
    let nic = &mut nics[index];
    if subnet_id.is_some_and(|subnet| subnet != nic.subnet) {
        let what = format!("its subnet differs from that of the others in nic_group `{group}`; use the same one");
        return Err(invalid(network, &what));
    }
    let is_v6 = ip.contains(':');
    let whole = if is_v6 { "128" } else { "32" };
    let prefix = network.prefix.as_deref().filter(|prefix| !prefix.is_empty() && *prefix != whole);
    let (place, value) = match (is_v6, prefix) {
        (false, None) => (&mut nic.ipv4, ip.to_owned()),
        (true, None) => (&mut nic.ipv6, ip.to_owned()),
        (false, Some(prefix)) => (&mut nic.ipv4_prefix, format!("{ip}/{prefix}")),
        (true, Some(prefix)) => (&mut nic.ipv6_prefix, format!("{ip}/{prefix}")),
    };
    if place.is_some() {
        let what = format!("nic_group `{group}` has two addresses or prefixes of one version of IP; use one of each");
        return Err(invalid(network, &what));
    }
    *place = Some(value);
    nic.networks.push(network.name.clone());
    Ok(())
}

/// Returns the interface for an Elastic IP: that of its `nic_group`, by default the first.
fn plan_vip(network: &Network, nics: &[Nic]) -> Result<Vip, Error> {
    let ip = network.ip.clone().filter(|ip| !ip.is_empty());
    let ip = ip.ok_or_else(|| invalid(network, "a vip network needs an ip; set it in the deployment"))?;
    let nic = match group(network)? {
        None => 0,
        Some(group) => nics.iter().position(|nic| nic.group == group).ok_or_else(|| {
            let what = format!("no manual or dynamic network has its nic_group `{group}`; correct it, or remove it");
            invalid(network, &what)
        })?,
    };
    Ok(Vip { ip, nic })
}

fn subnet(network: &Network, subnet: Option<String>) -> Result<String, Error> {
    let missing = || invalid(network, "cloud_properties.subnet: is missing; set it to the ID of the subnet");
    subnet.filter(|subnet| !subnet.is_empty()).ok_or_else(missing)
}

/// Returns the `nic_group` of a network, which is a text or a number.
fn group(network: &Network) -> Result<Option<String>, Error> {
    match &network.extra.value()?["nic_group"] {
        Value::Null => Ok(None),
        Value::String(group) => Ok(Some(group.clone()).filter(|group| !group.is_empty())),
        Value::Number(group) => Ok(Some(group.to_string())),
        other => Err(invalid(network, &format!("nic_group: expected a text or a number, found {other}; correct it"))),
    }
}

fn invalid(network: &Network, what: &str) -> Error {
    Error::cpi(format!("networks.{}: {what}", network.name))
}
