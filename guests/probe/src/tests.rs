//! Native tests of the probe's methods with the SDK's fake host.

mod answers;
mod lifecycle;
mod operations;

use serde_json::{Value, json};
use wasm_cpi_sdk::{Cpi, Error, Json, Network, VmRequest};

use crate::Probe;
use crate::encoding::{from_base64, to_base64};

fn network(kind: &str) -> Network {
    Network {
        name: "default".into(),
        kind: kind.into(),
        ip: (kind == "manual").then(|| "10.0.0.5".into()),
        netmask: None,
        prefix: Some("32".into()),
        gateway: None,
        dns: vec![],
        default: vec!["dns".into()],
        cloud_properties: Json::raw(r#"{"subnet":"s"}"#),
        extra: Json::raw(r#"{"nic_group":1}"#),
    }
}

fn request(cloud_properties: Value) -> VmRequest {
    VmRequest {
        agent_id: "agent-1".into(),
        stemcell: "stemcell-1".into(),
        cloud_properties: Json::named("cloud_properties", cloud_properties.to_string()),
        networks: vec![network("manual")],
        disks: vec![],
        env: Json::raw("{}"),
    }
}

/// Returns a cloud ID that holds the script.
fn cid(script: Value) -> String {
    format!("probe:{}", to_base64(script.to_string().as_bytes()))
}

/// Returns the outcomes in a cloud ID that the probe returned.
fn outcomes(cid: &str) -> Value {
    serde_json::from_slice(&from_base64(cid.strip_prefix("probe:").unwrap()).unwrap()).unwrap()
}

/// Runs a script in `create_disk` and returns its outcomes.
fn run(script: Value) -> Result<Value, Error> {
    Probe.create_disk(1, Json::from(json!({"probe": script})), None).map(|cid| outcomes(&cid))
}
