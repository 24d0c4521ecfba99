use super::fixture::{Fixture, Running, post, request};
use super::handshakes::{Authority, trusted};
use super::run;
use super::server::{Server, response};
use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::gate::{Gate, GuestBody, GuestRequest, GuestResponse, HttpOutcome};
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::{DenialReason, Endpoint};

pub(super) const PASSWORD: &str = "correct horse battery staple";

fn hello() -> Server {
    Server::answering(response("200 OK", "", "hello"))
}

pub(super) fn grant(server: &Server, auth: Option<Value>) -> Value {
    let mut grant = json!({"id": "api", "to": server.url(""), "methods": ["GET", "POST"], "paths": ["/v1/**"]});
    if let Some(auth) = auth {
        grant["auth"] = auth;
    }
    grant
}

pub(super) fn with_password(fixture: Fixture) -> Fixture {
    Fixture { properties: json!({"user": "admin", "password": PASSWORD}), ..fixture }
}

pub(super) fn refusal(result: Result<GuestResponse, HttpError>) -> HttpError {
    let error = result.expect_err("a refusal");
    assert!(!error.message.contains(PASSWORD) && !error.message.contains("hunter2"), "{error}");
    error
}

pub(super) fn basic() -> Value {
    json!({"basic": {"user": "${user}", "password": "${password}"}})
}

#[test]
fn an_abandoned_request_was_sent_if_the_gate_had_begun_to_send_it() {
    let silent = Server::plain(|_, _| std::thread::sleep(Duration::from_millis(500)));
    let running = Fixture::new(json!([grant(&silent, None)])).start();
    assert!(running.abandon(request("GET", silent.url("/v1/x")), Duration::from_millis(200)));
    assert!(running.events()[0].sent);
}

#[test]
fn futures_of_the_gate_may_move_between_threads() {
    fn moves<T: Send>(_: T) {}
    let gate = Fixture::new(json!([])).start().gate;
    moves(Gate::send(&gate, request("GET", "http://a.test/"), Instant::now(), &AtomicBool::new(false)));
    moves(Gate::session(&gate, "x", Instant::now()));
}

