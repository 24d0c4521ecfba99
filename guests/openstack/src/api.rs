//! Typed requests to the four services. Each function is one request and says
//! what the cloud answered; what to do with it is the callers' business. What
//! can be asked twice is retried here, with pauses, as the SDK does it.

mod compute;
mod images;
mod networking;
mod once;
mod service;
mod volumes;

pub(crate) use compute::{Attachment, Compute, Flavor, GROUP_POLICY, Server, ServerGroup};
pub(crate) use images::Images;
pub(crate) use networking::{FloatingIp, Networking, Port, SecurityGroup};
pub(crate) use once::{look, once, patiently, unclear};
pub(crate) use service::Service;
pub(crate) use volumes::{Volume, Volumes};
