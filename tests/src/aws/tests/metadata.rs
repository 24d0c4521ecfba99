//! The instance metadata service.

use super::*;

const PATH: &str = "/latest/meta-data/iam/security-credentials/";

fn send(cloud: &Cloud, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    cloud.answer(Service::Metadata, &Request::new(method, target, headers), b"")
}

fn token(cloud: &Cloud, seconds: &str) -> Response {
    send(cloud, "PUT", "/latest/api/token", &[("X-aws-ec2-metadata-token-ttl-seconds", seconds)])
}

#[test]
fn only_requests_with_a_valid_token_are_answered() {
    let cloud = Cloud::new();
    for seconds in ["0", "21601", "x", ""] {
        assert_eq!(token(&cloud, seconds).status, 400, "{seconds}");
    }
    let session = String::from_utf8_lossy(&token(&cloud, "60").body).into_owned();
    let get = |headers: &[(&str, &str)]| send(&cloud, "GET", PATH, headers).status;
    let own = ("X-aws-ec2-metadata-token", session.as_str());
    assert_eq!(get(&[own]), 200);
    assert_eq!(get(&[]), 401);
    assert_eq!(get(&[("X-aws-ec2-metadata-token", "guessed")]), 401);
    assert_eq!(get(&[own, ("X-Forwarded-For", "10.0.0.1")]), 403);
    assert_eq!(send(&cloud, "POST", PATH, &[own]).status, 405);
    assert_eq!(send(&cloud, "GET", "/latest/meta-data/unknown", &[own]).status, 404);
    cloud.simulator.set_clock_ahead(61);
    assert_eq!(get(&[own]), 401);
}

#[test]
fn the_role_of_the_instance_has_credentials_that_expire_and_are_renewed() {
    let cloud = Cloud::new();
    let session = String::from_utf8_lossy(&token(&cloud, "21600").body).into_owned();
    let get = |path: &str| send(&cloud, "GET", path, &[("X-aws-ec2-metadata-token", &session)]);
    let role = String::from_utf8_lossy(&get(PATH).body).into_owned();
    let key = || get(&format!("{PATH}{role}")).value();
    let first = key();
    assert_eq!(key()["AccessKeyId"], first["AccessKeyId"]);
    let text = |name: &str| first[name].as_str().unwrap_or_default().to_owned();
    let client = Client {
        access_key_id: text("AccessKeyId"),
        secret_access_key: text("SecretAccessKey"),
        session_token: Some(text("Token")),
        ..cloud.client.clone()
    };
    assert_eq!(cloud.call_as(&client, Service::Ec2, "DescribeVolumes", &[]).status, 200);
    let ahead = 6 * 3600 - 200;
    cloud.simulator.set_clock_ahead(ahead);
    let session = String::from_utf8_lossy(&token(&cloud, "60").body).into_owned();
    let next = send(&cloud, "GET", &format!("{PATH}{role}"), &[("X-aws-ec2-metadata-token", &session)]).value();
    assert_ne!(next["AccessKeyId"], first["AccessKeyId"]);
    let client = Client { clock_ahead: ahead, ..client };
    assert_eq!(cloud.call_as(&client, Service::Ec2, "DescribeVolumes", &[]).status, 200);
    cloud.simulator.set_clock_ahead(ahead + 300);
    let client = Client { clock_ahead: ahead + 300, ..client };
    assert_eq!(cloud.call_as(&client, Service::Ec2, "DescribeVolumes", &[]).status, 400);
}
