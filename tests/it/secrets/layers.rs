//! A secret is sent only to an origin of its own layer: if a cpi-config names another
//! cloud, the credentials of the job are not sent there.

use serde_json::{Value, json};
use tests::cloud::{answered, get, post, with_policy};
use tests::servers::{Answer, Server, grant, with};
use tests::{CPI_ERROR, Call, Job, Response, probe};

const SECRET: &str = "the secret of the job";

fn templated(keys: Value) -> Value {
    let mut part = with(grant("api", "${cloud_url}"), json!({"plain_http": true}));
    part = with(part, keys);
    part
}

fn job(policy: Value, url: &str) -> Job {
    with_policy(policy).properties(json!({"cloud_url": url, "password": SECRET, "key": SECRET}))
}

fn call<'a>(job: &'a Job, script: &Value) -> Call<'a> {
    job.call("has_vm", json!([probe::cid(script)]))
}

/// Checks that the policy is refused because the context chose the origin.
#[track_caller]
fn check_refused(response: &Response, key: &str) {
    response.fails(CPI_ERROR, &["policy.json", key, "context"]);
    assert!(!response.json.to_string().contains(SECRET));
}

#[test]
fn auth_of_the_job_is_not_sent_to_an_origin_of_the_context() {
    let (trusted, evil) = (Server::answering(Answer::ok("")), Server::answering(Answer::ok("")));
    for (auth, key) in [
        (json!({"bearer": "${password}"}), "`http[0].auth.bearer`"),
        (json!({"basic": {"user": "u", "password": "${password}"}}), "`http[0].auth.basic.password`"),
        (json!({"header": {"name": "X-Key", "value": "a ${password}"}}), "`http[0].auth.header.value`"),
    ] {
        let job = job(json!({"http": [templated(json!({"auth": auth}))]}), &trusted.origin());
        let script = |server: &Server| json!([get(&server.url("/"))]);
        answered(&probe::outcomes_in(call(&job, &script(&trusted)).run().message())[0], 200);
        check_refused(&call(&job, &script(&evil)).context("cloud_url", json!(evil.origin())).run(), key);
        // A secret of the context may be sent there, and to the origin of the job as well.
        let both = call(&job, &script(&evil))
            .context("cloud_url", json!(evil.origin()))
            .context("password", json!("theirs, of the context"));
        answered(&probe::outcomes_in(both.run().message())[0], 200);
        let back = call(&job, &script(&trusted)).context("password", json!("theirs, of the context"));
        answered(&probe::outcomes_in(back.run().message())[0], 200);
    }
    assert_eq!(evil.requests().len(), 3);
    for seen in evil.requests() {
        let raw = String::from_utf8_lossy(&seen.raw).into_owned();
        assert!(!raw.contains(SECRET) && !raw.contains("dTp0aGUgc2VjcmV0IG9mIHRoZSBqb2I"), "{raw}");
    }
}

#[test]
fn slots_do_not_send_the_jobs_secrets_to_an_origin_of_the_context() {
    let evil = Server::answering(Answer::ok(""));
    let slots = json!([{"method": "POST", "path": "/vms", "place": "json:/password", "takes": ["password", "key"]}]);
    let job = job(json!({"http": [templated(json!({"slots": slots}))]}), "http://127.0.0.1:1");
    let script = json!([post(&evil.url("/vms"), &json!({"password": "{{props.password}}"}))]);
    let there = || call(&job, &script).context("cloud_url", json!(evil.origin()));
    check_refused(&there().run(), "`http[0].slots[0].takes`");
    let response =
        there().context("password", json!("theirs, of the context")).context("key", json!("theirs as well")).run();
    answered(&probe::outcomes_in(response.message())[0], 200);
    assert_eq!(evil.request().json(), json!({"password": "theirs, of the context"}));
}

