//! The arguments and results of CPI methods. Types without JSON are those of the
//! bindings. Types with JSON have their own form here, so that an error in a
//! document names it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Json;
use crate::bindings::bosh::cpi::types as wire;
use crate::bindings::exports::bosh::cpi::{networks, vms};

pub use crate::bindings::bosh::cpi::types::{DiskHint, Metadata};
pub use crate::bindings::exports::bosh::cpi::describe::Description;
pub use crate::bindings::exports::bosh::cpi::vms::VmSize;

/// A cloud ID: the name that the CPI gave to an object when it created it.
pub type Cid = String;

/// A placeholder for a secret. The host replaces it by the secret in a slot of
/// the operator's policy. Put it into a request unchanged: the host denies a
/// request with a seal that was encoded or cut.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seal(
    /// The text of the seal.
    pub String,
);

impl Seal {
    /// Returns the text of the seal.
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
    /// The name of the network in the deployment.
    pub name: String,
    /// The type of the network: `manual`, `dynamic`, `vip`, a type of a later
    /// Director, or an empty string if the Director sent none.
    pub kind: String,
    /// The IP address. A dynamic network has none until the cloud chose it.
    pub ip: Option<String>,
    /// The netmask of the subnet.
    pub netmask: Option<String>,
    /// The length of the prefix, as the string that the contract defines.
    pub prefix: Option<String>,
    /// The IP address of the gateway.
    pub gateway: Option<String>,
    /// The IP addresses of the DNS servers.
    pub dns: Vec<String>,
    /// What this network is the default for: `dns`, `gateway`, both or neither.
    pub default: Vec<String>,
    /// The `cloud_properties` of the subnet.
    pub cloud_properties: Json,
    /// All other keys. Return it unchanged, or with keys added by [`Json::with`].
    pub extra: Json,
}

impl Network {
    /// Returns true if the cloud chooses the addresses of this network.
    pub fn is_dynamic(&self) -> bool {
        self.kind == "dynamic"
    }

    /// Returns true if this is a `vip` network.
    pub fn is_vip(&self) -> bool {
        self.kind == "vip"
    }

    /// Returns true if this network is the default for `what`: `dns` or `gateway`.
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

/// The VM that `create_vm` has to create.
#[derive(Clone, Debug, PartialEq)]
pub struct VmRequest {
    /// The ID of the Agent that will run in the VM.
    pub agent_id: String,
    /// The stemcell that the VM starts from.
    pub stemcell: Cid,
    /// The `cloud_properties` of the VM type.
    pub cloud_properties: Json,
    /// The networks of the VM, in the Director's order.
    pub networks: Vec<Network>,
    /// Disks that the Director will probably attach: a hint for the placement.
    pub disks: Vec<Cid>,
    /// The part of the VM's `env` that holds no secrets: at most `bosh.group`,
    /// `bosh.groups` and `bosh.tags`.
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

/// The VM that `create_vm` created.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedVm {
    /// The cloud ID of the VM.
    pub vm: Cid,
    /// The networks of the request, with the addresses that the cloud chose for
    /// dynamic networks.
    pub networks: Vec<Network>,
}

impl From<CreatedVm> for vms::CreatedVm {
    fn from(created: CreatedVm) -> Self {
        Self { vm: created.vm, networks: created.networks.into_iter().map(wire::Network::from).collect() }
    }
}

/// The network that `create_network` has to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSpec {
    /// The type of the network. The Director sends `manual`.
    pub kind: String,
    /// The `cloud_properties` of the network.
    pub cloud_properties: Json,
    /// The range of addresses in CIDR notation. If it is absent, the cloud
    /// chooses a range that has `netmask_bits` bits.
    pub range: Option<String>,
    /// The IP address of the gateway.
    pub gateway: Option<String>,
    /// The length of the prefix of a range that the cloud chooses.
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

/// The network that `create_network` created.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedNetwork {
    /// The cloud ID of the network.
    pub network: Cid,
    /// The range of addresses in CIDR notation.
    pub range: String,
    /// The IP address of the gateway.
    pub gateway: String,
    /// Addresses that the Director must not assign to VMs.
    pub reserved: Vec<String>,
    /// The `cloud_properties` that the Director uses for this network.
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
    fn an_error_in_a_network_names_the_network() {
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
    fn a_seal_is_hidden_in_debug_output_and_serialised_unchanged() {
        let seal = Seal("abc".into());
        assert_eq!(format!("{seal:?}"), "<seal>");
        assert_eq!(serde_json::to_string(&seal).unwrap(), r#""abc""#);
    }
}