#[test]
fn a_request_gets_the_credential_of_its_grant_and_no_other() {
    for (auth, header, value) in [
        (basic(), "authorization", "Basic YWRtaW46Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ=="),
        (json!({"bearer": "${password}"}), "authorization", "Bearer correct horse battery staple"),
        (json!({"header": {"name": "X-Key", "value": "key ${password}"}}), "x-key", "key correct horse battery staple"),
    ] {
        let server = hello();
        let running = with_password(Fixture::new(json!([grant(&server, Some(auth))]))).start();
        let response = running.get(server.url("/v1/x?q=1")).unwrap();
        assert_eq!((response.status, response.body.as_slice()), (200, b"hello".as_slice()));
        let seen = &server.requests()[0];
        assert_eq!((seen.line(), seen.header(header)), ("GET /v1/x?q=1 HTTP/1.1", Some(value)));
    }
    let server = hello();
    let running = with_password(Fixture::new(json!([grant(&server, None)]))).start();
    running.get(server.url("/v1/x")).unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn fields_about_the_query_do_not_allow_the_body_of_a_get() {
    let server = hello();
    let with = |places: Value, others: &str| {
        let mut grant = grant(&server, None);
        grant["query"] = json!(["name"]);
        if !places.is_null() {
            grant["fields"] = json!([{"method": "GET", "path": "/v1/x", "places": places, "others": others}]);
        }
        let running = Fixture::new(json!([grant])).start();
        let filter = post(server.url("/v1/x?name=vm-1"), &json!({"prefix": {"user_data": "h"}}));
        running.send(GuestRequest { method: "GET".into(), ..filter }).map_err(|error| error.check)
    };
    let prefix = json!({"json:/prefix/user_data": {"is": "h"}, "query:name": "any"});
    for places in
        [Value::Null, json!({"query:name": {"pattern": "vm-[0-9]"}}), json!({"header:X-A": "any"}), prefix.clone()]
    {
        assert_eq!(with(places.clone(), "allow").unwrap_err(), Some(Check::ReadBody), "{places}");
    }
    assert!(with(json!({"json:/prefix/user_data": "absent"}), "deny").is_err());
    assert_eq!(server.connections(), 0);
    // A body that is listed as a whole is sent.
    let judged = with(prefix, "deny");
    assert_ne!(judged.err().flatten(), Some(Check::ReadBody));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_refused_request_is_never_sent() {
    let (server, other) = (hello(), hello());
    let limits = Limits { url_bytes: 200, http_headers: 4, header_kib: 1, http_request_mib: 1, ..Limits::default() };
    let running = with_password(Fixture { limits, ..Fixture::new(json!([grant(&server, Some(basic()))])) }).start();
    let denied = HttpErrorKind::Denied;
    let url = server.url("/v1/x?token=hunter2");
    let header = |name: &str, value: &str| GuestRequest {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..request("GET", server.url("/v1/x"))
    };
    let seal = running.visible["password"].as_str().unwrap().to_owned();
    let port = server.address.port();
    let cases = vec![
        ("a method", request("get", server.url("/v1/x")), HttpErrorKind::InvalidRequest),
        ("CONNECT", request("CONNECT", server.url("/v1/x")), HttpErrorKind::InvalidRequest),
        ("another method", request("DELETE", server.url("/v1/x")), denied(DenialReason::Method)),
        ("another path", request("GET", server.url("/v2/x?p=hunter2")), denied(DenialReason::Path)),
        ("a path with dots", request("GET", server.url("/v1/../v2")), denied(DenialReason::Path)),
        ("another port", request("GET", other.url("/v1/x")), denied(DenialReason::Port)),
        ("another host", request("GET", format!("http://api.test:{port}/v1/x")), denied(DenialReason::Host)),
        ("TLS", request("GET", format!("https://127.0.0.1:{port}/v1/x")), denied(DenialReason::Scheme)),
        ("a file", request("GET", "file:///etc/passwd"), denied(DenialReason::Scheme)),
        ("userinfo", request("GET", format!("http://u:hunter2@127.0.0.1:{port}/v1/")), HttpErrorKind::InvalidRequest),
        ("no URL", request("GET", "//127.0.0.1/v1"), HttpErrorKind::InvalidRequest),
        (
            "a long URL",
            request("GET", server.url(&format!("/v1/{}", "a".repeat(200)))),
            HttpErrorKind::Limit("url_bytes"),
        ),
        ("a token", request("GET", url), denied(DenialReason::Header)),
        ("a Host", header("Host", "evil.test"), HttpErrorKind::InvalidRequest),
        ("a length", header("Content-Length", "5"), HttpErrorKind::InvalidRequest),
        ("an Authorization", header("Authorization", "Basic hunter2"), denied(DenialReason::Header)),
        ("an encoding", header("Accept-Encoding", "gzip"), denied(DenialReason::Header)),
        ("a long header", header("X", &"a".repeat(2000)), HttpErrorKind::Limit("header_kib")),
        ("a seal in a header", header("X", &seal), denied(DenialReason::Slot)),
        ("a seal in the URL", request("GET", server.url(&format!("/v1/{seal}"))), denied(DenialReason::Slot)),
        ("a seal in the body", post(server.url("/v1/x"), &json!({"name": seal})), denied(DenialReason::Slot)),
        (
            "a large body",
            GuestRequest { body: GuestBody::Bytes(vec![0; 2 << 20]), ..request("POST", server.url("/v1/x")) },
            HttpErrorKind::Limit("http_request_mib"),
        ),
        (
            "many headers",
            GuestRequest { headers: vec![("x".into(), "1".into()); 5], ..request("GET", server.url("/v1/x")) },
            HttpErrorKind::Limit("http_headers"),
        ),
    ];
    let count = cases.len();
    for (name, request, kind) in cases {
        let error = refusal(running.send(request));
        assert_eq!((error.kind, error.sent), (kind, false), "{name}: {error}");
        let who = error.message.split(':').next().unwrap().to_owned();
        assert!(["policy", "guest", "limit"].contains(&who.as_str()), "{name}: {error}");
        assert!(!error.message.contains("hunter2"), "{name}: {error}");
    }
    assert_eq!((server.connections(), other.connections()), (0, 0));
    let events = running.events();
    assert_eq!(events.len(), count);
    // The target shows a seal of the guest as it is; what prints an event redacts it.
    let printed = running.vault.redact(&format!("{events:?}"));
    assert!(!printed.contains("hunter2") && !printed.contains(&seal), "{printed}");
    assert!(running.gate.changes().is_empty());
}

#[test]
fn the_address_rules_apply_to_the_resolved_address() {
    let server = hello();
    let port = server.address.port();
    let to = |host: &str| json!([{"id": "api", "to": format!("http://{host}:{port}"), "methods": ["GET"], "paths": ["/**"]}]);
    let public = |mut grants: Value| {
        grants[0]["addresses"] = "public".into();
        grants
    };
    let forbidden = |url: String| vec![Endpoint::from_url("the registry", &url).unwrap()];
    let (literal, named) = (forbidden(server.url("")), forbidden(format!("http://registry.test:{port}")));
    let hosts: String = "127.0.0.1 api.test\n127.0.0.1 registry.test\n".into();
    let two: String = "10.0.0.1 api.test\n127.0.0.1 api.test\n".into();
    let cases: Vec<(&str, Fixture, &str, &str)> = vec![
        ("a literal", Fixture { allow_local: false, ..Fixture::new(to("127.0.0.1")) }, "127.0.0.1", "allow_local"),
        ("a name", Fixture { allow_local: false, ..Fixture::new(to("api.test")) }, "api.test", "allow_local"),
        ("localhost", Fixture { allow_local: false, ..Fixture::new(to("localhost")) }, "localhost", "allow_local"),
        ("public", Fixture::new(public(to("api.test"))), "api.test", "none of the networks in `addresses`"),
        (
            "metadata",
            Fixture { hosts: "169.254.169.254 api.test".into(), ..Fixture::new(to("api.test")) },
            "api.test",
            "link-local",
        ),
        (
            "private",
            Fixture { hosts: "10.0.0.1 api.test".into(), ..Fixture::new(to("api.test")) },
            "api.test",
            "none of the networks in `addresses`",
        ),
        (
            "the registry",
            Fixture { forbidden: literal.clone(), ..Fixture::new(to("api.test")) },
            "api.test",
            "the registry",
        ),
        (
            "the registry's name",
            Fixture { forbidden: named, hosts, ..Fixture::new(to("api.test")) },
            "api.test",
            "the registry",
        ),
        (
            "the registry among others",
            Fixture { forbidden: literal, hosts: two, ..Fixture::new(to("api.test")) },
            "api.test",
            "the registry",
        ),
    ];
    for (name, fixture, host, said) in cases {
        let error = refusal(fixture.start().get(format!("http://{host}:{port}/x?p=hunter2")));
        assert_eq!((error.kind, error.sent), (HttpErrorKind::Denied(DenialReason::Address), false), "{name}: {error}");
        assert!(error.message.starts_with("policy: grant `api` does not reach http://"), "{name}: {error}");
        // Which server of BOSH it is, is for operators only.
        assert!(error.explained().contains(said), "{name}: {error}");
        assert!(!error.message.contains("the registry"), "{name}: {error}");
    }
    assert_eq!(server.connections(), 0);

    // Of several addresses, only the allowed ones are used.
    let hosts = "10.0.0.1 api.test\n169.254.169.254 api.test\n127.0.0.1 api.test\n";
    let running = Fixture { hosts: hosts.into(), ..Fixture::new(to("api.test")) }.start();
    assert_eq!(running.get(format!("http://api.test:{port}/")).unwrap().status, 200);
    let unknown = Fixture { hosts: String::new(), ..Fixture::new(to("api.test")) }.start();
    let (deadline, sent) = (Instant::now() + Duration::from_millis(500), AtomicBool::new(false));
    let error = refusal(run(unknown.gate.send(request("GET", format!("http://api.test:{port}/")), deadline, &sent)));
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Dns, false));
}