#[test]
fn logins_send_neither_credentials_nor_tokens_of_the_job_to_an_origin_of_the_context() {
    let identity = Server::answering(Answer::json(200, &json!({"token": "a token of the job"})));
    let api = Server::answering(Answer::ok(""));
    let login = |to: &str| {
        json!({"main": {"to": to, "path": "/tokens", "body": {"password": "${password}"}, "token": "json:/token",
               "send": {"header": "X-Token"}, "addresses": ["127.0.0.0/8"], "plain_http": true}})
    };
    let by_login = json!({"auth": {"login": "main"}});
    let policy = |logins: Value| json!({"logins": logins, "http": [templated(by_login.clone())]});
    // The context chooses the origin of the login.
    let fixed = with(api.grant("api"), json!({"auth": {"login": "main"}, "plain_http": true}));
    let job_a = job(json!({"logins": login("${cloud_url}"), "http": [fixed]}), &identity.origin());
    let script = json!([get(&api.url("/"))]);
    check_refused(&call(&job_a, &script).context("cloud_url", json!(identity.origin())).run(), "`logins.main.body");
    // The context chooses the origin that gets the token.
    let job_b = job(policy(login(&identity.origin())), "http://127.0.0.1:1");
    check_refused(&call(&job_b, &script).context("cloud_url", json!(api.origin())).run(), "`http[0].auth.login`");
    assert_eq!((identity.connections(), api.connections()), (0, 0));
    // The origin and the credentials are from the context.
    let all = call(&job_b, &script)
        .context("cloud_url", json!(api.origin()))
        .context("password", json!("theirs, of the context"));
    answered(&probe::outcomes_in(all.run().message())[0], 200);
    assert_eq!(identity.request().json(), json!({"password": "theirs, of the context"}));
}

#[test]
fn a_client_certificate_of_the_job_is_not_presented_to_an_origin_of_the_context() {
    let secure =
        |keys: Value| with(json!({"id": "api", "to": "${cloud_url}", "methods": ["GET"], "paths": ["/**"]}), keys);
    for client in [json!({"cert": "${password}", "key": "${key}"}), json!({"cert": "own.pem", "key": "own.key"})] {
        let job = job(json!({"http": [secure(json!({"tls": {"client": client}}))]}), "https://127.0.0.1:1");
        check_refused(
            &call(&job, &json!([])).context("cloud_url", json!("https://127.0.0.1:2")).run(),
            "`http[0].tls.client",
        );
    }
}

#[test]
fn a_label_from_the_context_must_be_a_region_that_the_policy_lists() {
    let server = Server::answering(Answer::ok(""));
    let origin = format!("http://api.${{region}}.cloud.localhost:{}", server.port());
    let by_region = with(grant("api", &origin), json!({"auth": {"bearer": "${password}"}, "plain_http": true}));
    let job = with_policy(json!({"http": [by_region], "regions": ["two"]}))
        .properties(json!({"region": "one", "password": SECRET}));
    let to = |region: &str| json!([get(&format!("http://api.{region}.cloud.localhost:{}/", server.port()))]);
    answered(&probe::outcomes_in(call(&job, &to("one")).run().message())[0], 200);
    answered(&probe::outcomes_in(call(&job, &to("two")).context("region", json!("two")).run().message())[0], 200);
    for region in ["three", "Two", "a.b", "x:1", "evil.test/", "u@evil", "", "*", "a b", "-"] {
        let response =
            call(&job, &to("one")).context("region", json!(region)).context("password", json!("of the context")).run();
        response.fails(CPI_ERROR, &["policy.json", "`http[0].to`"]);
    }
    assert_eq!(server.connections(), 2);
}

#[test]
fn an_origin_from_a_property_is_checked_by_the_same_rules() {
    for (url, expected) in [
        ("http://cloud.test", "in the clear"),
        ("https://*.cloud.test", "`http[0].to`"),
        ("https://u:p@cloud.test", "`http[0].to`"),
        ("cloud.test", "`http[0].to`"),
        ("", "`http[0].to`"),
    ] {
        let by_property = json!({"id": "api", "to": "${cloud_url}", "methods": ["GET"], "paths": ["/**"], "auth": {"bearer": "${password}"}});
        let job = job(json!({"http": [by_property]}), url);
        let response = call(&job, &json!([])).run();
        response.fails(CPI_ERROR, &["policy.json", "`http[0].to`", expected]);
        assert!(!response.json.to_string().contains("u:p@"), "{}", response.json);
    }
    // The paths of a grant are relative to the path of the URL, as catalogs and cpi-configs have it.
    let server = Server::answering(Answer::ok(""));
    let job = job(json!({"http": [templated(json!({}))]}), &server.url("/v3/?x"));
    answered(&probe::outcomes_in(call(&job, &json!([get(&server.url("/v3/other"))])).run().message())[0], 200);
}
