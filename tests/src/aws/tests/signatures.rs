//! Who may send a request.

use super::super::model;
use super::super::service::Api;
use super::*;
use Service::{Ebs, Ec2, Elb, Sts};

/// Returns the code of an error response of any API.
fn code(response: &Response) -> Option<String> {
    element(response, "Code").or_else(|| response.header("x-amzn-ErrorType").map(str::to_owned))
}

/// Returns a client with the credentials of a response of `AssumeRole`.
fn client_of(cloud: &Cloud, response: &Response) -> Client {
    let get = |name: &str| element(response, name).unwrap_or_default();
    Client {
        access_key_id: get("AccessKeyId"),
        secret_access_key: get("SecretAccessKey"),
        session_token: Some(get("SessionToken")),
        ..cloud.client.clone()
    }
}

/// Returns a signed read of this service, with its body.
fn read(client: &Client, service: Service) -> (Request, Vec<u8>) {
    match service {
        Ebs => (client.signed(Ebs, "GET", "/snapshots/snap-0123456789abcdef0/blocks", &[], b""), Vec::new()),
        Elb => client.form(Elb, "DescribeTargetGroups", &[]),
        Sts => client.form(Sts, "GetCallerIdentity", &[]),
        _ => client.form(Ec2, "DescribeVolumes", &[]),
    }
}

#[test]
fn every_service_accepts_its_own_signature_and_no_other() {
    let cloud = Cloud::new();
    let client = &cloud.client;
    for (service, good, mismatch, unknown) in [
        (Ec2, None, (401, "AuthFailure"), (401, "AuthFailure")),
        (Elb, None, (403, "SignatureDoesNotMatch"), (403, "InvalidClientTokenId")),
        (Sts, None, (403, "SignatureDoesNotMatch"), (403, "InvalidClientTokenId")),
        (
            Ebs,
            Some("ResourceNotFoundException"),
            (403, "InvalidSignatureException"),
            (403, "UnrecognizedClientException"),
        ),
    ] {
        let ask = |client: &Client| {
            let (request, body) = read(client, service);
            let response = cloud.answer(service, &request, &body);
            (response.status, code(&response))
        };
        assert_eq!(ask(client).1.as_deref(), good, "{service:?}");
        let expect = |client: &Client, (status, code): (u16, &str)| {
            assert_eq!(ask(client), (status, Some(code.to_owned())), "{service:?}");
        };
        let other = client.clone();
        expect(&Client { secret_access_key: "wrong".to_owned(), ..other.clone() }, mismatch);
        expect(&Client { region: "eu-west-1".to_owned(), ..other.clone() }, mismatch);
        expect(&Client { signing_name: Some("s3"), ..other.clone() }, mismatch);
        expect(&Client { access_key_id: "AKIAUNKNOWN".to_owned(), ..other.clone() }, unknown);
        expect(&Client { session_token: Some("a-token".to_owned()), ..other }, unknown);
    }
}

#[test]
fn a_changed_request_is_refused() {
    let cloud = Cloud::new();
    let (request, body) = cloud.client.form(Ec2, "DescribeVolumes", &[]);
    assert_eq!(cloud.answer(Ec2, &request, &body).status, 200);
    let other = [body.as_slice(), b"&MaxResults=5"].concat();
    assert_eq!(cloud.answer(Ec2, &request, &other).status, 401);
    let change = |name: &str, value: &str| {
        let mut changed = request.clone();
        changed.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        changed.headers.push((name.to_owned(), value.to_owned()));
        code(&cloud.answer(Ec2, &changed, &body))
    };
    assert_eq!(change("Host", "ec2.elsewhere").as_deref(), Some("AuthFailure"));
    assert_eq!(change("Content-Type", "text/plain").as_deref(), Some("AuthFailure"));
    assert_eq!(change("X-Amz-Target", "x").as_deref(), Some("IncompleteSignature"));
    assert_eq!(change("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD").as_deref(), Some("IncompleteSignature"));
    assert_eq!(change("Authorization", "Basic abc").as_deref(), Some("IncompleteSignature"));
    let mut unsigned = request.clone();
    unsigned.headers.retain(|(name, _)| name != "Authorization");
    assert_eq!(code(&cloud.answer(Ec2, &unsigned, &body)).as_deref(), Some("MissingParameter"));
    let mut twice = request.clone();
    twice.headers.push(("Host".to_owned(), "ec2.sim".to_owned()));
    assert_eq!(code(&cloud.answer(Ec2, &twice, &body)).as_deref(), Some("IncompleteSignature"));
}

