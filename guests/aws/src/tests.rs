//! Native tests of the CPI's methods. They use the SDK's fake host, with answers for operations (`answers`).

mod answers;
mod attachments;
mod changes;
mod cloud;
mod disks;
mod failures;
mod fault_matrix;
mod heavy_stemcells;
mod launches_in_doubt;
mod log_lines;
mod policies;
mod prefixes;
mod session;
mod snapshots;
mod stemcells;
mod storage_answers;
mod vms;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::{Fake, Installed};
use wasm_cpi_sdk::{Cpi, Json, Network, VmRequest};

use crate::Aws;

/// The properties of most tests.
fn properties() -> Value {
    json!({
        "region": "us-east-1", "access_key_id": "<seal>", "secret_access_key": "<seal>", "default_key_name": "bosh",
        "default_security_groups": ["sg-0a1b2c3d"],
    })
}

/// Starts a call with answers by operation. Several answers to an operation are used in their order; the last one is
/// used for all further requests.
fn start(answers: &[(&str, String)]) -> Installed {
    start_with(properties(), answers)
}

fn start_with(properties: Value, answers: &[(&str, String)]) -> Installed {
    let fake = Fake::new().properties(properties);
    answers.iter().fold(fake, |fake, (operation, body)| fake.on_operation(operation, answers::answer(body))).install()
}

fn cpi() -> Aws {
    Aws::open().unwrap()
}

/// Returns the operations of all requests, in their order.
fn operations(host: &Installed) -> Vec<String> {
    (0..host.requests().len()).map(|index| host.request_form(index).unwrap()["Action"].clone()).collect()
}

/// Returns the fields of the first request with this operation.
fn form_of(host: &Installed, operation: &str) -> BTreeMap<String, String> {
    let all = (0..host.requests().len()).map(|index| host.request_form(index).unwrap());
    let mut own = all.filter(|form| form["Action"] == operation);
    own.next().unwrap_or_else(|| panic!("{operation} was not sent, only {:?}", operations(host)))
}

fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns an object with a key set.
fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}

fn network(name: &str, kind: &str, ip: Option<&str>, cloud_properties: Value) -> Network {
    Network {
        name: name.into(),
        kind: kind.into(),
        ip: ip.map(Into::into),
        netmask: None,
        prefix: None,
        gateway: None,
        dns: vec![],
        default: vec![],
        cloud_properties: Json::named(format!("networks.{name}.cloud_properties"), cloud_properties.to_string()),
        extra: Json::default(),
    }
}

fn manual() -> Network {
    network("default", "manual", Some("10.0.0.5"), json!({"subnet": "subnet-1"}))
}

fn dynamic() -> Network {
    network("default", "dynamic", None, json!({"subnet": "subnet-1"}))
}

fn vip() -> Network {
    network("public", "vip", Some("198.51.100.1"), json!({}))
}

fn request(cloud_properties: Value, networks: Vec<Network>) -> VmRequest {
    VmRequest {
        agent_id: "agent-1".into(),
        stemcell: "ami-1".into(),
        cloud_properties: Json::named("cloud_properties", cloud_properties.to_string()),
        networks,
        disks: vec![],
        env: Json::raw(r#"{"bosh": {"group": "web", "tags": {"team": "a"}}}"#),
    }
}

fn small() -> Value {
    json!({"instance_type": "m5.large", "availability_zone": "us-east-1a", "ephemeral_disk": {"size": 10240}})
}
