//! The services of a cloud, and what stands behind a gateway.

use super::message::{Request, Response};
use serde_json::Value;
use std::io::{self, Read};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Identity,
    Image,
    Compute,
    Network,
    Volume,
    /// The real cloud has none.
    LoadBalancer,
    Metadata,
}

/// A cloud: the simulator, or real services somewhere.
pub trait Backend: Send + Sync {
    /// Answers one request, whose body is read no further than the answer needs.
    fn answer(&self, service: Service, request: &Request, body: &mut dyn Read) -> io::Result<Response>;

    /// What the cloud says of itself, its URLs under its own origins.
    fn cloud(&self) -> Value;
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

    /// The URL of this service in a `cloud.json`.
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

    /// Scheme, host and port of that URL.
    pub(super) fn origin(self, cloud: &Value) -> Option<String> {
        let url = self.url(cloud)?;
        let (scheme, rest) = url.split_once("://")?;
        Some(format!("{scheme}://{}", rest.split('/').next()?))
    }

    /// A path without what all paths of this service begin with: `/servers`
    /// rather than `/v2.1/servers`.
    pub fn relative(self, path: &str) -> String {
        let skipped = match self {
            Service::Identity | Service::Image | Service::Network | Service::LoadBalancer => 1,
            // Old clients put the project behind the version, and Cinder's catalog does.
            Service::Compute | Service::Volume => {
                let second = path.split('/').nth(2).unwrap_or_default();
                if second.len() == 32 && second.bytes().all(|byte| byte.is_ascii_hexdigit()) { 2 } else { 1 }
            }
            Service::Metadata => 0,
        };
        path.split('/').skip(1 + skipped).fold(String::new(), |path, part| path + "/" + part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_what_all_of_a_service_begin_with() {
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
