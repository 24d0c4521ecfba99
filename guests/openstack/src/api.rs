//! Typed requests to the services. Each function is one request and says
//! what the cloud answered; what to do with it is the callers' business. What
//! can be asked twice is retried here, with pauses, as the SDK does it.

mod compute;
mod groups;
mod images;
mod loadbalancing;
mod networking;
mod once;
mod service;
mod version;
mod volumes;

pub(crate) use compute::{Attachment, Compute, Flavor, Server};
pub(crate) use groups::ServerGroup;
pub(crate) use images::Images;
pub(crate) use loadbalancing::{LoadBalancing, Member};
pub(crate) use networking::{FloatingIp, Networking, Port, SecurityGroup};
pub(crate) use once::{insist, once, patiently, unclear, with};
pub(crate) use service::Service;
pub(crate) use volumes::{Volume, Volumes};