#[test]
fn tls_follows_the_grant_and_its_files_are_beside_the_policy() {
    let authority = Authority::new();
    let server = trusted(&authority, "api.test", |_, wire| wire.write_all(&response("200 OK", "", "hi")).unwrap());
    let url = format!("https://api.test:{}", server.address.port());
    let start = |tls: Value| {
        let grants = json!([{"id": "api", "to": url, "methods": ["GET"], "paths": ["/**"], "tls": tls}]);
        Fixture::new(grants).start()
    };
    assert_eq!(start(json!({"ca": authority.pem()})).get(&url).unwrap().body, b"hi");
    let running = start(json!({"ca": "certs/ca.pem"}));
    let error = refusal(running.get(&url));
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Tls, false));
    assert!(error.message.starts_with("config: grant `api` cannot use TLS") && error.detail.contains("certs/ca.pem"));
    std::fs::create_dir(running.files.path().join("certs")).unwrap();
    let file = running.files.path().join("certs/ca.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    // Do not depend on the umask: a file that others can write is refused.
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(running.get(&url).unwrap().status, 200);
    assert_eq!(refusal(start(json!({})).get(&url)).kind, HttpErrorKind::Tls);
}

#[test]
fn a_slot_takes_its_seal_and_the_delivery_is_recorded() {
    let server = Server::answering(response("202 Accepted", "", "{}"));
    let mut granted = grant(&server, Some(basic()));
    granted["slots"] =
        json!([{"method": "POST", "path": "/v1/servers", "place": "json:/server/data", "takes": ["password"]}]);
    granted["query"] = json!(["x"]);
    let running = with_password(Fixture::new(json!([granted]))).start();
    let seal = running.visible["password"].as_str().unwrap();
    let wanted = json!({"server": {"data": seal, "name": "a"}});
    assert_eq!(
        refusal(running.send(post(server.url("/v1/other"), &wanted))).kind,
        HttpErrorKind::Denied(DenialReason::Slot)
    );
    assert!(running.gate.delivered_secrets().is_empty() && running.gate.changes().is_empty());
    running.send(post(server.url("/v1/servers?x=hunter2"), &wanted)).unwrap();
    let seen: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(seen, json!({"server": {"data": PASSWORD, "name": "a"}}));
    assert_eq!(running.gate.delivered_secrets(), ["password"]);
    assert_eq!(running.gate.changes(), [format!("POST {} -> 202", server.url("/v1/servers"))]);
    assert_eq!(running.events()[1].outcome, HttpOutcome::Status(202));
    assert_eq!(running.events()[1].grant.as_deref(), Some("api"));
    let counts = running.gate.counts();
    assert_eq!((counts.requests, counts.bytes_received), (2, 2));
    // The length of the password is not reported.
    let written = wanted.to_string().len() as u64;
    assert_eq!((counts.bytes_sent, running.events()[1].bytes_sent), (written, written));
    assert_ne!(server.requests()[0].body.len() as u64, written);
}

