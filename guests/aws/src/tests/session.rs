//! Properties, endpoints and what happens to errors of AWS.

use serde_json::json;
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::answers::{failure, failure_with, instance};
use super::{cpi, operations, properties, start, start_with};
use crate::Aws;

#[test]
fn a_vm_exists_until_it_ends() {
    for (state, exists) in
        [("pending", true), ("running", true), ("stopped", true), ("shutting-down", true), ("terminated", false)]
    {
        let host = start(&[("DescribeInstances", instance("i-1", state, ""))]);
        assert_eq!(cpi().has_vm("i-1".into()), Ok(exists), "{state}");
        assert_eq!(operations(&host), ["DescribeInstances"]);
        assert_eq!(host.requests()[0].url, "https://ec2.us-east-1.amazonaws.com/");
        assert_eq!(host.request_form(0).unwrap()["InstanceId.1"], "i-1");
    }
    let _host = start(&[("DescribeInstances", failure("InvalidInstanceID.NotFound"))]);
    assert_eq!(cpi().has_vm("i-1".into()), Ok(false));
}

#[test]
fn throttled_requests_and_internal_errors_are_repeated() {
    for (status, code) in [
        (503, "RequestLimitExceeded"),
        (400, "SnapshotCreationPerVolumeRateExceeded"),
        (400, "Throttling"),
        (500, "InternalError"),
        (503, "Unavailable"),
    ] {
        let host = start(&[
            ("DescribeInstances", failure_with(status, code, "Later.")),
            ("DescribeInstances", instance("i-1", "running", "")),
        ]);
        assert_eq!(cpi().has_vm("i-1".into()), Ok(true), "{code}");
        assert_eq!(host.sleeps().len(), 1, "{code}");
    }
}

#[test]
fn an_error_has_the_code_the_message_and_the_id_of_the_request() {
    let _host = start(&[("RebootInstances", failure_with(400, "OperationNotPermitted", "Not now."))]);
    let error = cpi().reboot_vm("i-1".into()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cloud);
    assert_eq!(error.message, "RebootInstances failed with OperationNotPermitted: Not now (request ID req-1)");
}

#[test]
fn a_missing_permission_is_named() {
    let _host = start(&[("RebootInstances", failure_with(403, "UnauthorizedOperation", "You may not."))]);
    let error = cpi().reboot_vm("i-1".into()).unwrap_err();
    assert!(error.message.contains(r#"add {"Effect": "Allow", "Action": "ec2:RebootInstances""#), "{error}");
}

#[test]
fn wrong_properties_are_rejected_by_name() {
    for (name, value, part) in [
        ("region", json!(null), "region: is missing"),
        ("region", json!("x/../y"), "does not look like a region"),
        ("access_key_id", json!(null), "needs access_key_id and secret_access_key"),
        ("credentials_source", json!("env_or_profile"), "but keys are set"),
        ("credentials_source", json!("file"), "is not a source of credentials"),
        ("ec2_endpoint", json!("https://ec2.example/x"), "properties.ec2_endpoint"),
        ("role_arn", json!("arn:aws:iam::1:role/bosh"), "role_arn: is set, but the preset does not assume a role"),
        ("dualstack", json!("a".repeat(40)), "properties.dualstack: is sealed"),
    ] {
        let mut all = properties();
        all[name] = value;
        let _host = start_with(all, &[]);
        let error = Aws::open().map(drop).unwrap_err();
        assert!(error.message.contains(part), "{name}: {error}");
    }
}

#[test]
fn a_role_that_the_preset_assumes_is_a_seal_and_accepted() {
    for role in [json!("a".repeat(40)), json!(""), json!(null)] {
        let mut all = properties();
        all["role_arn"] = role;
        let _host = start_with(all, &[]);
        Aws::open().map(drop).unwrap();
    }
}
