//! How the peer proves who it is: by a login in each process, or by a signature of each
//! request.

use super::recording::Exchange;
use serde_json::{Value, json};
use tests::gateway::{Request, Services};
use tests::{aws, openstack};

pub(super) trait Access<S: Services>: Send + Sync + 'static {
    /// Returns an error if the request is not one of the peer.
    fn check(&self, service: S, request: &Request, body: &[u8]) -> Result<(), String>;

    /// Returns the exchange of a login of the runtime, which the peer repeats at its start. Every login gets its
    /// response.
    fn login(&self) -> Option<&Exchange<S>> {
        None
    }

    /// Returns the keys with which the peer signs.
    fn keys(&self, _cloud: &Value) -> Value {
        Value::Null
    }

    /// Returns the name of a service in signatures.
    fn signing_name(&self, _service: S) -> Option<&'static str> {
        None
    }
}

/// A login at OpenStack. All other requests have its token.
pub(super) struct Login(pub(super) Exchange);

impl Access<openstack::Service> for Login {
    fn check(&self, _service: openstack::Service, request: &Request, _body: &[u8]) -> Result<(), String> {
        match request.header("x-auth-token") == self.0.response.header("x-subject-token") {
            true => Ok(()),
            false => Err("the token is not that of the login".to_owned()),
        }
    }

    fn login(&self) -> Option<&Exchange> {
        Some(&self.0)
    }
}

/// Signatures that this simulated AWS accepts.
pub(super) struct Signatures(pub(super) aws::Simulator);

impl Access<aws::Service> for Signatures {
    fn check(&self, service: aws::Service, request: &Request, body: &[u8]) -> Result<(), String> {
        self.0.check_signature(service, request, body)
    }

    fn keys(&self, cloud: &Value) -> Value {
        json!({"id": cloud["access_key_id"], "secret": cloud["secret_access_key"], "region": cloud["region"]})
    }

    fn signing_name(&self, service: aws::Service) -> Option<&'static str> {
        Some(service.signing_name())
    }
}