#[test]
fn a_seal_counts_as_delivered_unless_the_server_rejected_the_request() {
    let slot = json!([{"method": "POST", "path": "/v1/servers", "place": "json:/data", "takes": ["password"]}]);
    for (server, sent) in [
        (Server::answering(response("202 Accepted", "", "{}")), true),
        (Server::answering(response("502 Bad Gateway", "", "")), true),
        // The response is missing, but the server may have handled the request.
        (Server::plain(|_, _| {}), true),
        (Server::answering(response("400 Bad Request", "", "{}")), false),
    ] {
        let mut granted = grant(&server, Some(basic()));
        granted["slots"] = slot.clone();
        let running = with_password(Fixture::new(json!([granted]))).start();
        let seal = running.visible["password"].clone();
        let _ = running.send(post(server.url("/v1/servers"), &json!({"data": seal})));
        assert_eq!(running.gate.delivered_secrets().len(), usize::from(sent), "{:?}", running.gate.changes());
    }
}

#[test]
fn a_secret_in_a_slot_does_not_count_against_the_limits() {
    let server = Server::answering(response("200 OK", "", ""));
    let slot = json!([{"method": "POST", "path": "/v1/x", "place": "json:/data", "takes": ["password"]}]);
    let left = |secret: String| {
        let mut granted = grant(&server, None);
        granted["slots"] = slot.clone();
        let limits = Limits { http_total_mib: 1, ..Limits::default() };
        let fixture = Fixture { properties: json!({"password": secret}), limits, ..Fixture::new(json!([granted])) };
        let running = fixture.start();
        let seal = running.visible["password"].clone();
        let send = || running.send(post(server.url("/v1/x"), &json!({"data": seal, "rest": "x".repeat(100 << 10)})));
        (0..20).take_while(|_| send().is_ok()).count()
    };
    assert_eq!(left("short-secret".to_owned()), left("s".repeat(300 << 10)));
}

