//! Responses that hold a credential: they are withheld, end the call and are remembered.

use super::fixture::{Fixture, post};
use super::gates::{PASSWORD, basic, grant, refusal, with_password};
use super::server::{Server, response};
use crate::guest_of_job::GuestOfJob;
use crate::leak_latch::LeakLatch;
use crate::net::error::HttpErrorKind;
use crate::net::response::agent_settings::MARKER;
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
    let key = GuestOfJob { config: "/job/cpi.json".into(), module: None, guest_sha256: "00" };
    let open = || LeakLatch::open(cache.path(), &key).unwrap();
    let fixture = with_password(Fixture::new(json!([grant(&echo, Some(basic()))])));
    let running = Fixture { latch: Some(open().for_call("has_vm", None)), ..fixture }.start();
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
    let key = GuestOfJob { config: "/job/cpi.json".into(), module: None, guest_sha256: "00" };
    let open = || LeakLatch::open(cache.path(), &key).unwrap().for_call("has_vm", None);
    let running = Fixture { latch: Some(open()), ..Fixture::new(json!([grant(&server, None)])) }.start();
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
fn a_value_that_is_removed_or_captured_does_not_decide_whether_an_answer_is_shown() {
    let server = Server::plain(|seen, wire| {
        let line = seen.line().to_owned();
        let (path, hidden) = line.split(' ').nth(1).unwrap().rsplit_once('/').unwrap();
        let hidden = if hidden == "other" { "p\u{e4}ssword" } else { hidden };
        let json = "Content-Type: application/json\r\n";
        // Together with `7`, the texts of one column are the marker of agent settings.
        let column = |name: &str| {
            let texts = ["wasm-cpi-agent-", "settings-5e0c", hidden, "a41d29b"].map(|text| json!({ name: text }));
            json!({"agent_id": 1, "list": texts}).to_string()
        };
        let nested = json!([{"data": column("password")}, {"id": 2}]).to_string();
        let latin1 = "Content-Type: application/json; charset=iso-8859-1\r\n";
        let cookie =
            format!("{json}X-A: wasm-cpi-agent-\r\nX-B: settings-5e0c\r\nX-Auth-Token: {hidden}\r\nX-D: a41d29b\r\n");
        let element = |text: &str| format!("<adminPass>{text}</adminPass>");
        let xml = ["wasm-cpi-agent-", "settings-5e0c", hidden, "a41d29b"].map(element).concat();
        let (headers, body) = match path {
            "/v1/blanked" => (json, column("password")),
            "/v1/nested" => (json, nested),
            "/v1/captured" => (json, column("text")),
            "/v1/header" => (cookie.as_str(), "{}".to_owned()),
            "/v1/xml" => ("Content-Type: text/xml\r\n", format!("<r>{xml}</r>")),
            _ => (latin1, json!({"id": 1, "adminPass": hidden}).to_string()),
        };
        wire.write_all(&response("200 OK", headers, &body)).unwrap();
    });
    let mut granted = grant(&server, Some(basic()));
    granted["captures"] =
        json!([{"method": "GET", "path": "/v1/captured/*", "place": "json:/list/2/text", "as": "captured"}]);
    let running = with_password(Fixture::new(json!([granted]))).start();
    for (path, is_shown) in
        [("blanked", true), ("nested", true), ("captured", true), ("header", true), ("xml", true), ("latin1", false)]
    {
        let seen = ["7", "8", "other"].map(|hidden| running.get(server.url(&format!("/v1/{path}/{hidden}"))).is_ok());
        assert_eq!(seen, [is_shown; 3], "{path}");
    }
}

#[test]
fn a_console_with_agent_settings_is_withheld_and_is_no_leak() {
    let settings = format!("{{\"_{MARKER}\":true,\"password\":\"{PASSWORD}\",\"__{MARKER}\":true}}");
    for (console, is_leak) in [(format!("boot\n{settings}"), false), (format!("boot\npassword: {PASSWORD}"), true)] {
        let wide: String = console.chars().flat_map(|c| [c, '\0']).collect();
        for body in [&console, &wide] {
            let server = Server::answering(response("200 OK", "Content-Type: text/plain\r\n", body));
            let running = with_password(Fixture::new(json!([grant(&server, Some(basic()))]))).start();
            assert!(running.get(server.url("/v1/console")).is_err());
            assert_eq!(running.gate.leak().is_some(), is_leak, "{body}");
        }
    }
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
