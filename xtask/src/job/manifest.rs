//! The manifest of a job: what an operator would set, for the release's templates
//! to make its files of.
//!
//! Nothing here names a path of the machine that lays the job out.

use super::Given;
use serde_json::{Map, Value, json};

/// A preset's name beside the guest, in its package.
pub(super) const PRESET: &str = "openstack.json";

/// The section `guest`, in a manifest and in the configuration alike.
pub(super) fn guest(file: &str, sha256: &str) -> Value {
    json!({ "package": "guest", "file": file, "sha256": sha256 })
}

/// The job's properties. Its policy grants nothing, unless one is given.
pub(super) fn properties(guest: &Value, given: &Given) -> Value {
    json!({
        "guest": guest,
        "properties": given.properties.clone().unwrap_or_else(|| json!({})),
        "agent": { "mbus": "nats://127.0.0.1:4222" },
        "policy": given.policy.clone().unwrap_or_else(|| json!({ "http": [] })),
        "allow_local": given.allow_local,
    })
}

/// What the guest's own preset grants, on this machine alone.
pub(super) fn cloud_policy() -> Value {
    json!({ "presets": [{ "package": "guest", "file": PRESET, "addresses": ["127.0.0.0/8"], "plain_http": true }] })
}

/// What an operator would set for the cloud of this `cloud.json`.
pub(super) fn cloud_properties(cloud: &Value) -> Value {
    let mut properties = Map::new();
    for key in ["auth_url", "region", "username", "api_key", "domain", "project", "endpoints"] {
        properties.insert(key.to_owned(), cloud[key].clone());
    }
    properties.insert("default_key_name".to_owned(), cloud["key_name"].clone());
    properties.insert("default_security_groups".to_owned(), json!([cloud["security_group"]]));
    properties.insert("default_volume_type".to_owned(), cloud["volume_type"].clone());
    // It is near, and pretends: nothing takes long.
    properties.insert("wait_resource_poll_interval".to_owned(), json!(1));
    properties.into()
}
