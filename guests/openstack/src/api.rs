//! Typed requests to the services. Each function sends one request and returns the
//! cloud's answer; the callers decide what it means. Requests that are safe to
//! repeat are retried by the SDK.

mod compute;
mod groups;
mod images;
mod loadbalancing;
mod networking;
mod read_ahead;
mod repetition;
mod service;
mod version;
mod volumes;

pub(crate) use compute::{Attachment, Compute, Flavor, Server};
pub(crate) use groups::{Groups, ServerGroup};
pub(crate) use images::Images;
pub(crate) use loadbalancing::{LoadBalancing, Member};
pub(crate) use networking::{FloatingIp, Networking, Port, SecurityGroup};
pub(crate) use read_ahead::ReadAhead;
pub(crate) use repetition::{create_once, may_have_succeeded, request_change, retry_while_busy, with_detail};
pub(crate) use service::Service;
pub(crate) use volumes::{Volume, Volumes};

/// Returns the names of metadata for a log line. Values may be long.
fn names(metadata: &std::collections::BTreeMap<String, String>) -> String {
    metadata.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
