//! Turns the outcomes of a script into the result of the method. Methods that return
//! a new cloud ID or cloud properties return the outcomes in them. All others return
//! an error of kind `cloud` with the outcomes in its message. The operations
//! `result` and `garbage` override this.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasm_cpi_sdk::{Cid, CreatedNetwork, CreatedVm, DiskHint, Error, Json, Network};

use crate::cids::SCRIPTED;
use crate::encoding::to_base64url;
use crate::garbage::Garbage;
use crate::ops;

/// How a script ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// It ran to its end. The outcomes are an array.
    Outcomes(Value),
    /// The call is ending, and the script cleaned up.
    Cancelled { why: String, outcomes: Value },
    /// The value of the operation `result`.
    Result(Value),
    /// The value of the operation `garbage`.
    Garbage(Garbage),
}

/// An [`Answer`] that is not an error.
enum Success {
    Outcomes(Value),
    Result(Value),
    Garbage(Garbage),
}

fn in_message(outcomes: &Value) -> Error {
    Error::cloud(format!("probe outcomes: {outcomes}"))
}

fn in_cid(outcomes: &Value) -> Cid {
    format!("{SCRIPTED}{}", to_base64url(outcomes.to_string().as_bytes()))
}

/// Parses the value of the operation `result` as the result of the method.
fn parse<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value)
        .map_err(|error| Error::cpi(format!("probe script: the result does not fit this method: {error}")))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum VmResult {
    Cid(Cid),
    Whole { vm: Cid, networks: Option<Vec<NetworkResult>> },
}

/// A network of a `result`. Absent values stay as the Director sent them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkResult {
    name: String,
    ip: Option<String>,
    netmask: Option<String>,
    gateway: Option<String>,
    dns: Option<Vec<String>>,
    cloud_properties: Option<Value>,
    extra: Option<Value>,
}

impl NetworkResult {
    fn merged_into(self, networks: &[Network]) -> Network {
        let given = networks.iter().find(|network| network.name == self.name).cloned();
        let mut network = given.unwrap_or_else(|| new_network(&self.name));
        network.ip = self.ip.or(network.ip);
        network.netmask = self.netmask.or(network.netmask);
        network.gateway = self.gateway.or(network.gateway);
        network.dns = self.dns.unwrap_or(network.dns);
        network.cloud_properties = self.cloud_properties.map_or(network.cloud_properties, Json::from);
        network.extra = self.extra.map_or(network.extra, Json::from);
        network
    }
}

fn new_network(name: &str) -> Network {
    Network {
        name: name.to_owned(),
        kind: "manual".to_owned(),
        ip: None,
        netmask: None,
        prefix: None,
        gateway: None,
        dns: vec![],
        default: vec![],
        cloud_properties: Json::default(),
        extra: Json::default(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreatedNetworkResult {
    network: Cid,
    range: String,
    gateway: String,
    #[serde(default)]
    reserved: Vec<String>,
    #[serde(default)]
    cloud_properties: Value,
}

impl Answer {
    fn success(self) -> Result<Success, Error> {
        match self {
            Self::Outcomes(outcomes) => Ok(Success::Outcomes(outcomes)),
            Self::Cancelled { why, outcomes } => {
                Err(Error::cloud(format!("probe cancelled: {why}; probe outcomes: {outcomes}")))
            }
            Self::Result(value) => Ok(Success::Result(value)),
            Self::Garbage(garbage) if garbage.in_error => Err(Error::cloud(garbage.text())),
            Self::Garbage(garbage) => Ok(Success::Garbage(garbage)),
        }
    }

    pub(crate) fn cid(self) -> Result<Cid, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Ok(in_cid(&outcomes)),
            Success::Result(value) => parse(value),
            Success::Garbage(garbage) => Ok(garbage.text()),
        }
    }

    pub(crate) fn vm(self, networks: Vec<Network>) -> Result<CreatedVm, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => {
                let with_outcomes = |mut network: Network| {
                    network.extra = network.extra.with("probe", &outcomes)?;
                    Ok(network)
                };
                let networks = networks.into_iter().map(with_outcomes).collect::<Result<_, Error>>()?;
                Ok(CreatedVm { vm: in_cid(&outcomes), networks })
            }
            Success::Result(value) => match parse(value)? {
                VmResult::Cid(vm) | VmResult::Whole { vm, networks: None } => Ok(CreatedVm { vm, networks }),
                VmResult::Whole { vm, networks: Some(results) } => Ok(CreatedVm {
                    vm,
                    networks: results.into_iter().map(|result| result.merged_into(&networks)).collect(),
                }),
            },
            Success::Garbage(garbage) => Ok(garbage.vm(networks)),
        }
    }

    pub(crate) fn json(self) -> Result<Json, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Ok(Json::from(json!({"probe": outcomes}))),
            Success::Result(value) => Ok(Json::from(value)),
            Success::Garbage(garbage) => Ok(Json::raw(garbage.json())),
        }
    }

    pub(crate) fn hint(self) -> Result<DiskHint, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Err(in_message(&outcomes)),
            Success::Result(value) => Ok(ops::hint(&value)),
            Success::Garbage(garbage) => Ok(garbage.hint()),
        }
    }

    pub(crate) fn optional_cid(self) -> Result<Option<Cid>, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Err(in_message(&outcomes)),
            Success::Result(value) => parse(value),
            Success::Garbage(garbage) => Ok(Some(garbage.text())),
        }
    }

    pub(crate) fn cids(self) -> Result<Vec<Cid>, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Err(in_message(&outcomes)),
            Success::Result(value) => parse(value),
            Success::Garbage(garbage) => Ok(vec![garbage.text()]),
        }
    }

    pub(crate) fn network(self) -> Result<CreatedNetwork, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Err(in_message(&outcomes)),
            Success::Result(value) => {
                let CreatedNetworkResult { network, range, gateway, reserved, cloud_properties } = parse(value)?;
                Ok(CreatedNetwork { network, range, gateway, reserved, cloud_properties: cloud_properties.into() })
            }
            Success::Garbage(garbage) => Ok(CreatedNetwork {
                network: garbage.text(),
                range: garbage.text(),
                gateway: garbage.text(),
                reserved: vec![garbage.text()],
                cloud_properties: Json::raw(garbage.json()),
            }),
        }
    }

    pub(crate) fn boolean(self) -> Result<bool, Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Err(in_message(&outcomes)),
            Success::Result(value) => parse(value),
            Success::Garbage(garbage) => Err(Error::cloud(garbage.text())),
        }
    }

    pub(crate) fn nothing(self) -> Result<(), Error> {
        match self.success()? {
            Success::Outcomes(outcomes) => Err(in_message(&outcomes)),
            Success::Result(_) => Ok(()),
            Success::Garbage(garbage) => Err(Error::cloud(garbage.text())),
        }
    }
}
