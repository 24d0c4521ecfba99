//! How the peer proves who it is: by a login in each process, or by a signature of each
//! request.

use super::recording::Exchange;
use ::tests::gateway::{Request, Services};
use ::tests::{aws, openstack};
use serde_json::{Value, json};

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

#[cfg(test)]
mod tests {
    use super::super::recording::{Recorder, Replay};
    use super::*;
    use ::tests::gateway::Backend as _;
    use std::sync::Arc;

    #[test]
    fn a_replay_answers_only_requests_that_are_signed_with_the_keys_of_the_cloud() {
        let simulator = aws::Simulator::new();
        let recorder = Recorder::new(simulator.clone());
        let client = aws::Client::new(&recorder.cloud());
        let (ec2, operation) = (aws::Service::Ec2, "DescribeAvailabilityZones");
        let (request, body) = client.form(ec2, operation, &[]);
        assert_eq!(recorder.answer(ec2, &request, &mut body.as_slice()).unwrap().status, 200);
        let exchanges = recorder.take();
        let replay = Replay::new(recorder.cloud(), Arc::new(Signatures(simulator)));
        let wrong_secret = aws::Client { secret_access_key: "other".to_owned(), ..client.clone() };
        let wrong_service = aws::Client { signing_name: Some("sts"), ..client.clone() };
        for (client, status) in [(client, 200), (wrong_secret, 500), (wrong_service, 500)] {
            replay.expect(&exchanges);
            let (request, body) = client.form(ec2, operation, &[]);
            assert_eq!(replay.answer(ec2, &request, &mut body.as_slice()).unwrap().status, status, "{client:?}");
        }
    }
}
