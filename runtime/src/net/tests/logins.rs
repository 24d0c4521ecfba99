mod kept_tokens;
mod waiting;

use super::fixture::{Fixture, Running, request};
use super::server::{Seen, Server, Wire, response};
use crate::image::{Image, ImagePart};
use crate::net::error::HttpErrorKind;
use crate::net::gate::{GuestBody, GuestRequest, HttpOutcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wasm_cpi_policy::DenialReason;

const PASSWORD: &str = "correct horse battery staple";

/// Issues the tokens `token-number-1`, `-2` and so on, which expire after `lifetime` seconds.
fn identity(lifetime: &'static str) -> Server {
    let count = AtomicUsize::new(0);
    Server::plain(move |_, wire| {
        let n = count.fetch_add(1, Ordering::SeqCst) + 1;
        let headers = format!("Content-Type: application/json\r\nX-Subject-Token: token-number-{n}\r\n");
        let body = json!({"expires_in": lifetime.parse::<f64>().unwrap_or(3600.0), "catalog": [{"url": "http://api"}], "n": n});
        wire.write_all(&response("201 Created", &headers, &body.to_string())).unwrap();
    })
}

/// Accepts the given tokens, and responds with 401 to all others.
fn api(accepted: &'static [&'static str]) -> Server {
    Server::plain(move |seen: &Seen, wire: &mut dyn Wire| {
        let known = seen.header("x-auth-token").is_some_and(|token| accepted.contains(&token));
        let status = if known { "200 OK" } else { "401 Unauthorized" };
        wire.write_all(&response(status, "", "done")).unwrap();
    })
}

fn policy(identity: &Server, api: &Server) -> Value {
    json!({
        "logins": {"main": {
            "to": identity.url(""), "path": "/v3/tokens", "headers": {"X-App": "${user}"},
            "body": {"auth": {"user": "${user}", "password": "${password}", "n": 1}},
            "token": "header:x-subject-token", "expires": {"in_seconds": "json:/expires_in"},
            "send": {"header": "X-Auth-Token"}, "show": {"catalog": "json:/catalog", "gone": "json:/gone"},
        }},
        "http": [{"id": "api", "to": api.url(""), "methods": ["GET", "POST", "PUT"], "paths": ["/**"], "auth": {"login": "main"}}],
    })
}

fn fixture(identity: &Server, api: &Server) -> Fixture {
    let properties = json!({"user": "admin-of-all", "password": PASSWORD});
    Fixture { properties, ..Fixture::with(policy(identity, api)) }
}

fn start(identity: &Server, api: &Server) -> Running {
    fixture(identity, api).start()
}

#[test]
fn a_login_is_made_once_and_its_token_is_sent_as_the_grant_says() {
    let (identity, api) = (identity("3600"), api(&["token-number-1"]));
    let running = start(&identity, &api);
    assert_eq!(identity.connections(), 0);
    for _ in 0..3 {
        assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
    }
    let shown: Value = serde_json::from_str(&running.session("main").unwrap()).unwrap();
    assert_eq!(shown, json!({"catalog": [{"url": "http://api"}], "gone": null}));
    let seen = identity.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].line(), seen[0].header("x-app")), ("POST /v3/tokens HTTP/1.1", Some("admin-of-all")));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_slice(&seen[0].body).unwrap();
    assert_eq!(body, json!({"auth": {"user": "admin-of-all", "password": PASSWORD, "n": 1}}));
    assert_eq!(running.vault.leak_in(b"see token-number-1").unwrap(), Some("token of login main".to_owned()));
}

#[test]
fn a_session_logs_in_if_needed_and_unknown_logins_are_denied() {
    let (identity, api) = (identity("3600"), api(&[]));
    let running = start(&identity, &api);
    running.session("main").unwrap();
    assert_eq!((identity.requests().len(), api.connections()), (1, 0));
    let error = running.session("other").unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Denied(DenialReason::Undeclared));
    assert!(error.message.contains("there are: main"), "{error}");
}

