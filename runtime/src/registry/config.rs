//! The section `registry` of the operator's config.

use crate::net::tls;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;
use url::Url;
use wasm_cpi_policy::secret::Secret;

/// The registry that the operator configured.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Section")]
pub struct RegistryConfig {
    endpoint: Url,
    user: Secret,
    password: Secret,
    /// A PEM text, or the path of a file with one.
    ca: Option<String>,
    agent_endpoint: Option<Secret>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    endpoint: String,
    user: String,
    password: String,
    ca: Option<String>,
    agent_endpoint: Option<String>,
}

impl TryFrom<Section> for RegistryConfig {
    type Error = &'static str;

    /// Errors name the key only: values may hold credentials.
    fn try_from(section: Section) -> Result<Self, Self::Error> {
        let endpoint = parse(&section.endpoint).ok_or("`endpoint` must be an http:// or https:// URL without query")?;
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err("`endpoint` holds credentials; put them into `user` and `password`");
        }
        if section.user.is_empty() || section.user.contains(':') || section.user.contains(char::is_control) {
            return Err("`user` must not be empty nor hold a colon or control characters");
        }
        if section.password.is_empty() || section.password.contains(char::is_control) {
            return Err("`password` must not be empty nor hold control characters");
        }
        if section.agent_endpoint.as_deref().is_some_and(|endpoint| parse(endpoint).is_none()) {
            return Err("`agent_endpoint` must be an http:// or https:// URL without query");
        }
        Ok(RegistryConfig {
            endpoint,
            user: Secret::new(section.user),
            password: Secret::new(section.password),
            ca: section.ca,
            agent_endpoint: section.agent_endpoint.map(Secret::new),
        })
    }
}

impl RegistryConfig {
    /// Returns the endpoint, which holds no credentials.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Returns the endpoint that Agents use, if it differs from the CPI's.
    pub fn agent_endpoint(&self) -> Option<&Secret> {
        self.agent_endpoint.as_ref()
    }

    pub fn user(&self) -> &Secret {
        &self.user
    }

    pub fn password(&self) -> &Secret {
        &self.password
    }

    pub fn ca(&self) -> Option<&str> {
        self.ca.as_deref()
    }

    /// Resolves the path of the CA file relative to the config's directory.
    pub fn resolve_paths(&mut self, base: &Path) {
        if let Some(ca) = &mut self.ca
            && !tls::is_pem(ca)
        {
            *ca = base.join(&*ca).to_string_lossy().into_owned();
        }
    }

    /// Returns a warning if the registry is not used over https.
    pub fn warnings(&self) -> Vec<String> {
        match self.endpoint.scheme() {
            "https" => Vec::new(),
            _ => vec![
                "`registry.endpoint` is not https://, so agent settings and the registry's password are sent unencrypted; use https://"
                    .into(),
            ],
        }
    }

    /// Returns the `registry` part of the user-data. The Agent reads the credentials from the
    /// endpoint. If the operator configured an endpoint for Agents, they get nothing else.
    pub(crate) fn for_agent(&self) -> serde_json::Value {
        match &self.agent_endpoint {
            Some(endpoint) => serde_json::json!({"endpoint": endpoint.reveal()}),
            None => serde_json::json!({
                "endpoint": self.endpoint_with_credentials(),
                "user": self.user.reveal(),
                "password": self.password.reveal(),
            }),
        }
    }

    /// Returns the values that must be redacted, with their names.
    pub(crate) fn secrets(&self) -> Vec<(&'static str, Secret)> {
        let mut secrets = vec![
            ("registry.password", self.password.clone()),
            ("registry.endpoint", Secret::new(self.endpoint_with_credentials())),
        ];
        if let Some(endpoint) = &self.agent_endpoint
            && parse(endpoint.reveal()).is_some_and(|url| url.password().is_some())
        {
            secrets.push(("registry.agent_endpoint", endpoint.clone()));
        }
        secrets
    }

    fn endpoint_with_credentials(&self) -> String {
        let url = self.endpoint.as_str().trim_end_matches('/');
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        format!("{scheme}://{}:{}@{rest}", percent(self.user.reveal()), percent(self.password.reveal()))
    }
}

/// Parses an endpoint. Like older clients, it reads a host and port without a scheme as `http://`.
fn parse(endpoint: &str) -> Option<Url> {
    let url = if endpoint.contains("://") { Url::parse(endpoint) } else { Url::parse(&format!("http://{endpoint}")) };
    let url = url.ok()?;
    let fine = ["http", "https"].contains(&url.scheme()) && url.query().is_none() && url.fragment().is_none();
    (fine && url.has_host()).then_some(url)
}

/// Encodes all characters except unreserved ones. The encoding of the crate `url` keeps `%`, which
/// a password may contain.
fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn config(section: Value) -> Result<RegistryConfig, String> {
        serde_json::from_value(section).map_err(|error| error.to_string())
    }

    #[test]
    fn an_endpoint_without_scheme_uses_http() {
        for (endpoint, expected) in [
            ("10.0.0.6:25777", "http://10.0.0.6:25777/"),
            ("registry.example", "http://registry.example/"),
            ("https://[::1]:6901/base/", "https://[::1]:6901/base/"),
        ] {
            let config = config(json!({"endpoint": endpoint, "user": "u", "password": "p"})).unwrap();
            assert_eq!(config.endpoint().as_str(), expected);
        }
    }

    #[test]
    fn errors_name_the_key_but_not_its_value() {
        for (key, value, expected) in [
            ("endpoint", "ftp://hunter2", "`endpoint` must be"),
            ("endpoint", "http://hunter2?x", "`endpoint` must be"),
            ("endpoint", "http://u:hunter2@h", "`endpoint` holds credentials"),
            ("endpoint", "", "`endpoint` must be"),
            ("user", "hunter2:", "`user` must"),
            ("password", "", "`password` must"),
            ("password", "hunter2\n", "`password` must"),
            ("agent_endpoint", "hunter2 x", "`agent_endpoint` must be"),
            ("pasword", "hunter2", "unknown field `pasword`"),
        ] {
            let mut section = json!({"endpoint": "http://h", "user": "u", "password": "p"});
            section[key] = json!(value);
            let error = config(section).err().unwrap();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{key}: {error}");
        }
    }

    #[test]
    fn the_endpoint_for_agents_holds_percent_encoded_credentials() {
        let mut section = json!({"endpoint": "http://h:25777/", "user": "u@x", "password": "p%41:/ä"});
        let expected =
            json!({"endpoint": "http://u%40x:p%2541%3A%2F%C3%A4@h:25777", "user": "u@x", "password": "p%41:/ä"});
        assert_eq!(config(section.clone()).unwrap().for_agent(), expected);
        section["agent_endpoint"] = json!("http://10.0.0.6:25777");
        assert_eq!(config(section).unwrap().for_agent(), json!({"endpoint": "http://10.0.0.6:25777"}));
    }

    #[test]
    fn a_ca_path_is_resolved_beside_the_config_and_a_pem_text_is_kept() {
        for (ca, expected) in [("ca.pem", "/job/ca.pem"), ("/ca.pem", "/ca.pem"), ("-----BEGIN X", "-----BEGIN X")] {
            let section = json!({"endpoint": "https://h", "user": "u", "password": "p", "ca": ca});
            let mut config = config(section).unwrap();
            config.resolve_paths(Path::new("/job"));
            assert_eq!((config.ca(), config.warnings().len()), (Some(expected), 0));
        }
    }
}
