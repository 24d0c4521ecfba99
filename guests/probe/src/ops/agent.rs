//! The operations `agent.*`.

use serde::Deserialize;
use serde_json::Value;
use wasm_cpi_sdk::agent::{Encoding, NetworkAddition, Settings};
use wasm_cpi_sdk::bindings::bosh::cpi::agent as wire;
use wasm_cpi_sdk::{DiskHint, host};

use super::{Failure, as_json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bootstrap {
    vm_name: Option<String>,
    system_disk: Option<String>,
    ephemeral_disk: Option<Value>,
    #[serde(default)]
    raw_ephemeral_disks: Vec<Value>,
    #[serde(default)]
    networks: Vec<Addition>,
    #[serde(default)]
    encodings: Vec<EncodingName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Addition {
    name: String,
    mac: Option<String>,
    ip: Option<String>,
    netmask: Option<String>,
    gateway: Option<String>,
    #[serde(default)]
    dns: Vec<String>,
    use_dhcp: Option<bool>,
    preconfigured: Option<bool>,
    alias: Option<String>,
    routes: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EncodingName {
    JsonString,
    Base64,
    Base64url,
}

pub(super) fn bootstrap(given: &Bootstrap) -> Result<Value, Failure> {
    let settings = Settings {
        vm_name: given.vm_name.clone().unwrap_or_else(|| "probe".to_owned()),
        system_disk: given.system_disk.clone(),
        ephemeral_disk: given.ephemeral_disk.as_ref().map(hint),
        raw_ephemeral_disks: given.raw_ephemeral_disks.iter().map(hint).collect(),
        networks: given.networks.iter().map(addition).collect(),
        encodings: given.encodings.iter().map(encoding).collect(),
    };
    host::current().agent_bootstrap(&settings).map(Value::String).map_err(failure)
}

fn addition(given: &Addition) -> NetworkAddition {
    NetworkAddition {
        name: given.name.clone(),
        mac: given.mac.clone(),
        ip: given.ip.clone(),
        netmask: given.netmask.clone(),
        gateway: given.gateway.clone(),
        dns: given.dns.clone(),
        use_dhcp: given.use_dhcp,
        preconfigured: given.preconfigured,
        alias: given.alias.clone(),
        routes: given.routes.as_ref().map(as_json),
    }
}

fn encoding(name: &EncodingName) -> Encoding {
    match name {
        EncodingName::JsonString => Encoding::JsonString,
        EncodingName::Base64 => Encoding::Base64,
        EncodingName::Base64url => Encoding::Base64url,
    }
}

/// Converts a hint from BOSH's JSON: a string, or an object of strings.
pub(crate) fn hint(value: &Value) -> DiskHint {
    match value {
        Value::Object(fields) => {
            DiskHint::Fields(fields.iter().map(|(key, value)| (key.clone(), as_json(value))).collect())
        }
        other => DiskHint::Text(as_json(other)),
    }
}

pub(super) fn done(outcome: Result<(), wire::Error>) -> Result<Value, Failure> {
    outcome.map(Value::from).map_err(failure)
}

fn failure(error: wire::Error) -> Failure {
    match error {
        wire::Error::Refused(message) => Failure::new("refused", message),
        wire::Error::Registry(message) => Failure::new("registry", message),
        wire::Error::Cancelled(why) => Failure::new("cancelled", why),
    }
}