#[test]
fn after_a_401_the_request_is_repeated_with_a_new_token() {
    let (identity, api) = (identity("3600"), api(&["token-number-2"]));
    let running = start(&identity, &api);
    let body = GuestBody::Bytes(b"payload".to_vec());
    let response = running.send(GuestRequest { body, ..request("POST", api.url("/x")) }).unwrap();
    assert_eq!((response.status, identity.requests().len()), (200, 2));
    let seen = api.requests();
    assert!(seen.len() == 2 && seen.iter().all(|seen| seen.body == b"payload"));
    assert_eq!(running.gate.changes().len(), 1);
    assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
    assert_eq!(identity.requests().len(), 2);
}

#[test]
fn a_second_401_is_returned_to_the_guest() {
    let (identity, api) = (identity("3600"), api(&[]));
    let running = start(&identity, &api);
    assert_eq!(running.get(api.url("/x")).unwrap().status, 401);
    assert_eq!((identity.requests().len(), api.requests().len()), (2, 2));
    let events = running.events();
    let outcomes: Vec<_> =
        events.iter().map(|event| (event.login.as_deref(), event.grant.as_deref(), event.outcome)).collect();
    let login = (Some("main"), None, HttpOutcome::Status(201));
    let request = (None, Some("api"), HttpOutcome::Status(401));
    assert_eq!(outcomes, [login, login, request]);
    assert!(events[0].to_string().contains(" 201 (login main; "), "{}", events[0]);
    let local = Some(std::net::Ipv4Addr::LOCALHOST.into());
    assert!(events.iter().all(|event| event.address == local && event.sent), "{events:?}");
}

#[test]
fn the_number_of_logins_is_limited_if_a_server_rejects_all_tokens() {
    let (identity, api) = (identity("3600"), api(&[]));
    let running = start(&identity, &api);
    let error = (0..200).find_map(|_| running.get(api.url("/x")).err()).unwrap();
    assert!(error.kind == HttpErrorKind::Protocol && error.message.contains("100 times"), "{error}");
    assert_eq!(identity.requests().len(), 100);
}

#[test]
fn an_image_is_not_sent_again_after_a_401() {
    let (identity, api) = (identity("3600"), api(&["token-number-2"]));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    std::fs::write(&path, b"image").unwrap();
    let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
    let running = Fixture { image, ..fixture(&identity, &api) }.start();
    let upload = || GuestRequest { body: GuestBody::Image(ImagePart::Whole), ..request("PUT", api.url("/i")) };
    assert_eq!(running.send(upload()).unwrap().status, 401);
    assert_eq!((identity.requests().len(), api.requests().len()), (1, 1));
    // The token was dropped, so that the guest's own retry gets a new one.
    assert_eq!(running.send(upload()).unwrap().status, 200);
}

#[test]
fn an_expired_token_is_not_sent() {
    let (identity, api) = (identity("1"), api(&["token-number-1", "token-number-2"]));
    let running = start(&identity, &api);
    running.get(api.url("/x")).unwrap();
    std::thread::sleep(Duration::from_millis(900));
    running.get(api.url("/x")).unwrap();
    let tokens: Vec<String> =
        api.requests().iter().map(|seen| seen.header("x-auth-token").unwrap().to_owned()).collect();
    assert_eq!(tokens, ["token-number-1", "token-number-2"]);
}

