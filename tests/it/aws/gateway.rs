//! The simulator behind a gateway: TLS, faults and records by operation.

use serde_json::Value;
use std::time::Duration;
use tests::aws::{Client, Gateway, Rule, Service, Simulator, element, service_error, throttled};
use tests::gateway::{Fault, Response};

use Service::{Ebs, Ec2, Metadata, Sts};

fn status(response: &Response) -> (u16, Option<String>) {
    (response.status, element(response, "Code"))
}

#[test]
fn every_service_has_its_port_and_only_metadata_has_no_tls() {
    let cloud = Gateway::secure(Simulator::new()).cloud();
    for service in Service::ALL {
        let origin = service.origin(&cloud).unwrap_or_default();
        let scheme = if service == Metadata { "http://127.0.0.1:" } else { "https://127.0.0.1:" };
        assert!(origin.starts_with(scheme), "{service:?}: {origin}");
    }
    let client = Client::new(&cloud);
    let identity = client.call(Sts, "GetCallerIdentity", &[]);
    assert_eq!(element(&identity, "Account").as_deref(), cloud["account"].as_str());
    assert_eq!(client.call(Ec2, "DescribeSubnets", &[]).status, 200);
    let mut other = client.clone();
    other.cloud["ca"] = Gateway::secure(Simulator::new()).cloud()["ca"].clone();
    let (request, body) = other.form(Ec2, "DescribeSubnets", &[]);
    assert!(other.send(Ec2, &request, &body).is_err(), "another authority is not trusted");
}

#[test]
fn a_fault_affects_only_its_operation() {
    let gateway = Gateway::start(Simulator::new());
    let client = Client::new(&gateway.cloud());
    let hits = gateway.inject(Rule::operation(Ec2, "DescribeVolumes").nth(2).times(2), throttled(Ec2));
    let mut seen = Vec::new();
    for operation in ["DescribeVolumes", "DescribeSubnets", "DescribeVolumes", "DescribeVolumes", "DescribeVolumes"] {
        seen.push(client.call(Ec2, operation, &[]).status);
    }
    assert_eq!((seen, hits.count()), (vec![200, 200, 503, 503, 200], 2));
    gateway.clear_faults();
    for (service, operation, fault, expected) in [
        (Ec2, "DescribeVolumes", throttled(Ec2), (503, "RequestLimitExceeded")),
        (Sts, "GetCallerIdentity", throttled(Sts), (400, "Throttling")),
        (
            Ec2,
            "RunInstances",
            service_error(Ec2, 500, "InsufficientInstanceCapacity", "We do not have capacity."),
            (500, "InsufficientInstanceCapacity"),
        ),
    ] {
        gateway.inject(Rule::operation(service, operation), fault);
        let answer = client.call(service, operation, &[]);
        assert_eq!(status(&answer), (expected.0, Some(expected.1.to_owned())), "{operation}");
    }
}

#[test]
fn a_lost_answer_does_not_undo_the_operation_and_its_token_finds_the_resource() {
    let gateway = Gateway::start(Simulator::new());
    let client = Client::new(&gateway.cloud());
    let parameters = [("AvailabilityZone", "us-east-1a"), ("Size", "1"), ("ClientToken", "t-1")];
    let (request, body) = client.form(Ec2, "CreateVolume", &parameters);
    gateway.inject(Rule::operation(Ec2, "CreateVolume"), Fault::ResetAfter);
    assert!(client.send(Ec2, &request, &body).is_err());
    let id = element(&client.call(Ec2, "CreateVolume", &parameters), "volumeId").unwrap_or_default();
    let listed = client.call(Ec2, "DescribeVolumes", &[]);
    assert_eq!(String::from_utf8_lossy(&listed.body).matches("<volumeId>").count(), 1);
    assert_eq!(element(&listed, "volumeId"), Some(id));
}

#[test]
fn requests_are_recorded_with_their_operation_and_form() {
    let gateway = Gateway::start(Simulator::new());
    let client = Client::new(&gateway.cloud());
    client.call(Ec2, "DescribeVolumes", &[("VolumeId.1", "vol-0123456789abcdef0")]);
    let request = client.signed(Ebs, "GET", "/snapshots/snap-0123456789abcdef0/blocks", &[], b"");
    let answer = client.send(Ebs, &request, b"");
    assert_eq!(answer.ok().map(|answer| answer.status), Some(404));
    let records = gateway.records();
    let lines: Vec<String> = records.iter().map(tests::gateway::RecordedRequest::line).collect();
    assert_eq!(lines, ["DescribeVolumes 400", "ListSnapshotBlocks 404"]);
    let form = String::from_utf8_lossy(&records[0].body).into_owned();
    assert!(form.ends_with("&VolumeId.1=vol-0123456789abcdef0"), "{form}");
}

#[test]
fn a_delay_and_a_changed_body_reach_the_client() {
    let gateway = Gateway::start(Simulator::new());
    let client = Client::new(&gateway.cloud());
    gateway.inject(Rule::operation(Ec2, "DescribeSubnets"), Fault::Delay(Duration::from_millis(20)));
    assert_eq!(client.call(Ec2, "DescribeSubnets", &[]).status, 200);
    gateway.inject(Rule::of(Ec2), Fault::Body(b"<html>".to_vec()));
    let answer = client.call(Ec2, "DescribeSubnets", &[]);
    assert_eq!((answer.status, answer.body.as_slice(), answer.value()), (200, &b"<html>"[..], Value::Null));
}
