//! The auth of a grant: the host adds it, and only to requests of that grant.

use serde_json::{Value, json};
use tests::Job;
use tests::cloud::{answered, failed, get, job, outcomes};
use tests::servers::{Answer, Server, with};

const PASSWORD: &str = "correct horse battery staple";

fn with_auth(server: &Server, auth: Value) -> Job {
    let guarded = with(server.grant("guarded"), json!({"paths": ["/guarded/**"], "auth": auth, "plain_http": true}));
    let open = with(server.grant("open"), json!({"paths": ["/open/**"]}));
    let properties = json!({"user": "admin", "auth": {"password": PASSWORD}, "region": "here"});
    job(json!([guarded, open])).properties(properties)
}

#[test]
fn each_kind_of_auth_arrives_in_its_standard_form() {
    for (auth, name, value) in [
        (
            json!({"basic": {"user": "${user}", "password": "${auth.password}"}}),
            "authorization",
            "Basic YWRtaW46Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==".to_owned(),
        ),
        (
            json!({"basic": {"user": "fixed", "password": "${auth.password}"}}),
            "authorization",
            "Basic Zml4ZWQ6Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==".to_owned(),
        ),
        (json!({"bearer": "${auth.password}"}), "authorization", format!("Bearer {PASSWORD}")),
        (json!({"header": {"name": "X-Api-Key", "value": "${auth.password}"}}), "x-api-key", PASSWORD.to_owned()),
        (
            json!({"header": {"name": "X-Api-Key", "value": "Key ${user}:${auth.password}"}}),
            "x-api-key",
            format!("Key admin:{PASSWORD}"),
        ),
    ] {
        let server = Server::answering(Answer::ok("in"));
        let script = json!([get(&server.url("/guarded/x")), get(&server.url("/open/x")), {"op": "find", "reversed": "elpats yrettab"}]);
        let outcomes = outcomes(&with_auth(&server, auth.clone()), &script);
        answered(&outcomes[0], 200);
        answered(&outcomes[1], 200);
        assert_eq!(outcomes[2]["ok"]["count"], 0, "{auth}");
        let seen = server.requests();
        assert_eq!(seen[0].header(name), Some(value.as_str()), "{auth}");
        assert_eq!(seen[0].headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).count(), 1);
        assert_eq!(seen[1].header(name), None, "{auth}");
    }
}

#[test]
fn a_response_that_contains_the_credential_is_withheld() {
    let server = Server::start(|seen| Answer::ok(seen.header("authorization").unwrap_or_default()));
    for auth in
        [json!({"bearer": "${auth.password}"}), json!({"basic": {"user": "${user}", "password": "${auth.password}"}})]
    {
        let response = tests::cloud::call(&with_auth(&server, auth), &json!([get(&server.url("/guarded/x"))]));
        let outcome = tests::probe::outcomes_in(response.message()).remove(0);
        failed(&outcome, "cancelled", true, &["the call is ending"]);
        assert!(response.message().contains("held the credential `auth.password`"), "{}", response.message());
    }
}

#[test]
fn the_error_names_a_property_that_is_missing_or_cannot_be_sent() {
    let server = Server::answering(Answer::ok(""));
    let missing = with_auth(&server, json!({"bearer": "${auth.nothing}"})).script(json!([])).run();
    missing.fails(tests::CPI_ERROR, &["policy.json", "`http[0].auth.bearer`", "`auth.nothing`"]);
    let job = with_auth(&server, json!({"bearer": "${auth.password}"}))
        .properties(json!({"auth": {"password": "hunter2\r\nhunter2"}}));
    let response = tests::cloud::call(&job, &json!([get(&server.url("/guarded/x"))]));
    assert!(!response.json.to_string().contains("hunter2") && !response.stderr.contains("hunter2"));
    let message = response.message();
    assert!(message.contains("control characters") || message.contains("auth.password"), "{message}");
    assert_eq!(server.connections(), 0);
}