#[test]
fn forms_prefixes_and_tokens_in_json_are_supported() {
    let headers = "Content-Type: application/json\r\n";
    let body = json!({"access_token": "abc/def+ghi=jkl", "expires_at": "2999-01-01T00:00:00Z"}).to_string();
    let identity = Server::answering(response("200 OK", headers, &body));
    let api = Server::answering(response("200 OK", "", ""));
    let mut policy = policy(&identity, &api);
    policy["logins"]["main"] = json!({
        "to": identity.url(""), "path": "/oauth/token", "form": {"grant_type": "client_credentials", "secret": "${password}"},
        "token": "json:/access_token", "expires": {"at": "json:/expires_at"}, "send": {"header": "Authorization", "prefix": "Bearer "},
    });
    let properties = json!({"password": "a&b=c d\u{e9}"});
    let running = Fixture { properties, ..Fixture::with(policy) }.start();
    running.get(api.url("/x")).unwrap();
    let seen = &identity.requests()[0];
    assert_eq!(seen.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(String::from_utf8_lossy(&seen.body), "grant_type=client_credentials&secret=a%26b%3Dc+d%C3%A9");
    assert_eq!(api.requests()[0].header("authorization"), Some("Bearer abc/def+ghi=jkl"));
    assert_eq!(running.session("main").unwrap(), "{}");
}

#[test]
fn the_error_of_a_failed_login_names_the_login_and_the_cause_without_secrets() {
    let json = "Content-Type: application/json\r\n";
    let echo = format!("{{\"error\": \"{PASSWORD}\"}}");
    let credential = HttpErrorKind::Denied(DenialReason::Credential);
    for (name, response, kind, said) in [
        ("401", response("401 Unauthorized", json, &echo), credential, "HTTP 401"),
        ("403", response("403 Forbidden", "", ""), credential, "HTTP 403"),
        ("500", response("500 Oops", "", &echo), HttpErrorKind::Protocol, "HTTP 500"),
        ("302", response("302 Found", "Location: http://127.0.0.1:1/\r\n", ""), HttpErrorKind::Protocol, "HTTP 302"),
        (
            "no token",
            response("200 OK", json, "{}"),
            HttpErrorKind::Protocol,
            "without a token in `header:x-subject-token`",
        ),
        ("no JSON", response("200 OK", "X-Subject-Token: t\r\n", "<a>"), HttpErrorKind::Protocol, "`catalog`"),
        ("silence", b"".to_vec(), HttpErrorKind::Protocol, "failed (protocol); the log says where and why"),
    ] {
        let (identity, api) = (Server::answering(response), api(&[]));
        let running = start(&identity, &api);
        let errors = [running.get(api.url("/x")).unwrap_err(), running.session("main").unwrap_err()];
        for error in errors {
            assert_eq!((error.kind, error.sent), (kind, false), "{name}: {error}");
            assert!(
                error.message.starts_with("iaas: login `main` ") && error.explained().contains(said),
                "{name}: {error:?}"
            );
            // The guest gets the kind of the outcome, and none of the server's words.
            assert!(!error.message.contains("HTTP") && !error.message.contains("token"), "{name}: {error}");
            assert!(!error.message.contains(PASSWORD) && !error.message.contains("127.0.0.1"), "{name}: {error}");
        }
        assert_eq!(api.connections(), 0, "{name}");
    }
}

#[test]
fn a_login_connects_only_to_its_own_addresses() {
    let (identity, api) = (identity("3600"), api(&[]));
    let mut policy = policy(&identity, &api);
    policy["logins"]["main"]["addresses"] = "public".into();
    let properties = json!({"user": "admin-of-all", "password": PASSWORD});
    let running = Fixture { properties, ..Fixture::with(policy) }.start();
    let error = running.get(api.url("/x")).unwrap_err();
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Denied(DenialReason::Address), false));
    assert!(error.message.contains("login `main` may not reach the address of its server"), "{error}");
    assert!(error.detail.starts_with("policy: login `main` does not reach http://"), "{}", error.detail);
    assert_eq!((identity.connections(), api.connections()), (0, 0));
}

#[test]
fn a_guest_cannot_set_or_see_the_token() {
    let identity = identity("3600");
    let echo = Server::plain(|seen, wire| {
        let token = seen.header("x-auth-token").unwrap_or_default().to_owned();
        wire.write_all(&response("200 OK", "", &token)).unwrap();
    });
    let running = start(&identity, &echo);
    let own = GuestRequest { headers: vec![("X-Auth-Token".into(), "mine".into())], ..request("GET", echo.url("/x")) };
    assert_eq!(running.send(own).unwrap_err().kind, HttpErrorKind::Denied(DenialReason::Header));
    let error = running.get(echo.url("/x")).unwrap_err();
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Denied(DenialReason::Leak), true));
    assert!(!error.explained().contains("token-number"), "{error:?}");
}
