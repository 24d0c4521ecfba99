//! The manifest of a job: the properties that an operator would set, from which the
//! release's templates make the job's files.
//!
//! It contains no path of the machine on which the job is laid out.

use super::JobInputs;
use serde_json::{Map, Value, json};

/// The file name of the preset in the guest's package.
pub(super) const PRESET: &str = "openstack.json";

/// Returns the section `guest`, which is the same in a manifest and in the configuration.
pub(super) fn guest(file: &str, sha256: &str) -> Value {
    json!({ "package": "guest", "file": file, "sha256": sha256 })
}

/// Returns the job's properties. Without a policy in `inputs`, the policy grants nothing.
pub(super) fn properties(guest: &Value, inputs: &JobInputs) -> Value {
    json!({
        "guest": guest,
        "properties": inputs.properties.clone().unwrap_or_else(|| json!({})),
        "agent": { "mbus": "nats://127.0.0.1:4222" },
        "policy": inputs.policy.clone().unwrap_or_else(|| json!({ "http": [] })),
        "allow_local": inputs.allow_local,
    })
}

/// Returns a policy with the guest's own preset, limited to this machine.
pub(super) fn cloud_policy() -> Value {
    json!({ "presets": [{ "package": "guest", "file": PRESET, "addresses": ["127.0.0.0/8"], "plain_http": true }] })
}

/// Returns the properties that an operator would set for the cloud that `cloud.json` describes.
pub(super) fn cloud_properties(cloud: &Value) -> Value {
    let mut properties = Map::new();
    for key in ["auth_url", "region", "username", "api_key", "domain", "project", "endpoints"] {
        properties.insert(key.to_owned(), cloud[key].clone());
    }
    properties.insert("default_key_name".to_owned(), cloud["key_name"].clone());
    properties.insert("default_security_groups".to_owned(), json!([cloud["security_group"]]));
    properties.insert("default_volume_type".to_owned(), cloud["volume_type"].clone());
    // The cloud is local and simulated or has a fake hypervisor, so all changes are quick.
    properties.insert("wait_resource_poll_interval".to_owned(), json!(1));
    properties.into()
}
