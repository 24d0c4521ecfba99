//! Responses that hold a credential: they are withheld, end the call and are remembered.

use super::fixture::{Fixture, post};
use super::gates::{PASSWORD, basic, grant, refusal, with_password};
use super::server::{Server, response};
use crate::leak_latch::{LatchKey, LeakLatch};
use crate::net::error::HttpErrorKind;
use serde_json::json;
use wasm_cpi_policy::DenialReason;

#[test]
fn a_response_with_a_credential_is_withheld_and_only_the_operator_learns_why() {
    let echo = Server::plain(|seen, wire| {
        let header = seen.header("authorization").unwrap_or_default().to_owned();
        let (headers, body) = if seen.line().contains("/body") {
            (String::new(), header)
        } else {
            (format!("X-Echo: {header}\r\n"), String::new())
        };
        wire.write_all(&response("200 OK", &headers, &body)).unwrap();
    });
    let running = with_password(Fixture::new(json!([grant(&echo, Some(basic()))]))).start();
    assert_eq!(running.gate.leak(), None);
    for (path, count) in [("/v1/body", 1), ("/v1/header", 2)] {
        let error = refusal(running.get(echo.url(path)));
        assert_eq!((error.kind, error.sent), (HttpErrorKind::Denied(DenialReason::Leak), true), "{error}");
        assert_eq!(error.message, "policy: the call is ending");
        assert!(error.detail.contains("`password`") && error.detail.contains(path), "{error:?}");
        assert!(error.detail.contains("`drop`") && !error.detail.contains(PASSWORD), "{error:?}");
        let leak = running.gate.leak().unwrap();
        // The first one is what the operator has to look at.
        assert_eq!((leak.secret.as_str(), leak.count), ("password", count));
        assert!(leak.place.ends_with("/v1/body"), "{leak:?}");
    }
}

#[test]
fn a_leak_is_remembered_at_once() {
    let echo = Server::plain(|seen, wire| {
        let header = seen.header("authorization").unwrap_or_default().to_owned();
        wire.write_all(&response("200 OK", "", &header)).unwrap();
    });
    let cache = tempfile::tempdir().unwrap();
    std::fs::set_permissions(cache.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let key = LatchKey { config: "/job/cpi.json".into(), module: None, guest_sha256: "00" };
    let open = || LeakLatch::open(cache.path(), &key).unwrap();
    let mut running = with_password(Fixture::new(json!([grant(&echo, Some(basic()))]))).start();
    running.gate = running.gate.with_latch(Some(std::sync::Arc::new(open().for_call("has_vm", None))));
    refusal(running.get(echo.url("/v1/x")));
    let latch = open();
    let recorded = latch.recorded().unwrap();
    assert_eq!((recorded.secret.as_str(), recorded.method.as_str()), ("password", "has_vm"));
    assert!(recorded.place.contains("GET http://") && recorded.place.ends_with("/v1/x"), "{recorded:?}");
}

#[test]
fn a_leak_ends_the_other_running_calls_of_the_guest() {
    let server = Server::answering(response("200 OK", "", "{}"));
    let cache = tempfile::tempdir().unwrap();
    std::fs::set_permissions(cache.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let key = LatchKey { config: "/job/cpi.json".into(), module: None, guest_sha256: "00" };
    let open = || LeakLatch::open(cache.path(), &key).unwrap().for_call("has_vm", None);
    let mut running = Fixture::new(json!([grant(&server, None)])).start();
    running.gate = running.gate.with_latch(Some(std::sync::Arc::new(open())));
    assert!(running.get(server.url("/v1/x")).is_ok());
    open().record("password", "the response to GET https://a.test/").unwrap();
    let error = refusal(running.get(server.url("/v1/x")));
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Denied(DenialReason::Leak), true), "{error}");
    assert!(error.detail.contains("in another call of this guest (`has_vm`"), "{error:?}");
    assert_eq!(running.gate.leak().unwrap().secret, "password");
    // It has ended once. Requests that clean up are answered.
    assert!(running.get(server.url("/v1/x")).is_ok());
}

#[test]
fn a_guess_that_was_captured_is_not_searched_for_in_headers_that_are_removed() {
    let server = Server::plain(|seen, wire| {
        let answer = match seen.line().contains("/keys") {
            true => response("200 OK", "Content-Type: application/json\r\n", "{\"key\":\"d41d8cd98f00b204\"}"),
            false => response("200 OK", "ETag: \"d41d8cd98f00b204e980\"\r\nX-Body-Len: 16\r\n", "{\"id\":7,\"pin\":1}"),
        };
        wire.write_all(&answer).unwrap();
    });
    let mut granted = grant(&server, None);
    granted["captures"] = json!([{"method": "POST", "path": "/v1/keys", "place": "json:/key", "as": "guess"}]);
    granted["drop"] = json!(["json:/pin"]);
    let running = Fixture::new(json!([granted])).start();
    running.send(post(server.url("/v1/keys"), &json!({}))).unwrap();
    let answer = running.get(server.url("/v1/x")).unwrap();
    assert_eq!(answer.body, b"{\"id\":7}");
    assert!(
        !answer.headers.iter().any(|(name, _)| ["etag", "x-body-len"].contains(&name.as_str())),
        "{:?}",
        answer.headers
    );
}