#[test]
fn captured_values_and_credentials_do_not_reach_the_guest() {
    let headers = "Content-Type: application/json\r\nSet-Cookie: sid=very-secret-cookie\r\nX-Subject-Token: very-secret-token\r\n";
    let server = Server::answering(response("200 OK", headers, r#"{"access_token":"very-secret-access","n":1}"#));
    let mut granted = grant(&server, None);
    granted["captures"] =
        json!([{"method": "POST", "path": "/v1/tokens", "place": "json:/access_token", "as": "token"}]);
    let running = Fixture::new(json!([granted])).start();
    let response = running.send(post(server.url("/v1/tokens"), &json!({}))).unwrap();
    assert!(!format!("{response:?}").contains("very-secret"));
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    let sealed = running.vault.open(body["access_token"].as_str().unwrap()).unwrap();
    assert_eq!((sealed.name.as_str(), sealed.secret.reveal()), ("token", "very-secret-access"));
    let length = response.headers.iter().find(|(name, _)| name == "content-length").unwrap();
    assert_eq!(length.1, response.body.len().to_string());
}

#[test]
fn the_number_of_requests_and_the_sum_of_bodies_are_limited() {
    let server = hello();
    let started = |limits: Limits| Fixture { limits, ..Fixture::new(json!([grant(&server, None)])) }.start();
    let running = started(Limits { http_requests: 2, ..Limits::default() });
    running.get(server.url("/v1/x")).unwrap();
    refusal(running.get(server.url("/v2/x")));
    assert_eq!(refusal(running.get(server.url("/v1/x"))).kind, HttpErrorKind::Limit("http_requests"));

    let body = || GuestBody::Bytes(vec![0; 600 << 10]);
    let send = |running: &Running| running.send(GuestRequest { body: body(), ..request("POST", server.url("/v1/x")) });
    let running = started(Limits { http_total_mib: 1, ..Limits::default() });
    send(&running).unwrap();
    let error = refusal(send(&running));
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Limit("http_total_mib"), false));

    let large = Server::answering(response("200 OK", "", &"a".repeat(600 << 10)));
    let fixture = Fixture::new(json!([grant(&large, None)]));
    let running = Fixture { limits: Limits { http_total_mib: 1, ..Limits::default() }, ..fixture }.start();
    running.get(large.url("/v1/x")).unwrap();
    let error = refusal(running.get(large.url("/v1/x")));
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Limit("http_total_mib"), true));
}

