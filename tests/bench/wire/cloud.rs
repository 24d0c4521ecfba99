//! A cloud with TLS behind links, one link for each service.

use super::link::Link;
use serde_json::Value;
use tests::openstack::{Backend, Gateway, Service};

pub(super) struct WireCloud {
    gateway: Gateway,
    links: Vec<Link>,
}

impl WireCloud {
    pub(super) fn new(backend: impl Backend<Service = Service> + 'static) -> WireCloud {
        let mut links = Vec::new();
        let gateway = Gateway::secure_behind(backend, |server| {
            let link = Link::to(server);
            let front = link.address();
            links.push(link);
            front
        });
        WireCloud { gateway, links }
    }

    /// Returns the description of the cloud, with the addresses of the links.
    pub(super) fn description(&self) -> Value {
        self.gateway.cloud()
    }

    /// Returns the number of connections since the start.
    pub(super) fn connections(&self) -> usize {
        self.links.iter().map(Link::connections).sum()
    }
}
