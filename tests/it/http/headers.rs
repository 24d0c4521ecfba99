//! Headers of a guest: those that only the host sets, and those that are denied where a
//! grant sends secrets.

use serde_json::{Value, json};
use tests::Job;
use tests::cloud::{answered, denied, failed, get, job, outcomes};
use tests::servers::{Answer, Server, with};

fn with_header(server: &Server, name: &str, value: &str) -> Value {
    with(get(&server.url("/")), json!({"headers": [[name, value]]}))
}

fn run(job: &Job, server: &Server, headers: &[(&str, &str)]) -> Vec<Value> {
    let requests: Vec<Value> = headers.iter().map(|(name, value)| with_header(server, name, value)).collect();
    outcomes(job, &json!(requests))
}

fn job_with_secret(server: &Server) -> Job {
    job(json!([with(server.grant("api"), json!({"auth": {"bearer": "${password}"}, "plain_http": true}))]))
}

#[test]
fn headers_for_framing_and_routing_are_invalid() {
    let server = Server::answering(Answer::ok(""));
    let headers = [
        ("Host", "evil.test"),
        ("host", ""),
        (":authority", "evil.test"),
        (":path", "/x"),
        ("Content-Length", "5"),
        ("content-length", "+5"),
        ("Content-Length", "5, 5"),
        ("Transfer-Encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("Connection", "keep-alive"),
        ("Connection", "x-secret"),
        ("Upgrade", "h2c"),
        ("TE", "trailers"),
        ("Trailer", "x"),
        ("Expect", "100-continue"),
        ("Keep-Alive", "1"),
        ("Proxy-Authorization", "Basic x"),
        ("Proxy-Connection", "close"),
        ("proxy-anything", "x"),
        ("HTTP2-Settings", "x"),
    ];
    for (header, outcome) in headers.iter().zip(run(&job(json!([server.grant("api")])), &server, &headers)) {
        assert_eq!(outcome["error"]["kind"], "invalid-request", "{header:?}: {outcome}");
        failed(&outcome, "invalid-request", false, &["guest: "]);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn headers_with_control_characters_or_invalid_names_are_invalid() {
    let server = Server::answering(Answer::ok(""));
    let headers = [
        ("X-A", "b\r\nHost: evil.test"),
        ("X-A", "b\nc: d"),
        ("X-A", "b\rc"),
        ("X-A", "b\0c"),
        ("X-A", "\u{7f}"),
        ("X-A", "b\u{85}c"),
        ("X A", "b"),
        ("X-A:", "b"),
        ("X-A\r\nB", "c"),
        ("", "b"),
        ("X-Ä", "b"),
        ("X-A\0", "b"),
        ("(X)", "b"),
    ];
    for (header, outcome) in headers.iter().zip(run(&job(json!([server.grant("api")])), &server, &headers)) {
        assert_eq!(outcome["error"]["kind"], "invalid-request", "{header:?}: {outcome}");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn credentials_of_the_guest_are_denied_where_the_grant_sends_credentials() {
    let server = Server::answering(Answer::ok(""));
    let headers = [
        ("Authorization", "Bearer mine"),
        ("authorization", ""),
        ("Cookie", "a=b"),
        ("X-Auth-Token", "mine"),
        ("X-Amz-Security-Token", "mine"),
        ("x-amz-anything", "mine"),
        ("X-Goog-Signature", "mine"),
        ("Accept-Encoding", "gzip"),
        ("Range", "bytes=0-5"),
    ];
    for (header, outcome) in headers.iter().zip(run(&job_with_secret(&server), &server, &headers)) {
        assert_eq!(outcome["error"]["reason"], "header", "{header:?}: {outcome}");
        denied(&outcome, "header", &["policy: ", &header.0.to_ascii_lowercase(), "leave it out"]);
    }
    let queries = [
        "token=x",
        "access_token=x",
        "a=b&TOKEN=x",
        "api_key=x",
        "sig=x",
        "signature=x",
        "X-Amz-Signature=x",
        "x-goog-credential=x",
        "auth_token=",
        "%74oken=x",
        "x-auth-token",
    ];
    let requests: Vec<Value> = queries.iter().map(|query| get(&server.url(&format!("/?{query}")))).collect();
    for (query, outcome) in queries.iter().zip(outcomes(&job_with_secret(&server), &json!(requests))) {
        assert_eq!(outcome["error"]["reason"], "header", "{query}: {outcome}");
        denied(&outcome, "header", &["is a credential", "leave it out"]);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_grant_without_secrets_allows_credentials_of_the_guest_except_authorization() {
    let server = Server::answering(Answer::ok(""));
    let job = job(json!([server.grant("api")]));
    let headers = [("Cookie", "a=b"), ("X-Auth-Token", "mine"), ("X-Empty", "")];
    for outcome in run(&job, &server, &headers) {
        answered(&outcome, 200);
    }
    for (seen, (name, value)) in server.requests().iter().zip(headers) {
        assert_eq!(seen.header(name), Some(value));
    }
    denied(&run(&job, &server, &[("Authorization", "Basic eDp5")])[0], "header", &["`auth`"]);
    answered(&outcomes(&job, &json!([get(&server.url("/?token=x"))]))[0], 200);
    assert_eq!(server.requests().len(), headers.len() + 1);
}

#[test]
fn headers_that_override_the_method_path_or_client_are_denied() {
    let server = Server::answering(Answer::ok(""));
    let headers = [
        ("X-HTTP-Method-Override", "DELETE"),
        ("X-HTTP-Method", "DELETE"),
        ("X-Method-Override", "DELETE"),
        ("X-Original-URL", "/admin"),
        ("X-Rewrite-URL", "/admin"),
        ("X-Forwarded-Host", "evil.test"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("Forwarded", "for=10.0.0.1"),
        ("X-Real-IP", "10.0.0.1"),
    ];
    for (header, outcome) in headers.iter().zip(run(&job(json!([server.grant("api")])), &server, &headers)) {
        assert_eq!(outcome["error"]["reason"], "header", "{header:?}: {outcome}");
        denied(&outcome, "header", &["could change what the policy judged; leave it out"]);
    }
    assert_eq!(server.connections(), 0);
}
