//! Logins that the host performs: the tests run a token service and an API that accepts
//! its tokens.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tests::cloud::{answered, call, denied, failed, get, outcomes, post, with_policy};
use tests::servers::{Answer, ReceivedRequest, Server, with};
use tests::{CPI_ERROR, Job, probe};

const PASSWORD: &str = "correct horse battery staple";

/// Returns a token service that returns `token-number-1`, `-2` and so on, in a header and in the body.
fn identity(lifetime: Value) -> Server {
    let count = Arc::new(AtomicUsize::new(0));
    Server::start(move |_| {
        let token = format!("token-number-{}", count.fetch_add(1, Ordering::SeqCst) + 1);
        let body = json!({"access": {"token": token, "user": "me", "expires": lifetime}, "catalog": [{"url": "https://cloud.test"}]});
        Answer::json(201, &body).header("X-Subject-Token", &token)
    })
}

/// Returns an API that accepts the tokens with these endings, and answers 401 to all others.
fn api(header: &'static str, good: &'static [&'static str]) -> Server {
    Server::start(move |seen: &ReceivedRequest| {
        let known = seen.header(header).is_some_and(|token| good.iter().any(|good| token.ends_with(good)));
        if known { Answer::ok("in") } else { Answer::new(401, "who?") }
    })
}

fn login(identity: &Server, keys: Value) -> Value {
    let basic = json!({
        "to": identity.origin(), "path": "/v3/tokens", "addresses": ["127.0.0.0/8"], "plain_http": true,
        "body": {"auth": {"name": "${user}", "password": "${password}", "scope": {"n": 1}}},
        "token": "header:X-Subject-Token", "send": {"header": "X-Auth-Token"},
    });
    with(basic, keys)
}

fn job(api: &Server, login: Value) -> Job {
    let grant = with(api.grant("api"), json!({"auth": {"login": "main"}, "plain_http": true}));
    with_policy(json!({"logins": {"main": login}, "http": [grant]}))
        .properties(json!({"user": "admin", "password": PASSWORD}))
}

#[test]
fn a_login_happens_once_and_its_token_is_sent_as_the_policy_says() {
    let shapes = [
        (json!({}), "x-auth-token", "token-number-1"),
        (
            json!({"token": "json:/access/token", "send": {"header": "Authorization", "prefix": "Bearer "}}),
            "authorization",
            "Bearer token-number-1",
        ),
        (
            json!({"body": null, "form": {"grant_type": "client_credentials", "secret": "${password}"}, "token": "json:/access/token"}),
            "x-auth-token",
            "token-number-1",
        ),
        (
            json!({"body": null, "method": "GET", "headers": {"X-User": "${user}", "X-Password": "${password}"}}),
            "x-auth-token",
            "token-number-1",
        ),
    ];
    for (keys, header, sent) in shapes {
        let (identity, api) = (identity(json!("2999-01-01T00:00:00Z")), api(header, &["token-number-1"]));
        let mut login = login(&identity, keys.clone());
        login.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let script = json!([get(&api.url("/a")), post(&api.url("/b"), &json!({"x": 1})), {"op": "find", "reversed": "1-rebmun-nekot"}, {"op": "find", "reversed": "elpats yrettab"}]);
        let outcomes = outcomes(&job(&api, login), &script);
        assert_eq!(answered(&outcomes[0], 200)["body"], "in");
        answered(&outcomes[1], 200);
        assert_eq!((&outcomes[2]["ok"]["count"], &outcomes[3]["ok"]["count"]), (&json!(0), &json!(0)), "{keys}");
        assert_eq!(api.requests()[0].header(header), Some(sent), "{keys}");
        let seen = identity.request();
        let text = seen.text();
        match seen.method() {
            "GET" => assert_eq!(
                (seen.header("x-user"), seen.header("x-password"), text),
                (Some("admin"), Some(PASSWORD), "")
            ),
            _ if text.starts_with('{') => {
                assert_eq!(seen.json(), json!({"auth": {"name": "admin", "password": PASSWORD, "scope": {"n": 1}}}))
            }
            _ => assert_eq!(text, "grant_type=client_credentials&secret=correct+horse+battery+staple"),
        }
        assert_eq!(seen.target(), "/v3/tokens");
    }
}

#[test]
fn a_token_is_replaced_before_it_expires() {
    for (lifetime, expires, logins) in [
        (json!(3600), json!({"in_seconds": "json:/access/expires"}), 1),
        (json!(0), json!({"in_seconds": "json:/access/expires"}), 3),
        (json!("2999-01-01T00:00:00Z"), json!({"at": "json:/access/expires"}), 1),
        (json!("2020-01-01T00:00:00Z"), json!({"at": "json:/access/expires"}), 3),
        (json!("some day"), json!({"at": "json:/access/expires"}), 1),
    ] {
        let (identity, api) = (identity(lifetime.clone()), api("x-auth-token", &["-1", "-2", "-3"]));
        let job = job(&api, login(&identity, json!({"expires": expires})));
        for outcome in outcomes(&job, &json!([get(&api.url("/")), get(&api.url("/")), get(&api.url("/"))])) {
            answered(&outcome, 200);
        }
        assert_eq!(identity.requests().len(), logins, "{lifetime}");
    }
}

#[test]
fn a_401_causes_one_new_login_and_a_second_401_is_returned_to_the_guest() {
    let (identity_a, api_a) = (identity(Value::Null), api("x-auth-token", &["-2"]));
    let script = |api: &Server| json!([post(&api.url("/vms"), &json!({"name": "vm-1"})), get(&api.url("/vms"))]);
    for outcome in outcomes(&job(&api_a, login(&identity_a, json!({}))), &script(&api_a)) {
        answered(&outcome, 200);
    }
    let seen = api_a.requests();
    assert_eq!((identity_a.requests().len(), seen.len()), (2, 3));
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(seen[1].json(), json!({"name": "vm-1"}));

    let (identity_b, api_b) = (identity(Value::Null), api("x-auth-token", &[]));
    let outcomes = outcomes(&job(&api_b, login(&identity_b, json!({}))), &script(&api_b));
    assert_eq!(answered(&outcomes[0], 401)["body"], "who?");
    answered(&outcomes[1], 401);
    assert_eq!((identity_b.requests().len(), api_b.requests().len()), (4, 4));
}

#[test]
fn a_session_shows_only_what_the_policy_allows() {
    let (identity, api) = (identity(Value::Null), api("x-auth-token", &["-1"]));
    let show = json!({"catalog": "json:/catalog", "user": "json:/access/user", "nothing": "json:/nothing"});
    let script = json!([{"op": "session", "name": "main"}, {"op": "session", "name": "other"}, get(&api.url("/")), {"op": "session", "name": "main"}]);
    let found = outcomes(&job(&api, login(&identity, json!({"show": show}))), &script);
    assert_eq!(found[0]["ok"], json!({"catalog": [{"url": "https://cloud.test"}], "user": "me", "nothing": null}));
    denied(&found[1], "undeclared", &["there is no login `other`; there are: main"]);
    answered(&found[2], 200);
    assert_eq!(found[3]["ok"], found[0]["ok"]);
    assert_eq!(identity.requests().len(), 1);
    let nothing = outcomes(&job(&api, login(&identity, json!({}))), &json!([{"op": "session", "name": "main"}]));
    assert_eq!(nothing[0]["ok"], json!({}));
}

#[test]
fn a_session_never_shows_the_token() {
    let (identity, api) = (identity(Value::Null), api("x-auth-token", &[]));
    // The policy itself would show the token.
    for (token, shown) in [
        ("json:/access/token", "json:/access"),
        ("json:/access/token", "body"),
        ("header:X-Subject-Token", "header:x-subject-token"),
    ] {
        let response =
            job(&api, login(&identity, json!({"token": token, "show": {"all": shown}}))).script(json!([])).run();
        response.fails(CPI_ERROR, &["`logins.main.show.all`", "would show the token to the guest"]);
    }
    // The response of the server would show the token.
    let job = job(&api, login(&identity, json!({"show": {"access": "json:/access"}})));
    let outcome = outcomes(&job, &json!([{"op": "session", "name": "main"}])).remove(0);
    failed(&outcome, "cancelled", true, &["the call is ending"]);
}

#[test]
fn a_failed_login_is_reported_and_the_request_of_the_guest_is_not_sent() {
    let cases = [
        (Answer::new(401, "no"), "denied", "was answered with HTTP 401; check the properties user, password"),
        (Answer::new(400, "no"), "denied", "HTTP 400"),
        (Answer::new(500, "oops"), "protocol", "HTTP 500; look at the server's log"),
        (Answer::new(302, "").header("Location", "/elsewhere"), "protocol", "HTTP 302"),
        (Answer::new(201, "{}"), "protocol", "without a token in `header:x-subject-token`"),
        (Answer::new(201, "").header("X-Subject-Token", ""), "protocol", "without a token"),
        (Answer::bytes("nonsense"), "protocol", "is not valid HTTP/1.1"),
        (
            Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
            "truncated",
            "before the response was complete",
        ),
        (Answer::stall(""), "timeout", "the server sent no response for 1 s"),
    ];
    for (answer, kind, expected) in cases {
        let (identity, api) = (Server::answering(answer), api("x-auth-token", &[]));
        let job = job(&api, login(&identity, json!({}))).limits(json!({"first_byte_seconds": 1, "connect_seconds": 1}));
        let response = call(&job, &json!([get(&api.url("/")), {"op": "session", "name": "main"}]));
        let outcomes = probe::outcomes_in(response.message());
        // The guest gets the kind of the failure; the operator gets its cause, in the error and in the log.
        failed(&outcomes[0], kind, false, &["login `main`"]);
        assert!(!outcomes[0].to_string().contains(expected), "{}", outcomes[0]);
        assert!(response.message().contains(expected), "{}", response.message());
        assert!(response.stderr.contains(expected), "{}", response.stderr);
        assert_eq!(outcomes[1]["error"]["kind"], kind, "{}", outcomes[1]);
        assert_eq!(api.connections(), 0);
        // The log names the origin of the login if it failed there; the guest never learns it.
        let login_origin = identity.origin();
        assert!(!outcomes[0].to_string().contains(&login_origin), "{}", outcomes[0]);
        assert!(response.stderr.contains(&login_origin), "{}", response.stderr);
        assert!(!response.json.to_string().contains("battery"));
    }
    let api = api("x-auth-token", &[]);
    let unreachable = json!({"to": "http://127.0.0.1:1"});
    failed(
        &outcomes(&job(&api, login(&api, unreachable)), &json!([get(&api.url("/"))]))[0],
        "connect",
        false,
        &["login `main`"],
    );
    let elsewhere = json!({"addresses": ["10.0.0.0/8"]});
    denied(
        &outcomes(&job(&api, login(&api, elsewhere)), &json!([get(&api.url("/"))]))[0],
        "address",
        &["login `main`"],
    );
}

#[test]
fn a_response_that_contains_the_token_is_withheld() {
    let identity = identity(Value::Null);
    let api = Server::start(|seen| Answer::ok(seen.header("x-auth-token").unwrap_or_default()));
    let outcome = outcomes(&job(&api, login(&identity, json!({}))), &json!([get(&api.url("/"))])).remove(0);
    failed(&outcome, "cancelled", true, &["the call is ending"]);
}

#[test]
fn the_guest_cannot_log_in_with_requests_of_its_own() {
    let (identity, api) = (identity(Value::Null), api("x-auth-token", &["-1"]));
    let outcomes = outcomes(
        &job(&api, login(&identity, json!({}))),
        &json!([
            post(&identity.url("/v3/tokens"), &json!({"password": "{{props.password}}"})),
            with(get(&api.url("/")), json!({"headers": {"X-Auth-Token": "mine"}})),
        ]),
    );
    denied(&outcomes[0], "port", &[]);
    denied(&outcomes[1], "header", &["is set by the auth of the grant `api`"]);
    assert_eq!((identity.connections(), api.connections()), (0, 0));
}
