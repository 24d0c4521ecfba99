use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::bindings::bosh::cpi::http::Body;
use crate::fake::{Answer, Fake};

#[derive(Debug, Deserialize, PartialEq)]
struct Server {
    id: String,
}

const URL: &str = "https://cloud.example/servers";

#[test]
fn a_request_arrives_as_it_was_built() {
    let host = Fake::new().on("POST", "https://cloud.example/servers?dry%20run=1", Answer::text(202, "")).install();
    post(URL)
        .query("dry run", "1")
        .header("x-a", "b")
        .json(&json!({"name": "n"}))
        .timeout(Duration::from_secs(3))
        .send()
        .unwrap();
    let sent = &host.requests()[0];
    assert_eq!(sent.headers, [("x-a".into(), "b".into()), ("content-type".into(), "application/json".into())]);
    assert_eq!(sent.body, Body::Bytes(br#"{"name":"n"}"#.to_vec()));
    assert_eq!(sent.timeout_ms, Some(3000));
}

#[test]
fn every_body_has_its_content_type() {
    let host = Fake::new().on("PUT", URL, Answer::text(200, "")).install();
    put(URL).form(&[("a", "1 2")]).send().unwrap();
    put(URL).bytes("text/plain", "x").send().unwrap();
    put(URL).image(ImagePart::Member("root.img".into())).send().unwrap();
    let sent: Vec<_> = host.requests().into_iter().map(|r| (r.headers[0].1.clone(), r.body)).collect();
    assert_eq!(
        sent,
        [
            ("application/x-www-form-urlencoded".into(), Body::Bytes(b"a=1+2".to_vec())),
            ("text/plain".into(), Body::Bytes(b"x".to_vec())),
            ("application/octet-stream".into(), Body::Image(ImagePart::Member("root.img".into()))),
        ]
    );
}

#[test]
fn a_body_that_cannot_be_json_is_not_sent() {
    let host = Fake::new().install();
    let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = post(URL).json(&keys).send().unwrap_err();
    assert!(matches!(error.cause, Cause::Build(_)) && !error.sent(), "{error}");
    assert!(host.requests().is_empty());
}

#[test]
fn responses_are_checked_and_parsed() {
    let _host = Fake::new()
        .on("GET", URL, Answer::json(200, json!({"id": "s1"})).header("etag", "7"))
        .on("GET", "https://cloud.example/gone", Answer::json(404, json!({"error": {"message": "no such"}})))
        .on("GET", "https://cloud.example/bad", Answer::json(200, json!({"id": 5})))
        .install();
    let response = get(URL).send().unwrap().ok().unwrap();
    assert_eq!(response.header("etag"), Some("7"));
    assert_eq!(response.text().unwrap(), r#"{"id":"s1"}"#);
    assert_eq!(response.json::<Server>().unwrap(), Server { id: "s1".into() });
    assert!(response.clone().expect(&[200, 202]).is_ok());
    assert_eq!(response.expect(&[204]).unwrap_err().status(), Some(200));

    let gone = get("https://cloud.example/gone").query("secret", "x").send();
    assert!(gone.is_err(), "the fake has no answer for that query");
    let gone = get("https://cloud.example/gone").send().unwrap();
    assert_eq!(gone.clone().found().unwrap(), None);
    let error = gone.ok().unwrap_err();
    assert!(error.is_not_found() && error.sent());
    assert_eq!(crate::Error::from(error).message, "GET https://cloud.example/gone: the cloud answered 404: no such");

    let error = get("https://cloud.example/bad").send().unwrap().json::<Server>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "GET https://cloud.example/bad: the response's body.id: invalid type: integer `5`, expected a string"
    );
}

#[test]
fn a_denial_has_its_reason_and_messages_omit_the_query() {
    let _host = Fake::new().install();
    let error = get("https://evil.example/x?token=abc").retries(5).send().unwrap_err();
    assert_eq!(error.denial(), Some(Denial::Undeclared));
    assert!(!error.sent());
    assert_eq!(error.request, "GET https://evil.example/x");
}

#[test]
fn an_error_names_its_request_once() {
    let error = |message: &str| {
        let (kind, message) = (TransportError::Denied(Denial::Host), message.to_owned());
        let cause = Cause::Transport { kind, message, sent: false };
        RequestError { request: "GET https://a.example/x".to_owned(), cause }.to_string()
    };
    let named = "policy: the policy refuses GET https://a.example/x: no grant names the host";
    assert_eq!(error(named), named);
    let unnamed = "iaas: the connection was closed";
    assert_eq!(error(unnamed), format!("GET https://a.example/x: {unnamed}"));
    // Another request, whose URL begins with the same text.
    let other = "policy: the policy refuses GET https://a.example/xy: no grant names the host";
    assert_eq!(error(other), format!("GET https://a.example/x: {other}"));
}

#[test]
fn a_repeatable_post_is_retried_like_a_put() {
    let host = Fake::new().on("POST", URL, Answer::text(500, "")).on("POST", URL, Answer::text(200, "")).install();
    assert_eq!(post(URL).repeatable().retries(1).send().unwrap().status, 200);
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn an_unrepeatable_put_is_retried_like_a_post() {
    for (status, times) in [(500, 1), (429, 2)] {
        let host = Fake::new().on("PUT", URL, Answer::text(status, "")).on("PUT", URL, Answer::text(200, "")).install();
        put(URL).unrepeatable().retries(1).send().unwrap();
        assert_eq!(host.requests().len(), times, "{status}");
    }
}

#[test]
fn only_safe_requests_are_retried() {
    let fail = |kind, sent| Answer::fail(kind, "failed", sent);
    for (method, answer, again) in [
        ("GET", Answer::text(503, ""), true),
        ("GET", Answer::text(500, ""), true),
        ("GET", Answer::text(501, ""), false),
        ("POST", Answer::text(500, ""), false),
        ("GET", Answer::text(404, ""), false),
        ("POST", Answer::text(503, ""), false),
        ("POST", Answer::text(429, ""), true),
        ("POST", fail(TransportError::Connect, false), true),
        ("POST", fail(TransportError::Timeout, true), false),
        ("PATCH", fail(TransportError::Truncated, true), false),
        ("DELETE", fail(TransportError::Timeout, true), true),
        ("PUT", fail(TransportError::Protocol, true), true),
        ("GET", fail(TransportError::Dns, false), true),
        ("GET", fail(TransportError::Tls, false), false),
        ("GET", fail(TransportError::InvalidRequest, false), false),
        ("GET", fail(TransportError::Limit("http_requests".into()), false), false),
        ("GET", fail(TransportError::Denied(Denial::Host), false), false),
        ("GET", fail(TransportError::Cancelled, false), false),
    ] {
        let name = format!("{method} {answer:?}");
        let host = Fake::new().on(method, URL, answer).on(method, URL, Answer::text(200, "")).install();
        let outcome = Request::new(method, URL).retries(1).send();
        assert_eq!(host.requests().len(), if again { 2 } else { 1 }, "{name}");
        assert_eq!(outcome.is_ok_and(|response| response.status == 200), again, "{name}");
    }
}

#[test]
fn pauses_grow_and_follow_retry_after() {
    let host = Fake::new()
        .on("GET", URL, Answer::text(503, ""))
        .on("GET", URL, Answer::text(503, ""))
        .on("GET", URL, Answer::text(429, "").header("retry-after", "7"))
        .on("GET", URL, Answer::text(429, "").header("retry-after", "86400"))
        .install();
    assert_eq!(get(URL).retries(4).send().unwrap().status, 429);
    assert_eq!(host.sleeps(), [1000, 2000, 7000, 60000]);
}

#[test]
fn an_ending_call_returns_the_last_response() {
    let host = Fake::new().on("GET", URL, Answer::text(503, "busy")).end_after_ms(1500).install();
    assert_eq!(get(URL).retries(9).send().unwrap().status, 503);
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn a_session_is_parsed() {
    let _host = Fake::new().session("main", json!({"id": "s"})).install();
    assert_eq!(session::<Server>("main").unwrap(), Server { id: "s".into() });
    assert!(session::<Server>("other").unwrap_err().to_string().starts_with("login `other`: "));
    assert!(session::<Vec<u8>>("main").unwrap_err().to_string().contains("expected a sequence"));
}

#[test]
fn requests_that_are_sent_at_once_keep_their_order_and_their_own_retries() {
    let url = |name: &str| format!("https://cloud.example/{name}");
    let host = Fake::new()
        .on("GET", &url("a"), Answer::text(503, ""))
        .on("GET", &url("a"), Answer::text(200, "a"))
        .on("GET", &url("b"), Answer::text(404, ""))
        .on("GET", &url("c"), Answer::text(429, "").header("retry-after", "5"))
        .on("GET", &url("c"), Answer::text(200, "c"))
        .install();
    let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    let invalid = post(url("d")).json(&keys);
    let requests = [get(url("a")).retries(2), get(url("b")).retries(2), invalid, get(url("c")).retries(1)];
    let outcomes = send_all(requests);
    let statuses: Vec<Option<u16>> =
        outcomes.iter().map(|outcome| outcome.as_ref().ok().map(|response| response.status)).collect();
    assert_eq!(statuses, [Some(200), Some(404), None, Some(200)]);
    assert!(matches!(outcomes[2].as_ref().unwrap_err().cause, Cause::Build(_)));
    // The second round has only the two that can be repeated, after the longer of their pauses.
    assert_eq!((host.requests().len(), host.sleeps()), (5, vec![5000]));
    let logged: Vec<String> = host.logs().into_iter().map(|(_, line)| line).collect();
    let expected = ["a: status 503; retrying in 5 s", "c: status 429; retrying in 5 s"];
    assert_eq!(logged, expected.map(|line| format!("GET https://cloud.example/{line}")));
    assert!(send_all([]).is_empty());
}

#[test]
fn an_ending_call_keeps_the_outcomes_of_the_first_round() {
    let host = Fake::new().on("GET", URL, Answer::text(503, "busy")).end_after_ms(500).install();
    let outcomes = send_all([get(URL).retries(3), get(URL).retries(3)]);
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap().status == 503));
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn a_block_that_is_refused_is_an_error_with_the_clouds_message() {
    let refused = Answer::json(403, json!({"message": "no quota"}));
    let host = Fake::new().image([1; 5]).on("PUT", "https://cloud.example/b/1", refused).install();
    let upload = put_blocks("https://cloud.example/b/{index}?x=1", 5).first_index(1);
    let error = upload.send().unwrap_err();
    assert_eq!(error.denial(), Some(Denial::Undeclared), "the fake has no answer for that query");
    let error = put_blocks("https://cloud.example/b/{index}", 5).first_index(1).send().unwrap_err();
    assert_eq!(error.to_string(), "PUT https://cloud.example/b/{index}: the cloud answered 403: no quota");
    assert!(put_blocks(URL, 0).send().is_err() && put_blocks(URL, 5).member("none").send().is_err());
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn a_body_of_parts_is_sent_as_it_is() {
    let host = Fake::new().on("POST", URL, Answer::text(200, "")).install();
    let parts = vec![BodyPart::Bytes(b"a".to_vec()), BodyPart::Image(ImagePart::Whole)];
    post(URL).parts("multipart/form-data; boundary=b", parts.clone()).send().unwrap();
    assert_eq!(host.requests()[0].body, Body::Parts(parts));
}
