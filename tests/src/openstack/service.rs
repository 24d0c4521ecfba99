//! The services of an OpenStack.

use crate::gateway::Services;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Identity,
    Image,
    Compute,
    Network,
    Volume,
    /// Not available in the real cloud.
    LoadBalancer,
    Metadata,
}

impl Service {
    pub const ALL: [Service; 7] = [
        Service::Identity,
        Service::Image,
        Service::Compute,
        Service::Network,
        Service::Volume,
        Service::LoadBalancer,
        Service::Metadata,
    ];

    /// Returns the URL of this service in a `cloud.json`.
    pub(super) fn url(self, cloud: &Value) -> Option<&str> {
        match self {
            Service::Identity => cloud["auth_url"].as_str(),
            Service::Image => cloud["endpoints"]["image"].as_str(),
            Service::Compute => cloud["endpoints"]["compute"].as_str(),
            Service::Network => cloud["endpoints"]["network"].as_str(),
            Service::Volume => cloud["endpoints"]["volume"].as_str(),
            Service::LoadBalancer => cloud["endpoints"]["loadbalancer"].as_str(),
            Service::Metadata => cloud["metadata_url"].as_str(),
        }
    }

    /// Returns scheme, host and port of that URL.
    pub fn origin(self, cloud: &Value) -> Option<String> {
        let url = self.url(cloud)?;
        let (scheme, rest) = url.split_once("://")?;
        Some(format!("{scheme}://{}", rest.split('/').next()?))
    }

    /// Removes the prefix that all paths of this service have: `/v2.1/servers` becomes
    /// `/servers`.
    pub fn relative(self, path: &str) -> String {
        let skipped = match self {
            Service::Identity | Service::Image | Service::Network | Service::LoadBalancer => 1,
            // Old clients and Cinder's catalog put the project after the version.
            Service::Compute | Service::Volume => {
                let second = path.split('/').nth(2).unwrap_or_default();
                if second.len() == 32 && second.bytes().all(|byte| byte.is_ascii_hexdigit()) { 2 } else { 1 }
            }
            Service::Metadata => 0,
        };
        path.split('/').skip(1 + skipped).fold(String::new(), |path, part| path + "/" + part)
    }
}

impl Services for Service {
    const ALL: &'static [Service] = &Service::ALL;

    fn origin(self, cloud: &Value) -> Option<String> {
        Service::origin(self, cloud)
    }

    fn relative(self, path: &str) -> String {
        Service::relative(self, path)
    }

    /// User-data may contain URLs, which belong to the user.
    fn has_urls(self) -> bool {
        self != Service::Metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_service_is_removed_from_paths() {
        let project = "0123456789abcdef0123456789abcdef";
        for (service, path, relative) in [
            (Service::Identity, "/v3/auth/tokens", "/auth/tokens"),
            (Service::Identity, "/v3", ""),
            (Service::Image, "/v2/images/a/file", "/images/a/file"),
            (Service::Compute, "/v2.1/servers", "/servers"),
            (Service::Compute, "/v2.1/", "/"),
            (Service::Compute, &format!("/v2.1/{project}/servers"), "/servers"),
            (Service::Network, "/v2.0/ports/a", "/ports/a"),
            (Service::Volume, &format!("/v3/{project}/volumes/a/action"), "/volumes/a/action"),
            (Service::Volume, "/v3/volumes", "/volumes"),
            (Service::Metadata, "/openstack/latest/user_data", "/openstack/latest/user_data"),
        ] {
            assert_eq!(service.relative(path), relative, "{path}");
        }
    }
}
