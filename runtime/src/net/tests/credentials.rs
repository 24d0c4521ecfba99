//! Temporary keys: from the metadata service, of an assumed role, renewed and kept.

use super::fixture::{Fixture, Running, request};
use super::server::{Seen, Server, Wire, response};
use super::signatures::{SECRET, is_signed_by};
use crate::net::error::HttpErrorKind;
use crate::net::gate::GuestRequest;
use crate::net::proxy::ProxyConfig;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use wasm_cpi_policy::DenialReason;

const KEYS_PATH: &str = "/latest/meta-data/iam/security-credentials/";

fn in_seconds(seconds: i64) -> String {
    Timestamp::now().checked_add(SignedDuration::from_secs(seconds)).unwrap().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A metadata service. Its keys are `secret-number-N` with the tokens `session-number-N`; N counts how often they were
/// asked for, up to `newest`.
fn metadata(lifetime: i64, newest: usize) -> Server {
    let count = AtomicUsize::new(0);
    Server::plain(move |seen: &Seen, wire: &mut dyn Wire| {
        let token = seen.header("x-aws-ec2-metadata-token");
        let lifetime_of_token = seen.header("x-aws-ec2-metadata-token-ttl-seconds");
        let keys = format!("GET {KEYS_PATH}cpi-role HTTP/1.1");
        let list = format!("GET {KEYS_PATH} HTTP/1.1");
        let answer = match (seen.line(), token, lifetime_of_token) {
            ("PUT /latest/api/token HTTP/1.1", None, Some("60")) => response("200 OK", "", "metadata-token"),
            (line, Some("metadata-token"), None) if line == list => response("200 OK", "", "cpi-role\n"),
            (line, Some("metadata-token"), None) if line == keys => {
                let n = (count.fetch_add(1, Ordering::SeqCst) + 1).min(newest);
                let keys = json!({"Code": "Success", "Type": "HMAC", "AccessKeyId": format!("AKID{n}"),
                    "SecretAccessKey": format!("secret-number-{n}"), "Token": format!("session-number-{n}"),
                    "Expiration": in_seconds(lifetime)});
                response("200 OK", "Content-Type: text/plain\r\n", &keys.to_string())
            }
            _ => response("401 Unauthorized", "", ""),
        };
        wire.write_all(&answer).unwrap();
    })
}

/// Accepts requests that are signed with the keys of one of these numbers; answers others as the status and code say.
fn api(accepted: &'static [usize], status: &'static str, code: &'static str) -> Server {
    Server::plain(move |seen: &Seen, wire: &mut dyn Wire| {
        let accepts = |n: &usize| {
            let token = seen.header("x-amz-security-token") == Some(&format!("session-number-{n}"));
            token && is_signed_by(seen, &format!("secret-number-{n}"), "compute", Timestamp::now())
        };
        let refused = format!("<Response><Errors><Error><Code>{code}</Code></Error></Errors></Response>");
        let answer = match accepted.iter().any(accepts) {
            true => response("200 OK", "", "done"),
            false => response(status, "Content-Type: text/xml\r\n", &refused),
        };
        wire.write_all(&answer).unwrap();
    })
}

fn policy(api: &Server, credentials: Value) -> Value {
    let sigv4 = json!({"service": "compute", "region": "eu-central-1", "credentials": "main"});
    json!({"credentials": credentials, "http": [
        {"id": "api", "to": api.url(""), "methods": ["GET", "POST"], "paths": ["/**"], "auth": {"sigv4": sigv4}}]})
}

fn machine() -> Value {
    json!({"main": {"metadata": {}}})
}

fn fixture(policy: Value) -> Fixture {
    let properties = json!({"id": "AKIDBASE", "key": SECRET});
    Fixture { properties, ..Fixture::with(policy) }
}

fn start(policy: Value, metadata: &Server) -> Running {
    start_fixture(fixture(policy), metadata)
}

fn start_fixture(fixture: Fixture, metadata: &Server) -> Running {
    let mut running = fixture.start();
    running.gate = running.gate.with_metadata_at(metadata.address);
    running
}

fn paths(server: &Server) -> Vec<String> {
    server.requests().iter().map(|seen| seen.line().to_owned()).collect()
}

#[test]
fn keys_of_the_machine_are_asked_for_once() {
    let (metadata, api) = (metadata(3600, 9), api(&[1], "401 Unauthorized", "AuthFailure"));
    let running = start(policy(&api, machine()), &metadata);
    assert_eq!(metadata.connections(), 0);
    for _ in 0..3 {
        assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
    }
    let list = format!("GET {KEYS_PATH} HTTP/1.1");
    let keys = format!("GET {KEYS_PATH}cpi-role HTTP/1.1");
    assert_eq!(paths(&metadata), ["PUT /latest/api/token HTTP/1.1", &list, &keys]);
    for secret in ["secret-number-1", "session-number-1", "metadata-token"] {
        assert!(running.vault.leak_in(secret.as_bytes()).unwrap().is_some(), "{secret}");
        assert!(!running.vault.redact(&format!("it is {secret}!")).contains(secret));
    }
    let events = running.events();
    assert!(events[0].credentials.as_deref() == Some("main") && events[3].grant.as_deref() == Some("api"));
    assert!(events[0].to_string().contains("(credentials main; "), "{}", events[0]);
}

#[test]
fn the_metadata_service_is_never_asked_through_a_proxy() {
    let (metadata, api) = (metadata(3600, 9), api(&[1], "401 Unauthorized", "AuthFailure"));
    let proxy = Server::answering(response("200 OK", "", ""));
    let config: ProxyConfig = serde_json::from_value(json!({"http": format!("http://{}", proxy.address)})).unwrap();
    let running = start_fixture(Fixture { proxy: Some(config), ..fixture(policy(&api, machine())) }, &metadata);
    let _ = running.get(api.url("/x"));
    assert_eq!(paths(&metadata).len(), 3);
    assert!(paths(&proxy).iter().all(|line| !line.contains(&metadata.address.to_string())), "{:?}", paths(&proxy));
}

#[test]
fn expired_keys_are_renewed_once_in_whichever_status() {
    for (status, code) in [
        ("400 Bad Request", "RequestExpired"),
        ("400 Bad Request", "ExpiredTokenException"),
        ("401 Unauthorized", "AuthFailure"),
        ("403 Forbidden", "ExpiredToken"),
        ("403 Forbidden", "InvalidClientTokenId"),
    ] {
        let (metadata, api) = (metadata(3600, 9), api(&[2], status, code));
        let running = start(policy(&api, machine()), &metadata);
        assert_eq!(running.get(api.url("/x")).unwrap().status, 200, "{code}");
        assert_eq!(running.get(api.url("/x")).unwrap().status, 200, "{code}");
        assert_eq!((api.requests().len(), metadata.requests().len()), (3, 6), "{code}");
    }
}

#[test]
fn other_refusals_and_keys_that_stay_the_same_are_not_repeated() {
    for (status, code, newest, asked) in [
        // The service returns the same keys.
        ("403 Forbidden", "ExpiredToken", 1, 2),
        // Other refusals.
        ("403 Forbidden", "UnauthorizedOperation", 9, 1),
        ("500 Internal Server Error", "ExpiredToken", 9, 1),
    ] {
        let (metadata, api) = (metadata(3600, newest), api(&[], status, code));
        let running = start(policy(&api, machine()), &metadata);
        for _ in 0..3 {
            let seen = running.get(api.url("/x")).unwrap();
            assert!(String::from_utf8_lossy(&seen.body).contains(code));
        }
        assert_eq!((api.requests().len(), metadata.requests().len()), (3, 3 * asked), "{status} {code}");
    }
}

#[test]
fn keys_are_renewed_at_most_once_a_minute() {
    let (metadata, api) = (metadata(3600, 99), api(&[], "403 Forbidden", "ExpiredToken"));
    let running = start(policy(&api, machine()), &metadata);
    for _ in 0..5 {
        assert_eq!(running.get(api.url("/x")).unwrap().status, 403);
    }
    // The first request is repeated with the second keys; the others get the server's answer.
    assert_eq!((api.requests().len(), metadata.requests().len()), (6, 6));
}

#[test]
fn keys_are_renewed_before_they_expire() {
    // Of a short lifetime, a fifth is kept in reserve.
    let (metadata, api) = (metadata(5, 9), api(&[1, 2, 3], "403 Forbidden", "ExpiredToken"));
    let running = start(policy(&api, machine()), &metadata);
    running.get(api.url("/x")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(4300));
    running.get(api.url("/x")).unwrap();
    let tokens: Vec<String> =
        api.requests().iter().map(|seen| seen.header("x-amz-security-token").unwrap().to_owned()).collect();
    assert_eq!(tokens, ["session-number-1", "session-number-2"]);
}

#[test]
fn errors_of_the_metadata_service_have_fixed_words_for_the_guest() {
    let refused = HttpErrorKind::Denied(DenialReason::Credential);
    let after_token = |status: &'static str, body: &'static str| {
        Server::plain(move |seen: &Seen, wire: &mut dyn Wire| {
            let answer = match seen.line().starts_with("PUT") {
                true => response("200 OK", "", "metadata-token"),
                false => response(status, "", body),
            };
            wire.write_all(&answer).unwrap();
        })
    };
    for (server, kind, said) in [
        (Server::answering(response("403 Forbidden", "", "")), refused, "it is turned off for this machine"),
        (Server::answering(response("302 Found", "Location: http://127.0.0.1:1/\r\n", "")), refused, "HTTP 302"),
        (Server::answering(response("200 OK", "", "two\nlines")), HttpErrorKind::Protocol, "not one line of text"),
        (after_token("404 Not Found", ""), refused, "this machine has no role"),
        (after_token("401 Unauthorized", ""), refused, "its own token"),
        (after_token("200 OK", "../../user-data"), HttpErrorKind::Protocol, "the name of its role"),
        (after_token("200 OK", ".."), HttpErrorKind::Protocol, "the name of its role"),
        (after_token("200 OK", "role"), HttpErrorKind::Protocol, "its keys are not JSON"),
        (Server::answering(b"".to_vec()), HttpErrorKind::Protocol, "hop limit"),
    ] {
        let api = api(&[], "401 Unauthorized", "AuthFailure");
        let running = start(policy(&api, machine()), &server);
        let error = running.get(api.url("/x")).unwrap_err();
        assert_eq!((error.kind, error.sent, api.connections()), (kind, false, 0), "{said}: {error:?}");
        assert!(error.message.starts_with("iaas: the credentials `main` "), "{error}");
        assert!(error.message.ends_with("the log says where and why"), "{error}");
        assert!(error.detail.contains(said), "{said}: {}", error.detail);
    }
}

#[test]
fn three_failures_end_the_attempts() {
    let metadata = Server::answering(response("500 Oops", "", ""));
    let api = api(&[], "401 Unauthorized", "AuthFailure");
    let running = start(policy(&api, machine()), &metadata);
    for _ in 0..6 {
        running.get(api.url("/x")).unwrap_err();
    }
    assert_eq!((metadata.requests().len(), api.connections()), (3, 0));
}

const ROLE: &str = "arn:cloud:iam::123456789012:role/cpi";

/// A security token service, which accepts keys by their number (0: those of the properties), and returns keys of number 7.
fn token_service(accepted: usize) -> Server {
    Server::plain(move |seen: &Seen, wire: &mut dyn Wire| {
        let secret = if accepted == 0 { SECRET.to_owned() } else { format!("secret-number-{accepted}") };
        let expected = format!(
            "Action=AssumeRole&Version=2011-06-15&RoleArn={}&RoleSessionName=wasm-cpi&DurationSeconds=3600",
            "arn%3Acloud%3Aiam%3A%3A123456789012%3Arole%2Fcpi"
        );
        let fits = seen.line() == "POST / HTTP/1.1" && String::from_utf8_lossy(&seen.body) == expected;
        let xml = "Content-Type: text/xml\r\n";
        let answer = if !fits {
            response(
                "400 Bad Request",
                xml,
                "<ErrorResponse><Error><Code>ValidationError</Code></Error></ErrorResponse>",
            )
        } else if !is_signed_by(seen, &secret, "sts", Timestamp::now()) {
            response("403 Forbidden", xml, "<ErrorResponse><Error><Code>ExpiredToken</Code></Error></ErrorResponse>")
        } else {
            let keys = format!(
                "<AssumeRoleResponse xmlns=\"urn:x\"><AssumeRoleResult><AssumedRoleUser><Arn>{ROLE}</Arn></AssumedRoleUser>\
                 <Credentials><AccessKeyId>AKID7</AccessKeyId><SecretAccessKey>secret-number-7</SecretAccessKey>\
                 <SessionToken>session-number-7</SessionToken><Expiration>{}</Expiration></Credentials></AssumeRoleResult>\
                 <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></AssumeRoleResponse>",
                in_seconds(3600)
            );
            response("200 OK", xml, &keys)
        };
        wire.write_all(&answer).unwrap();
    })
}

fn assumed(service: &Server, with: Value) -> Value {
    let role = json!({"role": ROLE, "with": "base", "to": service.url(""), "region": "eu-central-1"});
    json!({"main": {"assume_role": role}, "base": with})
}

fn properties() -> Value {
    json!({"static": {"access_key_id": "${id}", "secret_access_key": "${key}", "session_token": "${unset}"}})
}

#[test]
fn a_role_is_assumed_with_static_keys_or_with_those_of_the_machine() {
    for (with, accepted) in [(properties(), 0), (json!({"metadata": {}}), 1)] {
        let (metadata, service, api) =
            (metadata(3600, 9), token_service(accepted), api(&[7], "401 Unauthorized", "AuthFailure"));
        let running = start(policy(&api, assumed(&service, with)), &metadata);
        for _ in 0..2 {
            assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
        }
        assert_eq!((service.requests().len(), metadata.requests().len()), (1, 3 * accepted));
        assert_eq!(
            running.vault.leak_in(b"secret-number-7").unwrap().as_deref(),
            Some("secret access key of credentials main")
        );
    }
}

#[test]
fn expired_keys_of_the_machine_are_renewed_while_a_role_is_assumed() {
    let (metadata, service, api) = (metadata(3600, 9), token_service(2), api(&[7], "401 Unauthorized", "AuthFailure"));
    let running = start(policy(&api, assumed(&service, json!({"metadata": {}}))), &metadata);
    assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
    assert_eq!((service.requests().len(), metadata.requests().len()), (2, 6));
}

#[test]
fn a_refused_role_is_explained_to_operators_alone() {
    let (metadata, service, api) = (metadata(3600, 1), token_service(9), api(&[], "401 Unauthorized", "AuthFailure"));
    let running = start(policy(&api, assumed(&service, properties())), &metadata);
    let error = running.get(api.url("/x")).unwrap_err();
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Denied(DenialReason::Credential), false));
    assert_eq!(error.message, "iaas: the credentials `main` were refused; the log says where and why");
    assert!(
        error.detail.contains("HTTP 403 (ExpiredToken)") && error.detail.contains("the properties id, key"),
        "{}",
        error.detail
    );
    for answer in ["<x/>", "<AssumeRoleResponse><Credentials/></AssumeRoleResponse>", "{}"] {
        let service = Server::answering(response("200 OK", "Content-Type: text/xml\r\n", answer));
        let running = start(policy(&api, assumed(&service, properties())), &metadata);
        assert_eq!(running.get(api.url("/x")).unwrap_err().kind, HttpErrorKind::Protocol, "{answer}");
    }
    assert_eq!(api.connections(), 0);
}

