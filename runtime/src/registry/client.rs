//! The client of the registry's HTTP API, in both existing dialects: that of the Ruby bosh-registry
//! and that of the Go CLI.
//!
//! Only answers of the configured endpoint are accepted, and their size is bounded. Errors name the
//! endpoint and the remedy, never credentials or settings.

use super::config::RegistryConfig;
use super::settings::{self, MAX_VALUES, Part};
use crate::failure::{Failure, Who};
use crate::limits::{Limits, NamedLimit};
use crate::net::client::{HostClient, HostRequest};
use crate::net::error::HttpErrorKind;
use serde_json::{Map, Value};
use std::time::Instant;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::strict_json;

/// The limit for the size of settings.
const LIMIT: &str = "registry_kib";

/// The deepest nesting of settings. Anyone with the registry's password can store any JSON.
const MAX_DEPTH: usize = 64;

/// The factor by which settings can be longer as JSON within JSON: a registry may write any byte of them
/// as `\u003c`.
const LONGEST_ESCAPE: u64 = 6;

/// A client of the configured registry.
pub struct RegistryClient {
    http: HostClient,
    endpoint: String,
    user: Secret,
    password: Secret,
    max_kib: u64,
}

impl RegistryClient {
    pub fn new(config: &RegistryConfig, limits: &Limits) -> Result<Self, Failure> {
        Ok(RegistryClient {
            http: HostClient::new("registry.ca", config.ca(), limits)?,
            endpoint: config.endpoint().as_str().trim_end_matches('/').to_owned(),
            user: config.user().clone(),
            password: config.password().clone(),
            max_kib: limits.registry_kib,
        })
    }

    /// Returns the settings, or `None` if the registry has none for the ID.
    pub async fn get(&self, id: &str, deadline: Instant) -> Result<Option<Map<String, Value>>, Failure> {
        let (status, body) = self.request("GET", id, None, deadline).await?;
        match status {
            404 => Ok(None),
            200 => self.settings_in(id, &body).map(Some),
            _ => Err(self.refusal("GET", id, status)),
        }
    }

    /// Stores settings, and replaces those that exist.
    pub async fn put(&self, id: &str, settings: &Map<String, Value>, deadline: Instant) -> Result<(), Failure> {
        let body = self.encode(id, settings)?;
        match self.request("PUT", id, Some(body), deadline).await?.0 {
            200..=299 => Ok(()),
            status => Err(self.refusal("PUT", id, status)),
        }
    }

    /// Deletes settings. Succeeds if there are none.
    pub async fn delete(&self, id: &str, deadline: Instant) -> Result<(), Failure> {
        match self.request("DELETE", id, None, deadline).await?.0 {
            200..=299 | 404 => Ok(()),
            status => Err(self.refusal("DELETE", id, status)),
        }
    }

    /// Returns the text that `put` sends, unless it is too large.
    pub fn encode(&self, id: &str, settings: &Map<String, Value>) -> Result<Vec<u8>, Failure> {
        let text = serde_json::to_vec(settings)
            .map_err(|error| Failure::runtime(format!("settings of `{id}` cannot be written as JSON: {error}")))?;
        self.check_parts(id, settings, 0)?;
        Ok(text)
    }

    /// Fails if settings exceed the limit `registry_kib`, with `room` for what a guest adds. The
    /// parts that guests change are compared alone, and so is the rest: a guest that adds to its
    /// part until the limit is reached learns nothing about the secrets in the rest.
    pub fn check_parts(&self, id: &str, settings: &Map<String, Value>, room: usize) -> Result<(), Failure> {
        Part::ALL.into_iter().try_for_each(|part| self.check_size(id, settings::size(settings, part) + room))
    }

    /// Fails if settings of this size exceed the limit `registry_kib`.
    pub fn check_size(&self, id: &str, bytes: usize) -> Result<(), Failure> {
        if bytes as u64 > self.max_kib * 1024 { Err(self.too_large(id)) } else { Ok(()) }
    }

    async fn request(
        &self,
        method: &str,
        id: &str,
        body: Option<Vec<u8>>,
        deadline: Instant,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let invalid = |error: InvalidId| Failure::guest(error.to_string()).refused_by(Check::RegistryIdForm);
        check_id(id).map_err(invalid)?;
        let url = format!("{}/instances/{id}/settings", self.endpoint);
        let basic = Some((self.user.reveal(), &self.password));
        // There are two parts, each with the limit's size. The registry decides how it escapes them: parts
        // within their limits must be read whatever it does, or a guest could measure the other part.
        let max_body_bytes = self.max_kib * 1024 * Part::ALL.len() as u64 * LONGEST_ESCAPE + 1024;
        let body_limit = NamedLimit { name: LIMIT, value: self.max_kib };
        let request = HostRequest { method, url: &url, basic, body, deadline, max_body_bytes, body_limit };
        self.http.request(request).await.map_err(|error| match error.kind {
            HttpErrorKind::Limit(LIMIT) => self.too_large(id),
            _ => {
                let failure = self.failure(&format!(
                    "did not answer {method} for `{id}`: {}; check that it runs and that `registry` in the CPI's \
                     config is correct",
                    error.explained()
                ));
                Failure { check: error.check, ..failure }
            }
        })
    }

    fn settings_in(&self, id: &str, body: &[u8]) -> Result<Map<String, Value>, Failure> {
        let text = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|answer| Some(answer.get("settings")?.as_str()?.to_owned()));
        let text = text.ok_or_else(|| {
            self.failure(&format!(
                "answered GET for `{id}` with something other than settings; check that `registry.endpoint` is a BOSH \
                 registry"
            ))
        })?;
        match strict_json::parse(&text, MAX_DEPTH) {
            Ok(Value::Object(settings)) => {
                let few = Part::ALL.iter().all(|part| settings::values(&settings, *part) <= MAX_VALUES);
                Check::RegistryValues.ensure(few, || {
                    let what = format!("with more than {MAX_VALUES} values");
                    self.failure(&format!("holds settings for `{id}` {what}; fix or delete them"))
                })?;
                self.check_parts(id, &settings, 0)?;
                Ok(settings)
            }
            parsed => {
                let what = "that are not a JSON object";
                let failure = self.failure(&format!("holds settings for `{id}` {what}; fix or delete them"));
                Err(Failure { check: parsed.err().and_then(|error| error.check()), ..failure })
            }
        }
    }

    fn refusal(&self, method: &str, id: &str, status: u16) -> Failure {
        let what_to_do = match status {
            401 | 403 => "check `registry.user` and `registry.password` in the CPI's config",
            300..=399 => "set `registry.endpoint` in the CPI's config to the URL that it redirects to",
            404 => "check the path in `registry.endpoint` in the CPI's config",
            _ => "read the registry's log",
        };
        self.failure(&format!("answered {method} for `{id}` with HTTP {status}; {what_to_do}"))
    }

    fn too_large(&self, id: &str) -> Failure {
        Failure::limit("registry_kib", self.max_kib, format!("registry {}: the settings of `{id}`", self.endpoint))
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(Who::Iaas, format!("registry {} {what}", self.endpoint))
    }
}

/// The ID cannot be a part of a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a registry ID must be 1 to 255 characters out of A-Z, a-z, 0-9 and `._:-`")]
pub struct InvalidId;

/// Rejects IDs that would change the path of the URL.
pub fn check_id(id: &str) -> Result<(), InvalidId> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let is_id = (1..=255).contains(&id.len()) && id.bytes().all(fine) && id != "." && id != "..";
    if Check::RegistryIdForm.accepts(is_id) { Ok(()) } else { Err(InvalidId) }
}

#[cfg(test)]
mod tests;
