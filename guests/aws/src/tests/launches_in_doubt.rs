//! Requests of `create_vm` that may have succeeded although their answers got lost.

use serde_json::json;
use wasm_cpi_sdk::bindings::bosh::cpi::http::ErrorKind as Transport;
use wasm_cpi_sdk::fake::{Answer, Fake, Installed};
use wasm_cpi_sdk::{Cpi, Error, ErrorKind, Network, RetryAdvice};

use super::answers::{answer, done, image, instance, interfaces, launched, running};
use super::{cpi, form_of, manual, network, operations, properties, request, small};

/// Creates a VM with this operation's answer lost every time.
fn create(lost: &str, networks: Vec<Network>, others: &[(&str, String)]) -> (Installed, Error) {
    let fake = Fake::new().properties(properties()).on_operation("DescribeImages", answer(&image()));
    let fake = others.iter().fold(fake, |fake, (name, body)| fake.on_operation(name, answer(body)));
    let host = fake.on_operation(lost, Answer::fail(Transport::Timeout, "no answer in time", true)).install();
    let error = cpi().create_vm(request(small(), networks)).unwrap_err();
    (host, error)
}

fn two_networks() -> Vec<Network> {
    vec![manual(), network("other", "manual", Some("10.0.1.5"), json!({"subnet": "subnet-2"}))]
}

fn nothing() -> String {
    "<R/>".to_owned()
}

#[test]
fn an_instance_that_ec2_shows_late_is_ended() {
    let others = [
        ("DescribeInstances", nothing()),
        ("DescribeInstances", nothing()),
        ("DescribeInstances", running("i-7", &interfaces(1))),
        ("DescribeInstances", instance("i-7", "terminated", "")),
        ("TerminateInstances", done()),
    ];
    let (host, error) = create("RunInstances", vec![manual()], &others);
    assert!(!error.message.contains("not certain"), "{error}");
    assert_eq!(form_of(&host, "TerminateInstances")["InstanceId.1"], "i-7");
}

#[test]
fn a_launch_whose_answer_cannot_be_read_is_repeated_with_its_token_and_ended() {
    let fake = Fake::new().properties(properties()).on_operation("DescribeImages", answer(&image()));
    let host = fake
        .on_operation("RunInstances", Answer::text(200, "<html>"))
        .on_operation("RunInstances", answer(&launched()))
        .on_operation("TerminateInstances", answer(&done()))
        .on_operation("DescribeInstances", answer(&instance("i-1", "terminated", "")))
        .install();
    let error = cpi().create_vm(request(small(), vec![manual()])).unwrap_err();
    assert!(!error.message.contains("not certain"), "{error}");
    assert_eq!(operations(&host)[1..4], ["RunInstances", "RunInstances", "TerminateInstances"]);
    assert_eq!(host.request_form(1).unwrap(), host.request_form(2).unwrap());
}

#[test]
fn an_interface_that_ec2_shows_late_is_deleted() {
    let shown = "<R><networkInterfaceSet><item><networkInterfaceId>eni-7</networkInterfaceId></item>\
                 </networkInterfaceSet></R>";
    let others = [
        ("DescribeNetworkInterfaces", nothing()),
        ("DescribeNetworkInterfaces", shown.to_owned()),
        ("DeleteNetworkInterface", done()),
    ];
    let (host, error) = create("CreateNetworkInterface", two_networks(), &others);
    assert!(!error.message.contains("not certain"), "{error}");
    assert_eq!(form_of(&host, "DeleteNetworkInterface")["NetworkInterfaceId"], "eni-7");
}

#[test]
fn what_ec2_never_shows_is_named_with_its_token_and_not_retried() {
    for (lost, lookup, networks, what) in [
        ("RunInstances", "DescribeInstances", vec![manual()], "an instance of VM vm-"),
        ("CreateNetworkInterface", "DescribeNetworkInterfaces", two_networks(), "a network interface of VM vm-"),
    ] {
        let (host, error) = create(lost, networks, &[(lookup, nothing())]);
        let token = form_of(&host, lost)["ClientToken"].clone();
        for part in [what, &token, "it is not certain that all of it was undone"] {
            assert!(error.message.contains(part), "{part}: {error}");
        }
        assert_eq!(error.kind, ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: false }), "{error}");
        assert!(operations(&host).iter().filter(|name| *name == lookup).count() > 2);
    }
}
