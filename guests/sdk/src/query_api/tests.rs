use serde::Serialize;
use serde_json::json;

use super::*;
use crate::Seal;
use crate::fake::{Answer, Fake};
use crate::http;

const URL: &str = "https://ec2.example/";

/// Returns the form of an operation without the first two fields.
fn written(operation: Operation) -> String {
    let form = operation.form().unwrap();
    let start = format!("Action={}&Version={}", operation.action, operation.version);
    form.strip_prefix(&start).unwrap().trim_start_matches('&').to_owned()
}

fn refused(operation: Operation) -> String {
    operation.form().unwrap_err()
}

fn new() -> Operation {
    Operation::new("Do", "2016-11-15")
}

#[test]
fn action_and_version_come_first_and_the_rest_is_in_the_order_of_names() {
    let operation = Operation::new("RunInstances", "2016-11-15").set("MinCount", 1).set("ABC", "x").set("MaxCount", 1);
    assert_eq!(operation.form().unwrap(), "Action=RunInstances&Version=2016-11-15&ABC=x&MaxCount=1&MinCount=1");
}

#[test]
fn values_lists_and_objects_are_written_as_ec2_reads_them() {
    for (parameters, form) in [
        (json!({}), ""),
        (json!({"A": null, "B": ""}), "B="),
        (json!({"A": true, "B": -1, "C": u64::MAX}), "A=true&B=-1&C=18446744073709551615"),
        (json!({"A": "a b*~%\u{fc}\n"}), "A=a+b%2A~%25%C3%BC%0A"),
        (json!({"SecurityGroupId": ["sg-1", "sg-2"]}), "SecurityGroupId.1=sg-1&SecurityGroupId.2=sg-2"),
        (json!({"Placement": {"Tenancy": "dedicated", "GroupName": null}}), "Placement.Tenancy=dedicated"),
        (
            json!({"NetworkInterface": [{"DeviceIndex": 0, "SecurityGroupId": ["sg-1"]}]}),
            "NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.SecurityGroupId.1=sg-1",
        ),
        (
            json!({"TagSpecification": [{"ResourceType": "instance", "Tag": [{"Key": "a", "Value": "1"}]}]}),
            "TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=1",
        ),
    ] {
        assert_eq!(written(new().set_all(&parameters)), form, "{parameters}");
    }
    let eleven: Vec<u8> = (0..11).collect();
    assert!(written(new().set("N", eleven)).ends_with("&N.9=8&N.10=9&N.11=10"));
}

#[test]
fn lists_of_other_apis_have_members() {
    let tags = json!([{"Key": "a", "Value": "1"}]);
    let operation = new().member_lists().set("Names", ["x", "y"]).set("Tags", tags);
    let form = "Names.member.1=x&Names.member.2=y&Tags.member.1.Key=a&Tags.member.1.Value=1";
    assert_eq!(written(operation), form);
}

#[test]
fn filters_are_numbered_in_their_order() {
    let operation = new().filter("vpc-id", ["vpc-1"]).filter("tag:Name", ["a", "b"]);
    let form =
        "Filter.1.Name=vpc-id&Filter.1.Value.1=vpc-1&Filter.2.Name=tag%3AName&Filter.2.Value.1=a&Filter.2.Value.2=b";
    assert_eq!(written(operation), form);
}

#[test]
fn structs_and_seals_are_parameters() {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Volume<'a> {
        availability_zone: &'a str,
        size: u32,
        kms_key_id: Option<&'a str>,
    }
    let volume = Volume { availability_zone: "z", size: 10, kms_key_id: None };
    let seal = Seal("abc".to_owned());
    let form = "AvailabilityZone=z&Size=10&UserData=abc";
    assert_eq!(written(new().set_all(volume).set("UserData", &seal)), form);
}

