//! A cloud with TLS behind links, one link for each service.

use super::link::Link;
use serde_json::Value;
use tests::gateway::{Backend, Gateway, Services};
use tests::openstack::Service;

pub(super) struct WireCloud<S = Service> {
    gateway: Gateway<S>,
    links: Vec<Link>,
}

impl<S: Services> WireCloud<S> {
    pub(super) fn new(backend: impl Backend<Service = S> + 'static) -> WireCloud<S> {
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