#[test]
fn limits_of_an_answer_are_for_what_the_guest_gets() {
    let token =
        |length: usize| format!("{{\"token\": \"{}\", \"pad\": \"{}\"}}", "t".repeat(length), "p".repeat(1 << 20));
    let started = |granted: Value| {
        let limits = Limits { http_response_mib: 1, http_request_mib: 1, ..Limits::default() };
        Fixture { limits, ..Fixture::new(json!([granted])) }.start()
    };
    for (dropped, length, fits) in
        [(true, 10, true), (true, 2 << 20, false), (true, 1_000_000, true), (false, 10, false), (true, 5 << 20, false)]
    {
        let server = Server::answering(response("200 OK", "Content-Type: application/json\r\n", &token(length)));
        let mut granted = grant(&server, None);
        granted["drop"] = if dropped { json!(["json:/pad"]) } else { json!([]) };
        let found = started(granted).get(server.url("/v1/x"));
        assert_eq!(found.is_ok(), fits, "{dropped} {length}");
        if let Err(error) = found {
            // The same words, whichever limit was reached.
            let origin = server.url("/v1/x");
            let expected = format!("limit: the response to GET {origin} reached `http_response_mib` (1)");
            assert!(error.message.starts_with(&expected) && error.sent, "{error}");
        }
    }
    let large = format!("X-A: {}\r\nX-B: {}\r\n", "a".repeat(20 << 10), "b".repeat(20 << 10));
    for (headers, dropped, fits) in [
        (large.clone(), json!(["header:X-A"]), true),
        (large.clone(), json!([]), false),
        (large.repeat(5), json!(["header:X-A", "header:X-B"]), false),
    ] {
        let server = Server::answering(response("200 OK", &headers, ""));
        let mut granted = grant(&server, None);
        granted["drop"] = dropped;
        let found = started(granted).get(server.url("/v1/x"));
        let kind = found.as_ref().err().map(|error| error.kind);
        assert_eq!(kind, (!fits).then_some(HttpErrorKind::Limit("header_kib")), "{}", headers.len());
    }
}

#[test]
fn time_is_bounded_by_the_request_the_call_and_the_limits() {
    let silent = Server::plain(|_, _| std::thread::sleep(Duration::from_secs(4)));
    let running = Fixture::new(json!([grant(&silent, None)])).start();
    for (timeout, at_most) in [(Some(0), 500), (Some(300), 800), (Some(u32::MAX), 2800)] {
        let start = Instant::now();
        let error = refusal(running.send(GuestRequest { timeout_ms: timeout, ..request("GET", silent.url("/v1/x")) }));
        assert_eq!(error.kind, HttpErrorKind::Timeout, "{timeout:?}: {error}");
        assert!(start.elapsed() < Duration::from_millis(at_most), "{timeout:?} took {:?}", start.elapsed());
    }
    let connections = silent.connections();
    let error =
        refusal(run(running.gate.send(request("GET", silent.url("/v1/x")), Instant::now(), &AtomicBool::new(false))));
    assert_eq!((error.kind, error.sent, silent.connections()), (HttpErrorKind::Cancelled, false, connections));
}

#[test]
fn the_guest_gets_its_own_words_back_even_if_they_are_a_secret() {
    let server = Server::answering(response("200 OK", "Content-Length: 6\r\n", ""));
    let fixture = Fixture { properties: json!({"key": "abcdefabcdef"}), ..Fixture::new(json!([grant(&server, None)])) };
    let running = fixture.start();
    let error = refusal(running.send(post(server.url("/v1/abcdefabcdef"), &json!({}))));
    assert!(error.kind == HttpErrorKind::Protocol && error.message.contains("/v1/abcdefabcdef"), "{error}");
}
