//! The texts of a job: its script, its configuration, its policy.
//!
//! Nothing here names a path of the machine that lays the job out.

use serde_json::{Map, Value, json};

/// `bin/cpi`. Must run with no arguments, no environment at all and any working
/// directory; `readlink` is needed only where the script itself is linked to.
pub(super) const SCRIPT: &str = r#"#!/bin/sh
# Runs one CPI call: one request on stdin, one response on stdout.
self=$0
[ -h "$self" ] && self=$(PATH=/usr/bin:/bin readlink -f "$self")
case $self in
  */*) job=${self%/*}/.. ;;
  *) job=.. ;;
esac
exec "$job/packages/wasm-cpi/wasm-cpi-run" --config "$job/config/cpi.json"
"#;

pub(super) fn guest(path: &str, sha256: &str) -> Value {
    json!({ "path": path, "sha256": sha256 })
}

/// A configuration to begin with, but for the guest. Paths are relative to the
/// file it is written to.
pub(super) fn config() -> Map<String, Value> {
    let keys = [
        ("version", json!(1)),
        ("guest", json!(null)),
        ("properties", json!({})),
        ("agent", json!({ "mbus": "nats://127.0.0.1:4222", "ntp": [] })),
        ("policy", json!("policy.json")),
        ("cache", json!("../cache")),
    ];
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A preset's name beside the policy.
pub(super) const PRESET: &str = "openstack.json";

/// What the guest's own preset grants, on this machine alone.
pub(super) fn cloud_policy() -> Value {
    json!({
        "version": 1,
        "presets": [{ "file": PRESET, "addresses": ["127.0.0.0/8"], "plain_http": true }],
    })
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

/// Grants nothing.
pub(super) fn policy() -> Value {
    json!({ "version": 1, "http": [] })
}
