//! The services of a cloud, and the backend of a gateway.

use super::message::{Request, Response};
use serde_json::Value;
use std::fmt::Debug;
use std::io::{self, Read};

/// The services of one kind of cloud. A gateway has a port for each.
pub trait Services: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// All services, in the order in which a gateway opens their ports.
    const ALL: &'static [Self];

    /// Host names for which a gateway with TLS has a certificate, besides loopback.
    const HOST_NAMES: &'static [&'static str] = &[];

    /// Returns scheme, host and port of this service in a `cloud.json`.
    fn origin(self, cloud: &Value) -> Option<String>;

    /// Removes the prefix that all paths of this service have.
    fn relative(self, path: &str) -> String;

    /// Returns true if the service uses plain HTTP even behind a gateway with TLS.
    fn is_plain(self) -> bool {
        false
    }

    /// Returns true if responses contain URLs of services, which a gateway replaces.
    fn has_urls(self) -> bool {
        true
    }

    /// Returns the operation of a request to a service whose requests all have the same method and path. `body` is
    /// empty unless the body is a form.
    fn operation(self, _request: &Request, _body: &[u8]) -> Option<String> {
        None
    }

    /// Returns true if a repetition of this operation is a poll.
    fn is_read(self, _operation: &str) -> bool {
        false
    }
}

/// A cloud: a simulator, or real services.
pub trait Backend: Send + Sync {
    type Service: Services;

    /// Answers one request. Reads no more of the body than the answer needs.
    fn answer(&self, service: Self::Service, request: &Request, body: &mut dyn Read) -> io::Result<Response>;

    /// Returns the description of the cloud (`cloud.json`), with its own origins.
    fn cloud(&self) -> Value;
}