#[test]
fn headers_that_matter_must_be_signed() {
    let cloud = Cloud::new();
    for name in ["host", "content-type", "x-amz-date"] {
        let client = Client { unsigned: vec![name], ..cloud.client.clone() };
        let response = cloud.call_as(&client, Ec2, "DescribeVolumes", &[]);
        assert_eq!(code(&response).as_deref(), Some("IncompleteSignature"), "{name}");
    }
}

#[test]
fn the_body_must_have_the_hash_that_is_announced() {
    let cloud = Cloud::new();
    let body = format!("Action=DescribeVolumes&Version={}", model::version(Api::Ec2)).into_bytes();
    let ask = |hash: &str| {
        let headers = [("Content-Type", "application/x-www-form-urlencoded"), ("X-Amz-Content-Sha256", hash)];
        let request = cloud.client.signed(Ec2, "POST", "/", &headers, &body);
        cloud.answer(Ec2, &request, &body).status
    };
    assert_eq!(ask(&super::super::signature::sha256(&body)), 200);
    assert_eq!(ask(&super::super::signature::sha256(b"another body")), 401);
    assert_eq!(ask("UNSIGNED-PAYLOAD"), 401);
    cloud.simulator.allow_unsigned_payload();
    assert_eq!(ask("UNSIGNED-PAYLOAD"), 200);
}

#[test]
fn a_clock_may_differ_by_five_minutes() {
    let cloud = Cloud::new();
    for (service, ahead, expected) in [
        (Ec2, 290, None),
        (Ec2, -290, None),
        (Ec2, 310, Some("AuthFailure")),
        (Ec2, -310, Some("RequestExpired")),
        (Sts, 310, Some("SignatureDoesNotMatch")),
        (Ebs, -310, Some("InvalidSignatureException")),
    ] {
        let client = Client { clock_ahead: ahead, ..cloud.client.clone() };
        let (request, body) = read(&client, service);
        let response = cloud.answer(service, &request, &body);
        assert_eq!(code(&response).as_deref(), expected, "{service:?} {ahead}");
        assert!(response.header("date").is_some());
    }
    cloud.simulator.set_clock_ahead(86_400);
    assert_eq!(cloud.call("DescribeVolumes", &[]).status, 400);
    let client = Client { clock_ahead: 86_400, ..cloud.client.clone() };
    assert_eq!(cloud.call_as(&client, Ec2, "DescribeVolumes", &[]).status, 200);
}

#[test]
fn a_mismatch_quotes_the_canonical_request_except_at_ec2() {
    let cloud = Cloud::new();
    let client = Client { secret_access_key: "wrong".to_owned(), ..cloud.client.clone() };
    let response = cloud.call_as(&client, Sts, "GetCallerIdentity", &[]);
    assert!(text(&response).contains("The Canonical String") && text(&response).contains("aws4_request"));
    let response = cloud.call_as(&client, Ec2, "DescribeVolumes", &[]);
    assert!(!text(&response).contains("Canonical"));
}

#[test]
fn an_assumed_role_gets_credentials_that_expire() {
    let cloud = Cloud::new();
    let assume = |client: &Client, role: &str, further: &[(&str, &str)]| {
        let parameters = [&[("RoleArn", role), ("RoleSessionName", "bosh")], further].concat();
        cloud.call_as(client, Sts, "AssumeRole", &parameters)
    };
    let role = cloud.value("role_arn");
    let response = assume(&cloud.client, &role, &[]);
    let client = client_of(&cloud, &response);
    assert_eq!(cloud.call_as(&client, Ec2, "DescribeVolumes", &[]).status, 200);
    let identity = cloud.call_as(&client, Sts, "GetCallerIdentity", &[]);
    assert!(
        element(&identity, "Arn").is_some_and(|arn| arn.ends_with(":assumed-role/bosh-cpi/bosh")),
        "{}",
        text(&identity)
    );
    let without = Client { session_token: None, ..client.clone() };
    assert_eq!(cloud.call_as(&without, Ec2, "DescribeVolumes", &[]).status, 401);
    let later = Client { clock_ahead: 3700, ..client };
    cloud.simulator.set_clock_ahead(3700);
    assert_eq!(code(&cloud.call_as(&later, Ec2, "DescribeVolumes", &[])).as_deref(), Some("RequestExpired"));
    assert_eq!(code(&cloud.call_as(&later, Sts, "GetCallerIdentity", &[])).as_deref(), Some("ExpiredToken"));
}

