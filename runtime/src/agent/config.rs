//! The section `agent` of the operator's config. All of it is secret.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt;
use wasm_cpi_policy::secret::Secret;

/// The section `agent` of the config: what every VM's Agent gets.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    #[serde(deserialize_with = "secret")]
    pub(super) mbus: Option<Secret>,
    pub(super) ntp: Vec<String>,
    /// `provider` and `options`, as the Agent reads them.
    pub(super) blobstore: Map<String, Value>,
}

impl fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentConfig(<redacted>)")
    }
}

impl AgentConfig {
    /// Returns the URLs that Agents use and no guest may use, each with a description.
    pub fn endpoints(&self) -> Vec<(&'static str, String)> {
        let mut endpoints: Vec<_> =
            self.mbus.iter().map(|mbus| ("the message bus", mbus.reveal().to_owned())).collect();
        endpoints.extend(self.blobstore.get("options").into_iter().flat_map(blobstore));
        endpoints
    }

    /// Returns a warning for each credential that all VMs share. A VM can read its own settings, so
    /// they should give access to nothing but that VM.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.mbus.as_ref().is_some_and(|mbus| mbus.credential_in_url().is_some()) {
            warnings.push(
                "`agent.mbus` holds a password that every VM gets; let the Director give each Agent its own certificate \
                 (`env.bosh.mbus`), and leave the password out"
                    .into(),
            );
        }
        let options = self.blobstore.get("options").and_then(Value::as_object);
        // Wider than `is_credential_name`, because this is only a warning.
        let sensitive = ["password", "secret", "token", "key", "credential"];
        let credential = options.into_iter().flat_map(Map::keys).find(|name| {
            let name = name.to_lowercase();
            sensitive.iter().any(|word| name.contains(word))
        });
        if let Some(name) = credential {
            warnings.push(format!(
                "`agent.blobstore.options.{name}` is a credential that every VM gets; use signed URLs, and leave it out"
            ));
        }
        warnings
    }
}

/// Returns the same URLs from a VM's `env`, where newer Directors put them.
pub fn endpoints_of_env(env: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let Some(bosh) = env.get("bosh") else { return Vec::new() };
    let urls = bosh.pointer("/mbus/urls").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let stores = bosh.get("blobstores").and_then(Value::as_array).into_iter().flatten();
    let blobstores = stores.filter_map(|store| store.get("options")).flat_map(blobstore);
    urls.map(|url| ("the message bus", url.to_owned())).chain(blobstores).collect()
}

fn blobstore(options: &Value) -> Vec<(&'static str, String)> {
    let Some(options) = options.as_object() else { return Vec::new() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // Other options count only if they are URLs: a password must not be looked up as a host name.
    let url = |(name, value): (&String, &Value)| {
        value.as_str().filter(|text| name == "endpoint" || text.contains("://")).map(str::to_owned)
    };
    let mut urls: Vec<String> = options.iter().filter_map(url).collect();
    if let Some(host) = options.get("host") {
        let port = options.get("port").map_or_else(|| "443".to_owned(), text);
        urls.push(format!("https://{}:{port}", text(host)));
    }
    // Options of old blobstores are `host:port` without a scheme.
    let with_scheme = |url: String| if url.contains("://") { url } else { format!("https://{url}") };
    urls.into_iter().map(|url| ("the blobstore", with_scheme(url))).collect()
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(Secret::new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(section: Value) -> AgentConfig {
        serde_json::from_value(section).unwrap()
    }

    #[test]
    fn debug_shows_nothing() {
        let config =
            config(json!({"mbus": "nats://u:hunter2@h:4222", "blobstore": {"options": {"password": "hunter2"}}}));
        assert_eq!(format!("{config:?}"), "AgentConfig(<redacted>)");
    }

    #[test]
    fn credentials_that_all_vms_share_are_a_warning() {
        for (section, expected) in [
            (json!({}), ""),
            (json!({"mbus": null, "ntp": ["a"]}), ""),
            (
                json!({"mbus": "nats://10.0.0.6:4222", "blobstore": {"provider": "dav", "options": {"endpoint": "x"}}}),
                "",
            ),
            (json!({"mbus": "nats://u:hunter2@h:4222"}), "`agent.mbus` holds a password"),
            (
                json!({"blobstore": {"options": {"secret_access_key": "hunter2"}}}),
                "`agent.blobstore.options.secret_access_key`",
            ),
        ] {
            let warnings = config(section).warnings().join("\n");
            assert!(warnings.contains(expected) && warnings.is_empty() == expected.is_empty(), "{warnings}");
            assert!(!warnings.contains("hunter2"));
        }
    }

    #[test]
    fn endpoints_are_those_of_message_bus_and_blobstore() {
        let section = json!({"mbus": "nats://h:4222", "blobstore": {"options": {"endpoint": "http://b"}}});
        let expected = [("the message bus", "nats://h:4222"), ("the blobstore", "http://b")];
        let endpoints = config(section).endpoints();
        let endpoints: Vec<_> = endpoints.iter().map(|(what, url)| (*what, url.as_str())).collect();
        assert_eq!(endpoints, expected);
        let host_and_port = config(json!({"blobstore": {"options": {"host": "10.0.0.9", "port": 25250}}})).endpoints();
        assert!(host_and_port.contains(&("the blobstore", "https://10.0.0.9:25250".to_owned())));
        let without_scheme = config(json!({"blobstore": {"options": {"endpoint": "10.0.0.9:25250"}}})).endpoints();
        assert_eq!(without_scheme, [("the blobstore", "https://10.0.0.9:25250".to_owned())]);
        assert!(config(json!({"blobstore": {"options": {"endpoint": 1}}})).endpoints().is_empty());
        // Endpoints are looked up in DNS, so an option that may be a secret is not one of them.
        let options = json!({"endpoint": "http://b", "user": "agent", "password": "k3x9", "other": "https://c"});
        let urls: Vec<String> = blobstore(&options).into_iter().map(|(_, url)| url).collect();
        assert_eq!(urls, ["http://b", "https://c"]);
        let env = json!({"bosh": {"mbus": {"urls": ["nats://h:4222"]}, "blobstores": [{"options": {"endpoint": "http://b"}}, 7]}});
        assert_eq!(endpoints_of_env(env.as_object().unwrap()), expected.map(|(what, url)| (what, url.to_owned())));
        assert_eq!(endpoints_of_env(&Map::new()), []);
    }

    #[test]
    fn unknown_keys_are_errors() {
        assert!(serde_json::from_value::<AgentConfig>(json!({"nats": "x"})).is_err());
    }
}