#[test]
fn the_token_service_is_reached_only_at_its_own_addresses() {
    let (metadata, service, api) = (metadata(3600, 1), token_service(0), api(&[7], "401 Unauthorized", "AuthFailure"));
    let mut policy = policy(&api, assumed(&service, properties()));
    policy["credentials"]["main"]["assume_role"]["addresses"] = json!("public");
    let running = start(policy, &metadata);
    let error = running.get(api.url("/x")).unwrap_err();
    assert_eq!((error.kind, service.connections()), (HttpErrorKind::Denied(DenialReason::Address), 0));
    assert!(!error.message.contains("127.0.0.1") && error.detail.contains("127.0.0.1"), "{error:?}");
}

fn cache() -> tempfile::TempDir {
    let cache = tempfile::tempdir().unwrap();
    std::fs::set_permissions(cache.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    cache
}

fn keeping(policy: Value, metadata: &Server, cache: &tempfile::TempDir) -> Running {
    start_fixture(Fixture { cache: Some(cache.path().to_owned()), ..fixture(policy) }, metadata)
}

#[test]
fn later_calls_use_the_keys_that_were_kept_unless_what_they_depend_on_has_changed() {
    let (metadata, service, api) = (metadata(3600, 9), token_service(0), api(&[1, 7], "403 Forbidden", "ExpiredToken"));
    let cache = cache();
    for _ in 0..3 {
        let running = keeping(policy(&api, machine()), &metadata, &cache);
        assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
        let role = keeping(policy(&api, assumed(&service, properties())), &metadata, &cache);
        assert_eq!(role.get(api.url("/x")).unwrap().status, 200);
    }
    assert_eq!((metadata.requests().len(), service.requests().len()), (3, 1));
    // A kept key is a secret before it is used.
    let later = keeping(policy(&api, machine()), &metadata, &cache);
    assert!(later.vault.leak_in(b"session-number-1").unwrap().is_some());
    let mut changed = policy(&api, assumed(&service, properties()));
    changed["credentials"]["main"]["assume_role"]["session_name"] = json!("other");
    assert!(keeping(changed, &metadata, &cache).get(api.url("/x")).is_err());
    assert_eq!(service.requests().len(), 2);
    for file in std::fs::read_dir(cache.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }
}

#[test]
fn kept_keys_that_a_server_refuses_are_renewed_once_a_minute_across_calls() {
    let (metadata, api) = (metadata(3600, 99), api(&[], "403 Forbidden", "ExpiredToken"));
    let cache = cache();
    for _ in 0..4 {
        let running = keeping(policy(&api, machine()), &metadata, &cache);
        for _ in 0..2 {
            assert_eq!(running.get(api.url("/x")).unwrap().status, 403);
        }
    }
    assert_eq!(metadata.requests().len(), 6);
    assert_eq!(api.requests().len(), 9);
}

#[test]
fn keys_that_expire_within_five_minutes_are_not_kept() {
    let (metadata, api) = (metadata(240, 9), api(&[1, 2], "403 Forbidden", "ExpiredToken"));
    let cache = cache();
    for _ in 0..2 {
        let running = keeping(policy(&api, machine()), &metadata, &cache);
        assert_eq!(running.get(api.url("/x")).unwrap().status, 200);
    }
    assert_eq!(metadata.requests().len(), 6);
}

#[test]
fn requests_that_are_sent_at_once_wait_for_the_same_keys() {
    let (metadata, api) = (metadata(3600, 9), api(&[2], "403 Forbidden", "ExpiredToken"));
    let running = start(policy(&api, machine()), &metadata);
    let all: Vec<GuestRequest> = (0..6).map(|n| request("GET", api.url(&format!("/{n}")))).collect();
    for (result, _) in running.send_all(all) {
        assert_eq!(result.unwrap().status, 200);
    }
    assert_eq!(metadata.requests().len(), 6);
}