#[test]
fn a_role_is_assumed_only_by_its_account_and_with_its_external_id() {
    let cloud = Cloud::new();
    let (role, external) = (cloud.value("role_arn"), cloud.value("external_role_arn"));
    let id = cloud.value("external_id");
    let other = cloud.other_client();
    for (client, role, further, expected) in [
        (&cloud.client, &external, vec![], Some("AccessDenied")),
        (&cloud.client, &external, vec![("ExternalId", id.as_str())], None),
        (&cloud.client, &external, vec![("ExternalId", "x")], Some("AccessDenied")),
        (&other, &role, vec![], Some("AccessDenied")),
        (&cloud.client, &role, vec![("DurationSeconds", "60")], Some("ValidationError")),
        (&cloud.client, &role, vec![("Policy", "{}")], Some("UnsupportedOperation")),
    ] {
        let parameters = [vec![("RoleArn", role.as_str()), ("RoleSessionName", "bosh")], further].concat();
        let response = cloud.call_as(client, Sts, "AssumeRole", &parameters);
        assert_eq!(code(&response).as_deref(), expected, "{parameters:?}");
    }
}

#[test]
fn revoked_credentials_are_unknown_and_a_cloud_can_have_a_chosen_key() {
    let simulator = Simulator::with_access_key("AKIACHOSEN", "a/chosen+secret");
    let cloud = Cloud { client: Client::new(&simulator.cloud()), description: simulator.cloud(), simulator };
    assert_eq!(cloud.value("access_key_id"), "AKIACHOSEN");
    let role = cloud.value("role_arn");
    let parameters = [("RoleArn", role.as_str()), ("RoleSessionName", "bosh")];
    let response = cloud.call_as(&cloud.client, Sts, "AssumeRole", &parameters);
    let client = client_of(&cloud, &response);
    assert_eq!(cloud.call_as(&client, Ec2, "DescribeVolumes", &[]).status, 200);
    cloud.simulator.revoke_temporary_keys();
    assert_eq!(cloud.call_as(&client, Ec2, "DescribeVolumes", &[]).status, 401);
    assert_eq!(cloud.call("DescribeVolumes", &[]).status, 200);
}

#[test]
fn temporary_credentials_can_be_short_lived() {
    let cloud = Cloud::new();
    cloud.simulator.set_key_lifetime(0);
    let role = cloud.value("role_arn");
    let parameters = [("RoleArn", role.as_str()), ("RoleSessionName", "bosh")];
    let response = cloud.call_as(&cloud.client, Sts, "AssumeRole", &parameters);
    let client = client_of(&cloud, &response);
    let response = cloud.call_as(&client, Ec2, "DescribeVolumes", &[]);
    assert_eq!(code(&response).as_deref(), Some("RequestExpired"));
}

#[test]
fn the_query_apis_take_only_forms_that_are_posted_to_the_root() {
    let cloud = Cloud::new();
    let form = "application/x-www-form-urlencoded";
    let body = format!("Action=DescribeVolumes&Version={}", model::version(Api::Ec2));
    for (method, target, kind, body, expected) in [
        ("POST", "/", form, body.as_str(), None),
        ("GET", &format!("/?{body}"), form, "", Some("InvalidRequest")),
        ("POST", &format!("/?{body}"), form, "", Some("InvalidRequest")),
        ("POST", "/", "application/json", "{}", Some("InvalidRequest")),
        ("POST", "/", form, "Action=DescribeVolumes&Version=2012-01-01", Some("NoSuchVersion")),
        ("POST", "/", form, "Action=CreateVpc&Version=2016-11-15", Some("InvalidAction")),
        ("POST", "/", form, "Version=2016-11-15", Some("MissingAction")),
        ("POST", "/", form, &format!("{body}&{body}"), Some("MalformedQueryString")),
    ] {
        let request = cloud.client.signed(Ec2, method, target, &[("Content-Type", kind)], body.as_bytes());
        let response = cloud.answer(Ec2, &request, body.as_bytes());
        assert_eq!(code(&response).as_deref(), expected, "{method} {target} {body}");
    }
}

#[test]
fn accounts_do_not_see_each_others_resources() {
    let cloud = Cloud::new();
    let volume = cloud.available_volume("us-east-1a");
    let other = cloud.other_client();
    let response = cloud.call_as(&other, Ec2, "DescribeVolumes", &[]);
    assert!(response.status == 200 && count(&response, &volume) == 0, "{}", text(&response));
    let response = cloud.call_as(&other, Ec2, "DeleteVolume", &[("VolumeId", &volume)]);
    assert_eq!(code(&response).as_deref(), Some("InvalidVolume.NotFound"));
    let subnet = cloud.value("subnet");
    let response = cloud.call_as(&other, Ec2, "CreateNetworkInterface", &[("SubnetId", &subnet)]);
    assert_eq!(code(&response).as_deref(), Some("InvalidSubnetID.NotFound"));
    let response = cloud.call_as(&other, Ec2, "DescribeImages", &[("ImageId.1", &cloud.value("image"))]);
    assert_eq!(response.status, 200);
}
