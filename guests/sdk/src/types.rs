//! What CPI methods take and answer. Types that cross the border as they are
//! come from the bindings; those with JSON inside have a form of their own,
//! whose documents know their names.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Json;
use crate::bindings::bosh::cpi::types as wire;
use crate::bindings::exports::bosh::cpi::{networks, vms};

pub use crate::bindings::bosh::cpi::types::{DiskHint, Metadata};
pub use crate::bindings::exports::bosh::cpi::describe::Description;
pub use crate::bindings::exports::bosh::cpi::vms::VmSize;

/// The name that a CPI gave to something it created.
pub type Cid = String;

/// A stand-in for a secret, worth something only in a slot of the operator's
/// policy. Put it into a request as it is: a seal that was encoded or cut
/// is refused.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seal(pub String);

impl Seal {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<seal>")
    }
}

/// One network of a VM, as the Director describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub name: String,
    /// `manual`, `dynamic`, `vip`, or what a later Director may send.
    pub kind: String,
    pub ip: Option<String>,
    pub netmask: Option<String>,
    pub prefix: Option<String>,
    pub gateway: Option<String>,
    pub dns: Vec<String>,
    /// What this network is the default for: `dns`, `gateway`.
    pub default: Vec<String>,
    pub cloud_properties: Json,
    /// All other keys; hand it back, or with keys added by [`Json::with`].
    pub extra: Json,
}

impl Network {
    pub fn is_dynamic(&self) -> bool {
        self.kind == "dynamic"
    }

    pub fn is_vip(&self) -> bool {
        self.kind == "vip"
    }

    pub fn is_default_for(&self, what: &str) -> bool {
        self.default.iter().any(|other| other == what)
    }
}

impl From<wire::Network> for Network {
    fn from(network: wire::Network) -> Self {
        let within = |part: &str| format!("networks.{}{part}", network.name);
        Self {
            cloud_properties: Json::named(within(".cloud_properties"), network.cloud_properties),
            extra: Json::named(within(""), network.extra),
            name: network.name,
            kind: network.kind,
            ip: network.ip,
            netmask: network.netmask,
            prefix: network.prefix,
            gateway: network.gateway,
            dns: network.dns,
            default: network.default,
        }
    }
}

impl From<Network> for wire::Network {
    fn from(network: Network) -> Self {
        Self {
            name: network.name,
            kind: network.kind,
            ip: network.ip,
            netmask: network.netmask,
            prefix: network.prefix,
            gateway: network.gateway,
            dns: network.dns,
            default: network.default,
            cloud_properties: network.cloud_properties.into_text(),
            extra: network.extra.into_text(),
        }
    }
}

/// What `create_vm` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct VmRequest {
    pub agent_id: String,
    pub stemcell: Cid,
    pub cloud_properties: Json,
    pub networks: Vec<Network>,
    /// Disks that will most likely be attached: a hint for placement.
    pub disks: Vec<Cid>,
    /// At most `bosh.group`, `bosh.groups` and `bosh.tags`.
    pub env: Json,
}

impl From<vms::VmRequest> for VmRequest {
    fn from(request: vms::VmRequest) -> Self {
        Self {
            agent_id: request.agent_id,
            stemcell: request.stemcell,
            cloud_properties: Json::named("cloud_properties", request.cloud_properties),
            networks: request.networks.into_iter().map(Network::from).collect(),
            disks: request.disks,
            env: Json::named("env", request.env),
        }
    }
}

/// What `create_vm` answers: the networks as they are now.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedVm {
    pub vm: Cid,
    pub networks: Vec<Network>,
}

impl From<CreatedVm> for vms::CreatedVm {
    fn from(created: CreatedVm) -> Self {
        Self { vm: created.vm, networks: created.networks.into_iter().map(wire::Network::from).collect() }
    }
}

/// What `create_network` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSpec {
    pub kind: String,
    pub cloud_properties: Json,
    pub range: Option<String>,
    pub gateway: Option<String>,
    pub netmask_bits: Option<u32>,
}

impl From<networks::NetworkSpec> for NetworkSpec {
    fn from(spec: networks::NetworkSpec) -> Self {
        Self {
            kind: spec.kind,
            cloud_properties: Json::named("cloud_properties", spec.cloud_properties),
            range: spec.range,
            gateway: spec.gateway,
            netmask_bits: spec.netmask_bits,
        }
    }
}

/// What `create_network` answers.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedNetwork {
    pub network: Cid,
    pub range: String,
    pub gateway: String,
    /// Addresses that the Director must not hand out.
    pub reserved: Vec<String>,
    pub cloud_properties: Json,
}

impl From<CreatedNetwork> for networks::CreatedNetwork {
    fn from(created: CreatedNetwork) -> Self {
        Self {
            network: created.network,
            range: created.range,
            gateway: created.gateway,
            reserved: created.reserved,
            cloud_properties: created.cloud_properties.into_text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> wire::Network {
        wire::Network {
            name: "default".into(),
            kind: "manual".into(),
            ip: Some("10.0.0.5".into()),
            netmask: Some("255.255.255.0".into()),
            prefix: Some("32".into()),
            gateway: None,
            dns: vec!["10.0.0.2".into()],
            default: vec!["dns".into(), "gateway".into()],
            cloud_properties: r#"{"subnet":7}"#.into(),
            extra: r#"{"nic_group":1}"#.into(),
        }
    }

    #[test]
    fn a_network_survives_the_round_trip() {
        assert_eq!(wire::Network::from(Network::from(network())), network());
    }

    #[test]
    fn a_network_names_itself_in_errors() {
        #[derive(Debug, Deserialize)]
        struct Properties {
            #[expect(dead_code)]
            subnet: String,
        }
        let error = Network::from(network()).cloud_properties.parse::<Properties>().unwrap_err();
        assert_eq!(
            error.message,
            "networks.default.cloud_properties.subnet: invalid type: integer `7`, expected a string"
        );
    }

    #[test]
    fn a_network_knows_its_kind_and_defaults() {
        let mut network = Network::from(network());
        assert!(network.is_default_for("dns") && !network.is_default_for("other"));
        assert!(!network.is_dynamic() && !network.is_vip());
        network.kind = "dynamic".into();
        assert!(network.is_dynamic());
    }

    #[test]
    fn a_seal_does_not_show_in_debug_output_and_serialises_as_it_is() {
        let seal = Seal("abc".into());
        assert_eq!(format!("{seal:?}"), "<seal>");
        assert_eq!(serde_json::to_string(&seal).unwrap(), r#""abc""#);
    }
}
