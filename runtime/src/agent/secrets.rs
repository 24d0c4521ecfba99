//! Finds the parts of agent settings that are secrets, for redaction and for the search in answers:
//! a server may echo only a part of the user-data.
//!
//! Not every string is a secret. If the name of a region were one, most answers of a cloud would be
//! withheld.

use super::VmSpec;
use super::config::AgentConfig;
use serde_json::Value;
use wasm_cpi_policy::is_credential_name;
use wasm_cpi_policy::secret::Secret;

/// The length from which a string or a number in `env` counts as a secret. Shorter ones are usually plain
/// words, unless their name is that of a credential.
const ENV_MIN: usize = 12;

/// The keys of `env.bosh` that the Director logs and guests can read.
pub const VISIBLE_ENV: [&str; 3] = ["group", "groups", "tags"];

/// Options that name a location, not a credential.
const LOCATIONS: [&str; 12] = [
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

/// Returns the secrets in the config and in the VM's `env`, each with its path as name.
pub(super) fn find(config: &AgentConfig, spec: Option<&VmSpec>) -> Vec<(String, Secret)> {
    let mut secrets = Vec::new();
    if let Some(mbus) = &config.mbus
        && mbus.credential_in_url().is_some()
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
    if path.strip_prefix("env.bosh.").is_some_and(|key| VISIBLE_ENV.contains(&key)) {
        return;
    }
    let mut add = |text: &str| {
        if text.len() >= min || is_credential_name(path) {
            secrets.push((path.to_owned(), Secret::new(text)));
        }
    };
    match value {
        Value::String(text) => add(text),
        // YAML makes a number of a password that consists of digits.
        Value::Number(number) => add(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, min, secrets)),
        Value::Object(fields) => {
            for (key, value) in fields {
                // A location may hold a credential in its URL.
                let credential = || value.as_str().and_then(|url| Secret::new(url).credential_in_url());
                if !LOCATIONS.contains(&key.as_str()) || credential().is_some() {
                    collect(value, &format!("{path}.{key}"), min, secrets);
                }
            }
        }
        _ => {}
    }
}
