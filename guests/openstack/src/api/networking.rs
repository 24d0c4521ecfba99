//! Neutron.

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_cpi_sdk::http::{self, Request, RequestError, segment};
use wasm_cpi_sdk::log;

use super::Service;

pub(crate) struct Networking(pub(crate) Service);

const SECURITY_GROUPS: &str = "/v2.0/security-groups";

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Port {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) mac_address: Option<String>,
    #[serde(default)]
    pub(crate) network_id: String,
    #[serde(default)]
    pub(crate) device_id: String,
    #[serde(default)]
    pub(crate) device_owner: String,
    #[serde(default)]
    pub(crate) fixed_ips: Vec<FixedIp>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FixedIp {
    pub(crate) ip_address: String,
    pub(crate) subnet_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SecurityGroup {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) project_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FloatingIp {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) floating_network_id: String,
    pub(crate) port_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NamedNetwork {
    pub(crate) id: String,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Subnet {
    pub(crate) id: String,
    pub(crate) cidr: String,
    pub(crate) gateway_ip: Option<String>,
}

#[derive(Deserialize)]
struct Ports {
    ports: Vec<Port>,
}

#[derive(Deserialize)]
struct OnePort {
    port: Port,
}

#[derive(Deserialize)]
struct Groups {
    security_groups: Vec<SecurityGroup>,
    #[serde(default, rename = "security_groups_links")]
    links: Vec<Link>,
}

/// A link to another page.
#[derive(Deserialize)]
struct Link {
    rel: String,
}

#[derive(Deserialize)]
struct FloatingIps {
    floatingips: Vec<FloatingIp>,
}

#[derive(Deserialize)]
struct Networks {
    networks: Vec<NamedNetwork>,
}

#[derive(Deserialize)]
struct OneNetwork {
    network: NamedNetwork,
}

#[derive(Deserialize)]
struct Subnets {
    subnets: Vec<Subnet>,
}

#[derive(Deserialize)]
struct OneSubnet {
    subnet: Subnet,
}

impl Networking {
    pub(crate) fn create_port(&self, port: &Value) -> Result<Port, RequestError> {
        let made = self.0.post::<OnePort>("/v2.0/ports", &json!({"port": port}))?.port;
        let address = port["fixed_ips"][0]["ip_address"].as_str().unwrap_or_default();
        log::info(format_args!("created port {} with address {address}", made.id));
        Ok(made)
    }

    pub(crate) fn ports(&self, filters: &[(&str, &str)]) -> Result<Vec<Port>, RequestError> {
        Ok(self.0.read::<Ports>(self.ports_request(filters))?.ports)
    }

    fn ports_request(&self, filters: &[(&str, &str)]) -> Request {
        filters.iter().fold(http::get(self.0.url("/v2.0/ports")), |get, (name, value)| get.query(name, value))
    }

    /// Returns the ports of a server. The result is checked again, as some callers
    /// delete what is listed.
    pub(crate) fn ports_of(&self, server: &str) -> Result<Vec<Port>, RequestError> {
        let listed = self.ports(&[("device_id", server)])?;
        Ok(listed.into_iter().filter(|port| !server.is_empty() && port.device_id == server).collect())
    }

    /// Returns the request of [`Self::ports_of`], to read it ahead.
    pub(crate) fn ports_of_request(&self, server: &str) -> Option<Request> {
        Some(self.ports_request(&[("device_id", server)]))
    }

    /// Returns the ports with an address.
    pub(crate) fn ports_at(&self, address: &str) -> Result<Vec<Port>, RequestError> {
        self.ports(&[("fixed_ips", &at(address))])
    }

    /// Returns the request of [`Self::ports_at`], to read it ahead.
    pub(crate) fn ports_at_request(&self, address: &str) -> Option<Request> {
        Some(self.ports_request(&[("fixed_ips", &at(address))]))
    }

    /// Returns the ports with this name, and checks the result likewise.
    pub(crate) fn ports_named(&self, name: &str) -> Result<Vec<Port>, RequestError> {
        Ok(self.ports(&[("name", name)])?.into_iter().filter(|port| port.name == name).collect())
    }

    /// Returns the ports with this tag, and checks the result likewise.
    pub(crate) fn ports_tagged(&self, tag: &str) -> Result<Vec<Port>, RequestError> {
        let listed = self.ports(&[("tags", tag)])?;
        Ok(listed.into_iter().filter(|port| port.tags.iter().any(|own| own == tag)).collect())
    }

    /// Returns the request of [`Self::ports_tagged`], to read it ahead.
    pub(crate) fn ports_tagged_request(&self, tag: &str) -> Option<Request> {
        Some(self.ports_request(&[("tags", tag)]))
    }

    pub(crate) fn tag_port(&self, id: &str, tag: &str) -> Result<(), RequestError> {
        let put = http::put(self.0.url(&format!("/v2.0/ports/{}/tags/{}", segment(id), segment(tag))));
        self.0.change(put, format_args!("set tag {tag} of port {id}"))
    }

    pub(crate) fn delete_port(&self, id: &str) -> Result<bool, RequestError> {
        self.0.delete(&format!("/v2.0/ports/{}", segment(id)), format_args!("port {id}"))
    }

    /// Returns all security groups, from all pages.
    pub(crate) fn security_groups(&self) -> Result<Vec<SecurityGroup>, RequestError> {
        let mut all: Vec<SecurityGroup> = vec![];
        loop {
            let mut list = http::get(self.0.url(SECURITY_GROUPS));
            if let Some(last) = all.last() {
                list = list.query("marker", &last.id);
            }
            let page: Groups = self.0.read(list)?;
            let new = page.security_groups.last().is_some_and(|last| all.iter().all(|known| known.id != last.id));
            let more = page.links.iter().any(|link| link.rel == "next") && new;
            all.extend(page.security_groups);
            if !more {
                return Ok(all);
            }
        }
    }

    /// Returns the first request of [`Self::security_groups`], to read it ahead.
    pub(crate) fn security_groups_request(&self) -> Option<Request> {
        self.0.request_of(SECURITY_GROUPS)
    }

    pub(crate) fn floating_ips(&self, address: &str) -> Result<Vec<FloatingIp>, RequestError> {
        Ok(self.0.read::<FloatingIps>(self.floating_ips_get(address))?.floatingips)
    }

    /// Returns the request of [`Self::floating_ips`], to read it ahead.
    pub(crate) fn floating_ips_request(&self, address: &str) -> Option<Request> {
        Some(self.floating_ips_get(address))
    }

    fn floating_ips_get(&self, address: &str) -> Request {
        http::get(self.0.url("/v2.0/floatingips")).query("floating_ip_address", address)
    }

    /// Moves a floating IP to a port, or to none.
    pub(crate) fn associate(&self, floating_ip: &str, port: Option<&str>) -> Result<(), RequestError> {
        let path = format!("/v2.0/floatingips/{}", segment(floating_ip));
        let change = match port {
            Some(port) => format!("associated floating IP {floating_ip} with port {port}"),
            None => format!("dissociated floating IP {floating_ip}"),
        };
        self.0.put(&path, &json!({"floatingip": {"port_id": port}}), change)
    }

    pub(crate) fn create_network(&self, name: &str) -> Result<NamedNetwork, RequestError> {
        let made = self.0.post::<OneNetwork>("/v2.0/networks", &json!({"network": {"name": name}}))?.network;
        log::info(format_args!("created network {} ({name})", made.id));
        Ok(made)
    }

    pub(crate) fn network_named(&self, name: &str) -> Result<Option<NamedNetwork>, RequestError> {
        let list = http::get(self.0.url("/v2.0/networks")).query("name", name);
        Ok(self.0.read::<Networks>(list)?.networks.into_iter().find(|network| network.name == name))
    }

    pub(crate) fn has_network(&self, id: &str) -> Result<bool, RequestError> {
        let list = http::get(self.0.url("/v2.0/networks")).query("id", id);
        Ok(self.0.read::<Networks>(list)?.networks.iter().any(|network| network.id == id))
    }

    pub(crate) fn delete_network(&self, id: &str) -> Result<bool, RequestError> {
        self.0.delete(&format!("/v2.0/networks/{}", segment(id)), format_args!("network {id}"))
    }

    pub(crate) fn create_subnet(&self, subnet: &Value) -> Result<Subnet, RequestError> {
        let made = self.0.post::<OneSubnet>("/v2.0/subnets", &json!({"subnet": subnet}))?.subnet;
        log::info(format_args!("created subnet {} with range {}", made.id, made.cidr));
        Ok(made)
    }

    pub(crate) fn change_subnet(&self, id: &str, subnet: &Value) -> Result<(), RequestError> {
        let change = format_args!("changed subnet {id}");
        self.0.put(&format!("/v2.0/subnets/{}", segment(id)), &json!({"subnet": subnet}), change)
    }

    pub(crate) fn subnet_of(&self, network: &str) -> Result<Option<Subnet>, RequestError> {
        let list = http::get(self.0.url("/v2.0/subnets")).query("network_id", network);
        Ok(self.0.read::<Subnets>(list)?.subnets.into_iter().next())
    }
}

/// Returns the filter of ports by their address.
fn at(address: &str) -> String {
    format!("ip_address={address}")
}
