//! Keys of properties and of an assumed role sign the life of a VM and a disk, on the simulator and on moto.

use super::moto::Moto;
use super::signed_guest::{Keys, job, requests_for_keys, run_lifecycle, settings_in};
use serde_json::Value;
use tests::audit;
use tests::aws::{Gateway, Rule, Service, Simulator, service_error};
use tests::cloud::{answered, outcomes};

/// The keys that need no metadata service, and the requests for keys in all calls of a lifecycle.
const KINDS: [(Keys, &[&str]); 3] = [(Keys::Static, &[]), (Keys::Session, &[]), (Keys::Role, &["POST 200"])];

#[test]
fn keys_of_properties_and_of_a_role_sign_a_lifecycle_on_the_simulator() {
    for (keys, requests) in KINDS {
        let gateway = Gateway::secure(Simulator::new());
        let cloud = gateway.cloud();
        let job = job(&cloud, keys);
        expect_no_keys(&run_lifecycle(&job, &cloud), &cloud);
        assert_eq!(requests_for_keys(&job), requests, "{keys:?}");
        let launches: Vec<Value> = gateway
            .records()
            .iter()
            .filter(|record| record.line().starts_with("RunInstances"))
            .map(|record| settings_in(&record.body))
            .collect();
        assert_eq!(launches.len(), 1);
        assert_eq!(launches[0]["agent_id"], "agent-1", "{keys:?}");
        let named: Vec<Value> = audit::about(&job, "http")
            .iter()
            .map(|line| line["api_operation"].clone())
            .filter(|name| name == "RunInstances")
            .collect();
        assert_eq!(named.len(), 1, "{keys:?}");
    }
}

#[test]
fn keys_of_properties_and_of_a_role_sign_a_lifecycle_on_moto() {
    let Some(moto) = Moto::start() else { return };
    for (keys, requests) in KINDS {
        let job = job(&moto.cloud, keys);
        expect_no_keys(&run_lifecycle(&job, &moto.cloud), &moto.cloud);
        assert_eq!(requests_for_keys(&job), requests, "{keys:?}");
    }
}

#[test]
fn a_cloud_whose_clock_differs_gets_signatures_of_its_time() {
    for (keys, ahead) in [(Keys::Static, 3600), (Keys::Static, -3600), (Keys::Role, 1800)] {
        let simulator = Simulator::new();
        let gateway = Gateway::secure(simulator.clone());
        let cloud = gateway.cloud();
        simulator.set_clock_ahead(ahead);
        run_lifecycle(&job(&cloud, keys), &cloud);
    }
}

#[test]
fn wrong_keys_are_refused_and_the_guest_does_not_see_what_was_signed() {
    let gateway = Gateway::secure(Simulator::new());
    let cloud = gateway.cloud();
    let job = job(&cloud, Keys::Static).configure(|config| {
        config["properties"]["secret_access_key"] = "another-key-than-the-one-of-the-cloud".into();
    });
    let form = serde_json::json!([{
        "op": "http", "method": "POST", "url": format!("{}/", Service::Ec2.origin(&cloud).unwrap_or_default()),
        "headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body": "Action=DescribeVolumes&Version=2016-11-15",
    }]);
    let outcome = outcomes(&job, &form).remove(0);
    let body = answered(&outcome, 401)["body"].to_string();
    assert!(body.contains("AuthFailure") && !body.contains("x-amz-"), "{body}");
    // A service that quotes the canonical request.
    let quoted = "The canonical request should have been POST / host;x-amz-date";
    gateway.inject(
        Rule::operation(Service::Ec2, "DescribeVolumes"),
        service_error(Service::Ec2, 403, "SignatureDoesNotMatch", quoted),
    );
    let outcome = outcomes(&job, &form).remove(0);
    let body = answered(&outcome, 403)["body"].to_string();
    assert!(body.contains("SignatureDoesNotMatch") && !body.contains("canonical request"), "{body}");
}

/// Fails if the guest saw the secret key of the cloud.
fn expect_no_keys(seen: &[String], cloud: &Value) {
    let secret = cloud["secret_access_key"].as_str().unwrap_or_default();
    assert!(!secret.is_empty() && seen.iter().all(|seen| !seen.contains(secret)), "the guest saw the secret key");
}
