//! `create_network` and `delete_network`: a network of Neutron with one subnet.
//! Neutron's own services, such as DHCP, take addresses by themselves. They get
//! the last addresses of the range, which the Director must not use.

mod range;

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_cpi_sdk::{Cid, CreatedNetwork, Error, Json, NetworkSpec};

use crate::api::{create_once, retry_while_busy};
use crate::names;
use crate::session::Session;
use range::Range;

#[derive(Debug, Default, Deserialize)]
struct NetworkProperties {
    name: Option<String>,
    /// The pool that the range is taken from if the Director sends only its size.
    subnetpool_id: Option<String>,
    security_groups: Option<Vec<String>>,
}

pub(crate) fn create(session: &Session, spec: &NetworkSpec) -> Result<CreatedNetwork, Error> {
    let properties: NetworkProperties = spec.cloud_properties.parse()?;
    let name = names::unique(properties.name.as_deref().unwrap_or("bosh"));
    let networking = session.networking()?;
    let post = || networking.create_network(&name);
    let network = create_once(&format!("network {name}"), post, || networking.network_named(&name))?.id;
    match subnet(session, &network, &name, spec, &properties) {
        Ok(created) => Ok(created),
        Err(error) => match retry_while_busy(|| networking.delete_network(&network)) {
            Ok(_) => Err(error),
            Err(left) => Err(Error::cloud(format!(
                "{error}; network `{network}` is left in the cloud, because deleting it failed: {left}"
            ))),
        },
    }
}

fn subnet(
    session: &Session,
    network: &str,
    name: &str,
    spec: &NetworkSpec,
    properties: &NetworkProperties,
) -> Result<CreatedNetwork, Error> {
    let dhcp = session.properties.use_dhcp();
    let mut body = json!({"network_id": network, "name": name, "enable_dhcp": dhcp});
    let mut reserved = None;
    match (&spec.range, spec.netmask_bits, &properties.subnetpool_id) {
        (Some(text), ..) => {
            let range = Range::parse(text)?;
            body["cidr"] = json!(text);
            body["ip_version"] = json!(range.version());
            let own = range.neutron_addresses(spec.gateway.as_deref(), dhcp)?;
            if let Some(pools) = pools(&own) {
                body["allocation_pools"] = pools;
            }
            reserved = Some(own);
        }
        (None, Some(bits), Some(pool)) => {
            body["subnetpool_id"] = json!(pool);
            body["prefixlen"] = json!(bits);
            body["ip_version"] = json!(4);
            // Neutron's addresses are known only with the range; until then, DHCP could take any.
            body["enable_dhcp"] = json!(false);
        }
        (None, ..) => {
            return Err(Error::cpi(
                "create_network: the subnet has no range; set its range, or netmask_bits with cloud_properties.subnetpool_id",
            ));
        }
    }
    if let Some(gateway) = &spec.gateway {
        body["gateway_ip"] = json!(gateway);
    }
    let networking = session.networking()?;
    let post = || networking.create_subnet(&body);
    let subnet = create_once(&format!("subnet {name}"), post, || networking.subnet_of(network))?;
    let reserved = match reserved {
        Some(reserved) => reserved,
        None => {
            let own = Range::parse(&subnet.cidr)?.neutron_addresses(subnet.gateway_ip.as_deref(), dhcp)?;
            if let Some(pools) = pools(&own) {
                networking.change_subnet(&subnet.id, &json!({"allocation_pools": pools, "enable_dhcp": dhcp}))?;
            }
            own
        }
    };
    let mut cloud_properties = json!({"net_id": network});
    if let Some(groups) = &properties.security_groups {
        cloud_properties["security_groups"] = json!(groups);
    }
    Ok(CreatedNetwork {
        network: network.to_owned(),
        range: subnet.cidr,
        gateway: subnet.gateway_ip.unwrap_or_default(),
        reserved,
        cloud_properties: Json::from(cloud_properties),
    })
}

/// Returns the pool that Neutron may take addresses from.
fn pools(own: &[String]) -> Option<Value> {
    Some(json!([{"start": own.first()?, "end": own.last()?}]))
}

/// Deletes a network with its subnet and the ports of Neutron's own services.
pub(crate) fn delete(session: &Session, network: &Cid) -> Result<(), Error> {
    let networking = session.networking()?;
    if !networking.has_network(network)? {
        return Err(Error::network_not_found(network));
    }
    // A network that does not exist now was deleted by this call, whose answer got lost.
    retry_while_busy(|| networking.delete_network(network))?;
    Ok(())
}
