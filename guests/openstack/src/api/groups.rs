//! Nova's server groups. Only they need a newer microversion than the first one,
//! so only this module asks Nova which versions it has.

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_cpi_sdk::http::{self, Request, RequestError, segment};
use wasm_cpi_sdk::{Error, log};

use super::Compute;
use super::version::{self, Document, Version};

/// The path of the document with the versions.
const ROOT: &str = "/";

pub(crate) const GROUP_POLICY: &str = "soft-anti-affinity";

/// From the first version that has the policy to the version that replaced the list of policies
/// by a single policy.
const SUPPORTED: (Version, Version) = (Version(2, 15), SINGLE_POLICY);
const SINGLE_POLICY: Version = Version(2, 64);

#[derive(Debug, Deserialize)]
pub(crate) struct ServerGroup {
    pub(crate) id: String,
    name: String,
    #[serde(default)]
    policies: Vec<String>,
    policy: Option<String>,
    /// The IDs of the servers in the group.
    #[serde(default)]
    pub(crate) members: Vec<String>,
}

impl ServerGroup {
    /// Returns true if the group places its servers on different hosts.
    fn has_anti_affinity(&self) -> bool {
        self.policies.iter().chain(&self.policy).any(|policy| policy == GROUP_POLICY)
    }
}

#[derive(Deserialize)]
struct Many {
    server_groups: Vec<ServerGroup>,
}

#[derive(Deserialize)]
struct One {
    server_group: ServerGroup,
}

/// The server groups, at the version that this Nova has.
pub(crate) struct Groups<'c> {
    compute: &'c Compute,
    version: Version,
}

impl Compute {
    pub(crate) fn groups(&self) -> Result<Groups<'_>, Error> {
        let root = self.0.send(http::get(self.0.url(ROOT)))?;
        // A URL with a project in it has no version document. Then Nova rejects what it does not support.
        let document = if root.status < 500 { root.json::<Document>().ok() } else { Some(root.ok()?.json()?) };
        let version = match document {
            Some(document) => version::newest_common(&document, SUPPORTED).map_err(Error::cloud)?,
            None => SUPPORTED.0,
        };
        log::debug(format_args!("using version {version} of the compute API for server groups"));
        Ok(Groups { compute: self, version })
    }
}

impl Compute {
    /// Returns the first request of [`Self::groups`], to read it ahead.
    pub(crate) fn versions_request(&self) -> Option<Request> {
        Some(http::get(self.0.url(ROOT)))
    }
}

impl Groups<'_> {
    fn with_version(&self, request: Request) -> Request {
        request.header("openstack-api-version", format!("compute {}", self.version))
    }

    /// Returns all groups with this name that place their servers on different hosts.
    pub(crate) fn named(&self, name: &str) -> Result<Vec<ServerGroup>, RequestError> {
        self.named_until(name, |_| false)
    }

    /// Returns the same groups, or only those of the first pages if one of them has members.
    pub(crate) fn named_until_used(&self, name: &str) -> Result<Vec<ServerGroup>, RequestError> {
        self.named_until(name, |found| found.iter().any(|group| !group.members.is_empty()))
    }

    /// Reads further pages until one is empty or repeats the page before, or until what was found
    /// is enough.
    fn named_until(
        &self,
        name: &str,
        is_enough: impl Fn(&[ServerGroup]) -> bool,
    ) -> Result<Vec<ServerGroup>, RequestError> {
        let (mut before, mut first): (usize, Option<String>) = (0, None);
        let mut found = vec![];
        loop {
            let mut list = http::get(self.compute.0.url("/os-server-groups"));
            if before > 0 {
                list = list.query("offset", &before.to_string());
            }
            let page = self.compute.0.read::<Many>(self.with_version(list))?.server_groups;
            if page.first().is_none_or(|group| first.as_ref() == Some(&group.id)) {
                return Ok(found);
            }
            before += page.len();
            first = page.first().map(|group| group.id.clone());
            found.extend(page.into_iter().filter(|group| group.name == name && group.has_anti_affinity()));
            if is_enough(&found) {
                return Ok(found);
            }
        }
    }

    pub(crate) fn create(&self, name: &str) -> Result<ServerGroup, RequestError> {
        let group: Value = if self.version >= SINGLE_POLICY {
            json!({"name": name, "policy": GROUP_POLICY})
        } else {
            json!({"name": name, "policies": [GROUP_POLICY]})
        };
        let create = http::post(self.compute.0.url("/os-server-groups")).json(&json!({"server_group": group}));
        let made = self.compute.0.read::<One>(self.with_version(create))?.server_group;
        log::info(format_args!("created server group {} ({name})", made.id));
        Ok(made)
    }

    pub(crate) fn delete(&self, id: &str) -> Result<bool, RequestError> {
        self.compute.0.delete(&format!("/os-server-groups/{}", segment(id)), format_args!("server group {id}"))
    }
}
