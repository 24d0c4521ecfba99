//! The operator's config: an accepted config is complete and in range, and the errors
//! for a refused one show no secret.

use serde_json::{Map, Value};
use std::path::Path;
use wasm_cpi::ConfigSource;
use wasm_cpi::fuzzing::{Config, ConfigFile};

const KEYS: [&str; 20] = [
    "$schema",
    "version",
    "guest",
    "properties",
    "agent",
    "registry",
    "policy",
    "limits",
    "log",
    "audit",
    "http_trace",
    "cache",
    "image_dirs",
    "allow_local",
    "hardening",
    "leaks",
    "keep_tokens",
    "debug",
    "proxy",
    "modules",
];

/// The secret that the seeds use.
const SECRET: &str = "hunter2";

pub(crate) fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let file = ConfigFile::parse(&ConfigSource::new(Path::new("/job/config/cpi.json")), text);
    match file.map_err(|problem| vec![problem]).and_then(Config::parse) {
        Ok(config) => check(&config, text),
        Err(problems) => {
            assert!(!problems.is_empty());
            if let Ok(Value::Object(fields)) = serde_json::from_str(text)
                && secret_is_only_in_secret_values(&fields)
            {
                assert!(!problems.iter().any(|problem| problem.text.contains(SECRET)), "{problems:#?}");
            }
        }
    }
}

fn check(config: &Config, text: &str) {
    let sent: Map<String, Value> = serde_json::from_str(text).expect("a config is a JSON object");
    assert!(sent.keys().all(|key| KEYS.contains(&key.as_str())), "{:?}", sent.keys());
    assert_eq!(sent["version"], 1);
    assert_eq!(sent["guest"]["sha256"], Value::from(config.guest.sha256.as_str()));
    let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    assert!(config.guest.sha256.len() == 64 && config.guest.sha256.bytes().all(digits));
    assert_eq!(config.limits.problems(), Vec::<String>::new());
    assert_eq!(config.properties, sent.get("properties").and_then(Value::as_object).cloned().unwrap_or_default());
    assert_eq!(config.allow_local, sent.get("allow_local") == Some(&Value::Bool(true)));
    assert!((1..=3).contains(&config.api_version));
    assert!(config.warnings().iter().all(|warning| !warning.contains(SECRET) || !no_key_holds_the_secret(&sent)));
    if let Some(registry) = &config.registry {
        let endpoint = registry.endpoint();
        assert!(endpoint.username().is_empty() && endpoint.password().is_none() && endpoint.query().is_none());
    }
}

/// Returns true if only values of the sections for secrets hold the secret.
fn secret_is_only_in_secret_values(fields: &Map<String, Value>) -> bool {
    let sections = ["properties", "agent", "registry", "proxy"];
    let mut elsewhere = fields.iter().filter(|(key, _)| !sections.contains(&key.as_str()));
    let elsewhere = elsewhere.any(|(key, value)| key.contains(SECRET) || value.to_string().contains(SECRET));
    !elsewhere && no_key_holds_the_secret(fields)
}

/// Returns true if no key holds the secret, as messages name keys.
fn no_key_holds_the_secret(fields: &Map<String, Value>) -> bool {
    fn keys(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.iter().all(|(key, value)| !key.contains(SECRET) && keys(value)),
            Value::Array(items) => items.iter().all(keys),
            _ => true,
        }
    }
    fields.iter().all(|(key, value)| !key.contains(SECRET) && keys(value))
}