#[test]
fn what_an_api_could_misread_is_not_sent() {
    for (operation, problem) in [
        (new().set("A", 1).set("A", 1), "parameter `A` is set twice"),
        (new().set("A", 1).set("a", 1), "parameter `a` is set twice"),
        (new().set("A.B", 1).set("A", json!({"B": 1})), "parameter `A.B` is set twice"),
        (new().set("Action", "Other"), "parameter `Action` is set twice"),
        (new().set("version", "1"), "parameter `version` is set twice"),
        (new().filter("a", ["b"]).set("Filter", json!([{"Name": "b"}])), "parameter `Filter.1.Name` is set twice"),
        (new().set("A", json!([])), "parameter `A` has no values; pass null to leave it out"),
        (new().set("A", json!([{}])), "parameter `A.1` has no values; pass null to leave it out"),
        (new().set("A", json!({"B": null})), "parameter `A` has no values; pass null to leave it out"),
        (
            new().filter("a", Vec::<String>::new()),
            "parameter `Filter.1.Value` has no values; pass null to leave it out",
        ),
        (new().set("A", json!(["x", null])), "the list `A` has an element that is null"),
        (new().set("A", 1.5), "parameter `A` is not an integer"),
        (new().set_all([1]), "the parameters are not an object"),
    ] {
        assert_eq!(refused(operation), problem);
    }
    for name in ["", "1", ".A", "A.", "A..B", "A.01", "A.0", "A B", "A&B", "A=", "A-b", "\u{fc}", "A.1b"] {
        assert!(refused(new().set(name, 1)).ends_with("is not a valid name of a parameter"), "{name}");
    }
    assert_eq!(written(new().set("EnaSupport.Value", true).set("A_1.10", 1)), "A_1.10=1&EnaSupport.Value=true");
}

#[test]
fn a_request_with_an_operation_names_it_in_errors_and_log_lines() {
    let host = Fake::new().on("POST", URL, Answer::text(503, "")).install();
    let error = http::post(URL).operation(&new()).repeatable().retries(1).send().unwrap().ok().unwrap_err();
    assert_eq!(error.to_string(), "POST https://ec2.example/ (Do): the cloud answered 503");
    assert_eq!(host.logs()[0].1, "POST https://ec2.example/ (Do): status 503; retrying in 1 s");
    let sent = &host.requests()[0];
    assert_eq!(sent.headers, [("content-type".into(), "application/x-www-form-urlencoded".into())]);

    let error = http::post(URL).operation(&new().set("A", json!([]))).send().unwrap_err();
    assert!(matches!(error.cause, Cause::Build(_)), "{error}");
    assert!(error.to_string().starts_with("POST https://ec2.example/ (Do): parameter `A` has no values"));
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn the_code_of_an_error_is_found_in_every_form() {
    for (body, code) in [
        ("<Response><Errors><Error><Code>A.B</Code></Error></Errors><RequestID>1</RequestID></Response>", Some("A.B")),
        ("<ErrorResponse xmlns=\"u\"><Error><Type>Sender</Type><Code>C</Code></Error></ErrorResponse>", Some("C")),
        ("<shown><Code>D</Code></shown>", Some("D")),
        ("<Response><Errors/></Response>", None),
        ("<html>", None),
        ("", None),
    ] {
        let _host = Fake::new().on("POST", URL, Answer::xml(400, body)).install();
        let error = http::post(URL).send().unwrap().ok().unwrap_err();
        assert_eq!(error_code(&error).as_deref(), code, "{body}");
    }
    let _host = Fake::new().install();
    assert_eq!(error_code(&http::post(URL).send().unwrap_err()), None);
}

#[test]
fn undeclared_operations_are_denied_with_the_need_to_add() {
    let needs = r#"{"version": 1, "http": [{"id": "a", "to": "https://ec2.example", "methods": ["POST"], "paths": ["/"],
        "operations": {"in": "form:Action", "allow": ["DescribeVpcs"]}}]}"#;
    let host = Fake::new().needs(needs).on_operation("DescribeVpcs", Answer::xml(200, "<R/>")).install();
    let send = |action| http::post(URL).operation(&Operation::new(action, "2016-11-15")).send();
    assert_eq!(send("DescribeVpcs").unwrap().status, 200);
    let error = send("DeleteVpc").unwrap_err();
    assert_eq!(error.denial(), Some(http::Denial::Undeclared));
    assert!(error.to_string().contains(r#""operations":{"allow":["DeleteVpc"],"in":"form:Action"}"#), "{error}");
    assert_eq!(host.request_form(0).unwrap()["Version"], "2016-11-15");
}

proptest::proptest! {
    #[test]
    fn every_value_arrives_as_it_is(values in proptest::collection::btree_map("[A-Za-z][A-Za-z0-9_]{0,9}", r"\PC{0,20}", 1..8)) {
        let host = Fake::new().on("POST", URL, Answer::text(200, "")).install();
        let operation = values.iter().fold(new(), |operation, (name, value)| operation.set(name, [value]));
        if http::post(URL).operation(&operation).send().is_ok() {
            let form = host.request_form(0).unwrap();
            assert_eq!(form.len(), values.len() + 2);
            values.iter().for_each(|(name, value)| assert_eq!(&form[&format!("{name}.1")], value));
        } else {
            let names: std::collections::BTreeSet<_> = values.keys().map(|name| name.to_ascii_lowercase()).collect();
            assert!(names.len() < values.len(), "only names that differ in case are refused");
        }
    }
}
