//! Which parts of agent settings are secrets of their own, for redaction and
//! for the tripwire: a server that echoes user-data need not echo all of it.
//!
//! Not every string is one: the name of a region, taken for a secret, would
//! have half of a cloud's answers withheld.

use super::VmSpec;
use super::config::AgentConfig;
use serde_json::Value;
use wasm_cpi_policy::secret::Secret;

/// Shorter strings of `env` are words, not keys.
const ENV_MIN: usize = 12;

/// What the Director itself logs of `env`, and guests see.
const VISIBLE: [&str; 3] = ["env.bosh.group", "env.bosh.groups", "env.bosh.tags"];

/// Where something is, rather than how to get in.
const PLACES: [&str; 12] = [
    "blobstore_path",
    "bucket_name",
    "container_name",
    "credentials_source",
    "endpoint",
    "folder_name",
    "host",
    "port",
    "provider",
    "region",
    "storage_account_name",
    "user",
];

pub(super) fn of(config: &AgentConfig, spec: Option<&VmSpec>) -> Vec<(String, Secret)> {
    let mut secrets = Vec::new();
    if let Some(mbus) = &config.mbus
        && mbus.password_in_url().is_some()
    {
        secrets.push(("agent.mbus".into(), mbus.clone()));
    }
    if let Some(options) = config.blobstore.get("options") {
        collect(options, "agent.blobstore.options", 1, &mut secrets);
    }
    if let Some(spec) = spec {
        collect(&spec.env, "env", ENV_MIN, &mut secrets);
    }
    secrets
}

fn collect(value: &Value, path: &str, min: usize, secrets: &mut Vec<(String, Secret)>) {
    if VISIBLE.contains(&path) {
        return;
    }
    match value {
        Value::String(text) if text.len() >= min => secrets.push((path.to_owned(), Secret::new(text.as_str()))),
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, min, secrets)),
        Value::Object(fields) => {
            for (key, value) in fields {
                // A place with a password in it is both.
                let password = || value.as_str().and_then(|url| Secret::new(url).password_in_url());
                if !PLACES.contains(&key.as_str()) || password().is_some() {
                    collect(value, &format!("{path}.{key}"), min, secrets);
                }
            }
        }
        _ => {}
    }
}
