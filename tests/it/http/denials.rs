//! Every reason for which the policy denies a request. No connection to the server is
//! opened then.

use serde_json::{Value, json};
use tests::cloud::{answered, denied, failed, get, job, outcome, outcomes, with_policy};
use tests::servers::{Answer, Server, grant, with};

fn v1(server: &Server) -> Value {
    with(server.grant("api"), json!({"methods": ["GET", "POST"], "paths": ["/v1/**", "/exact"]}))
}

/// Runs all requests in one call and checks that each is denied for this reason.
#[track_caller]
fn check_all_denied(grants: Value, server: &Server, reason: &str, expected: &str, requests: &[Value]) {
    let outcomes = outcomes(&job(grants), &json!(requests));
    for (request, outcome) in requests.iter().zip(&outcomes) {
        assert_eq!(outcome["error"]["reason"], reason, "{request}: {outcome}");
        denied(outcome, reason, &["policy: ", expected]);
    }
    assert_eq!(server.connections(), 0);
}

fn urls(urls: &[String]) -> Vec<Value> {
    urls.iter().map(|url| get(url)).collect()
}

#[test]
fn without_a_grant_every_request_is_denied_as_undeclared() {
    let server = Server::answering(Answer::ok(""));
    let requests =
        urls(&[server.url("/"), "https://example.org/".into(), "http://169.254.169.254/latest/meta-data/".into()]);
    check_all_denied(json!([]), &server, "undeclared", "it has no grants for HTTP requests", &requests);
}

#[test]
fn another_scheme_is_denied() {
    let server = Server::answering(Answer::ok(""));
    let https = server.url("/v1/x").replace("http:", "https:");
    check_all_denied(json!([v1(&server)]), &server, "scheme", "no grant is for https://", &[get(&https)]);
    let schemes = [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://x",
        "data:text/plain,x",
        "ws://x/",
        "unix:/run/x",
        "javascript:x",
    ];
    let requests = urls(&schemes.map(str::to_owned));
    check_all_denied(json!([v1(&server)]), &server, "scheme", "only http and https can be granted", &requests);
}

#[test]
fn another_host_is_denied() {
    let server = Server::answering(Answer::ok(""));
    let port = server.port();
    // None of these is the name of the granted host, although they resolve to it.
    let hosts = ["127.0.0.2", "localhost", "localhost.", "[::1]", "0.0.0.0", "127.0.0.1.nip.test", "[::127.0.0.1]"];
    let requests = urls(&hosts.map(|host| format!("http://{host}:{port}/v1/x")));
    check_all_denied(json!([v1(&server)]), &server, "host", "no grant names the host", &requests);
    let wild = grant("wild", &format!("http://*.cloud.localhost:{port}"));
    let names =
        ["cloud.localhost", "a.b.cloud.localhost", ".cloud.localhost", "a.cloud.localhost.", "acloud.localhost"];
    let requests = urls(&names.map(|name| format!("http://{name}:{port}/")));
    check_all_denied(json!([wild]), &server, "host", "", &requests);
    answered(&outcome(&job(json!([wild])), get(&format!("http://a.cloud.localhost:{port}/"))), 200);
}

#[test]
fn other_ports_methods_and_paths_are_denied() {
    let server = Server::answering(Answer::ok(""));
    let other = Server::answering(Answer::ok(""));
    let port = [format!("http://127.0.0.1:{}/v1/x", other.port()), "http://127.0.0.1/v1/x".into()];
    check_all_denied(
        json!([v1(&server)]),
        &other,
        "port",
        "the host's grants are for other ports: `api`",
        &urls(&port),
    );
    let methods = ["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let requests = methods.map(|method| json!({"op": "http", "method": method, "url": server.url("/v1/x")}));
    check_all_denied(json!([v1(&server)]), &server, "method", "other methods: `api` GET POST", &requests);
    let paths = [
        "/",
        "/v2/x",
        "/exact/",
        "/exact/x",
        "/Exact",
        "/v1/../admin",
        "/v1/x/../../admin",
        "/v1/%2e%2e/admin",
        "/v1/%2E%2e/%2e%2E/",
        "/v1/.%2e/admin",
        "//v1/x",
        "/V1/x",
        "/v10",
        "/x?/v1/x",
        "/x#/v1/x",
    ];
    let requests = urls(&paths.map(|path| server.url(path)));
    check_all_denied(json!([v1(&server)]), &server, "path", "other paths: `api` /v1/** /exact", &requests);
}

#[test]
fn other_operations_are_denied() {
    let server = Server::answering(Answer::ok(""));
    let url = server.url("/");
    let form = |body: &str| json!({"op": "http", "method": "POST", "url": url, "headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body": body});
    let asked = |place: &str| {
        with(server.grant("api"), json!({"operations": {"in": place, "allow": ["RunInstances", "Describe"]}}))
    };
    let requests = [
        form("Action=Terminate"),
        form("A=b"),
        form("Action=RunInstances&Action=Terminate"),
        form("action=RunInstances"),
        form("Action=RunInstances%00"),
        form(""),
        with(form("Action=RunInstances"), json!({"url": format!("{url}?Action=Terminate")})),
        with(form("Action=RunInstances"), json!({"url": format!("{url}?a&acTion=Terminate")})),
        with(form("Action=RunInstances"), json!({"headers": {"Content-Type": "text/plain"}})),
        get(&url),
    ];
    check_all_denied(
        json!([asked("form:Action")]),
        &server,
        "operation",
        "other operations or fields: `api` RunInstances Describe",
        &requests,
    );
    let json = |body: &str| json!({"op": "http", "method": "POST", "url": url, "headers": {"Content-Type": "application/json"}, "body": body});
    let requests = [
        json(r#"{"op":"Other"}"#),
        json(r#"{"op":"Describe","op":"Other"}"#),
        json(r#"{"op":["Describe"]}"#),
        json("not JSON"),
        json(r#"{"Op":"Describe"}"#),
    ];
    check_all_denied(json!([asked("json:/op")]), &server, "operation", "", &requests);
    let header = |value: &str| json!({"op": "http", "url": url, "headers": {"X-Target": value}});
    let twice = json!({"op": "http", "url": url, "headers": [["X-Target", "Describe"], ["x-target", "Other"]]});
    check_all_denied(json!([asked("header:X-Target")]), &server, "operation", "", &[header("Other"), get(&url), twice]);

    for (place, request) in [
        ("form:Action", form("X=1&Action=RunInstances")),
        ("json:/op", json(r#"{"op":"Describe"}"#)),
        ("header:X-Target", header("Describe")),
    ] {
        answered(&outcome(&job(json!([asked(place)])), request), 200);
    }
}

#[test]
fn addresses_outside_of_the_grant_are_denied() {
    let server = Server::answering(Answer::ok(""));
    let url = server.url("/");
    let cases = [
        (json!("public"), true, "and is in none of the networks in `addresses`; list \"127.0.0.1/32\""),
        (
            json!(["127.0.0.2/32", "10.0.0.0/8"]),
            true,
            "or the network of the cloud, in `addresses` of the grant or login",
        ),
        (json!(["127.0.0.0/8"]), false, "only `allow_local: true` in the config allows that"),
        (json!(["0.0.0.0/0"]), false, "belongs to this machine"),
    ];
    for (addresses, local, expected) in cases {
        let grant = with(server.grant("api"), json!({"addresses": addresses}));
        let job = job(json!([grant])).configure(|config| config["allow_local"] = json!(local));
        denied(&outcome(&job, get(&url)), "address", &["policy: grant `api` does not reach", expected]);
    }
    // A name is checked by the addresses that it resolves to.
    let named = with(grant("named", &format!("http://localhost:{}", server.port())), json!({"addresses": "public"}));
    let url = format!("http://localhost:{}/", server.port());
    denied(&outcome(&job(json!([named])), get(&url)), "address", &["belongs to this machine"]);
    assert_eq!(server.connections(), 0);
}

#[test]
fn bosh_endpoints_are_denied_whatever_is_granted() {
    let server = Server::answering(Answer::ok(""));
    let port = server.port();
    let wide = grant("wide", &format!("http://*.cloud.localhost:{port}"));
    let sections = [
        (
            "registry",
            json!({"endpoint": format!("http://bosh.cloud.localhost:{port}"), "user": "u", "password": "a password"}),
            "the registry",
        ),
        ("registry", json!({"endpoint": server.origin(), "user": "u", "password": "a password"}), "the registry"),
        ("agent", json!({"mbus": format!("nats://n:p@bosh.cloud.localhost:{port}")}), "the message bus"),
        (
            "agent",
            json!({"blobstore": {"provider": "dav", "options": {"endpoint": format!("http://127.0.0.1:{port}")}}}),
            "the blobstore",
        ),
    ];
    for (section, value, what) in sections {
        let job = job(json!([wide])).configure(|config| config[section] = value);
        let outcome = outcome(&job, get(&format!("http://bosh.cloud.localhost:{port}/")));
        assert_eq!(outcome["error"]["kind"], "denied", "{what}: {outcome}");
        // The guest does not learn which of them it is.
        let message = outcome["error"]["message"].as_str().unwrap();
        assert!(message.contains("no grant can open this server to a guest"), "{message}");
        assert!(!message.contains(what), "{message}");
    }
    assert_eq!(server.connections(), 0);
    // A grant that names the endpoint itself makes the policy invalid.
    let job = job(json!([server.grant("api")])).configure(|config| {
        config["registry"] = json!({"endpoint": server.origin(), "user": "u", "password": "a password"})
    });
    let response = job.script(json!([get(&server.url("/"))])).run();
    response.fails(tests::CPI_ERROR, &["policy.json", "`http[0].to`", "the registry"]);
}

#[test]
fn invalid_urls_and_methods_are_invalid_requests() {
    let server = Server::answering(Answer::ok(""));
    let address = server.address();
    let label = "a".repeat(64);
    let long = vec!["abcdefgh"; 32].join(".");
    let mut requests = urls(&[
        String::new(),
        "/v1/x".into(),
        "//127.0.0.1/x".into(),
        "http:127.0.0.1".into(),
        "http:///127.0.0.1/".into(),
        "http://".into(),
        format!("http://user:pw@{address}/v1/x"),
        format!("http://@{address}/v1/x"),
        "http://127.0.0.1:0/".into(),
        "http://127.0.0.1:65536/".into(),
        "http://127.0.0.1:/".into(),
        "http://127.0.0.1:+80/".into(),
        "http://127.0.0.1:0x50/".into(),
        "http://127.0.0.1:080/".into(),
        format!("http://127%2e0.0.1:{}/", server.port()),
        "http://[fe80::1%25eth0]/".into(),
        "http://[::1/".into(),
        "http://xn--/".into(),
        "http://xn--a-ecp.ru%00/".into(),
        format!("http://{label}.test/"),
        format!("http://{long}/"),
        format!("http://{address}/v1/\u{0}x"),
        format!("http://{address}/v1/\tx"),
        format!("http://{address}/v1/\r\nHost: x"),
        format!("http://{address}/v1/ x"),
        format!("http://{address}\\@evil.test/v1/x"),
        format!("http://{address}/v1/%2f..%2f"),
        format!("http://{address}/v1/%5c"),
        format!("http://{address}/v1/%00"),
        format!("http://{address}/v1/%0d%0a"),
        format!("http://{address}/v1/%zz"),
        format!("http://{address}/v1/%"),
        format!("http://{address}/v1/%252e%252e/"),
        format!("http://{address}/v1/..;/admin"),
        " http://127.0.0.1/".into(),
        "*".into(),
        "127.0.0.1:443".into(),
    ]);
    let methods = ["", "get", "CONNECT", "TRACE", "GET /x HTTP/1.1\r\n", "GET\0", "PROPFIND", " GET", "ＧＥＴ"];
    requests.extend(methods.map(|method| json!({"op": "http", "method": method, "url": server.url("/v1/x")})));
    let outcomes = outcomes(&job(json!([v1(&server)])), &json!(requests));
    for (request, outcome) in requests.iter().zip(&outcomes) {
        let kind = outcome["error"]["kind"].as_str().unwrap_or_default();
        if request["url"] == "127.0.0.1:443" {
            assert!(["invalid-request", "denied"].contains(&kind), "{outcome}");
            continue;
        }
        assert_eq!(kind, "invalid-request", "{request}: {outcome}");
        failed(outcome, "invalid-request", false, &["guest: "]);
        let message = outcome["error"]["message"].as_str().unwrap();
        assert!(!message.contains("pw@") && message.len() < 500, "{message}");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn an_address_or_name_outside_of_ascii_is_invalid() {
    let server = Server::answering(Answer::ok(""));
    let port = server.port();
    let hosts = ["127。0。0。1", "１２７.0.0.1", "bücher.test"];
    let requests: Vec<Value> = hosts.iter().map(|host| get(&format!("http://{host}:{port}/v1/x"))).collect();
    for outcome in outcomes(&job(json!([v1(&server)])), &json!(requests)) {
        failed(&outcome, "invalid-request", false, &["characters outside of ASCII"]);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn all_spellings_of_an_address_are_the_same_host() {
    let server = Server::answering(Answer::ok(""));
    let port = server.port();
    let forms = [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "[::FFFF:7f00:1]",
    ];
    let requests: Vec<Value> = forms.iter().map(|host| get(&format!("http://{host}:{port}/v1/x"))).collect();
    let outcomes = outcomes(&job(json!([v1(&server)])), &json!(requests));
    for (form, outcome) in forms.iter().zip(&outcomes) {
        assert_eq!(outcome["ok"]["status"], 200, "{form}: {outcome}");
    }
    for seen in server.requests() {
        assert_eq!(seen.header("host"), Some(format!("127.0.0.1:{port}").as_str()));
    }
    // Without a grant for the address, all of these forms are denied.
    let elsewhere = v1(&Server::answering(Answer::ok("")));
    let outcomes = tests::cloud::outcomes(&job(json!([elsewhere])), &json!(requests));
    outcomes.iter().for_each(|outcome| denied(outcome, "port", &[]));
    assert_eq!(server.requests().len(), forms.len());
}

#[test]
fn metadata_and_link_local_addresses_cannot_be_granted() {
    for (addresses, expected) in [
        (json!(["169.254.169.254/32"]), "link-local"),
        (json!(["169.254.0.0/16"]), "link-local"),
        (json!(["fd00:ec2::254/128"]), "metadata"),
        (json!(["fe80::/10"]), "link-local"),
        (json!(["0.0.0.0/32"]), "an address that no host has"),
    ] {
        let grant =
            json!({"id": "m", "to": "http://cloud.test", "methods": ["GET"], "paths": ["/**"], "addresses": addresses});
        let response = job(json!([grant])).script(json!([])).run();
        response.fails(tests::CPI_ERROR, &["policy.json", "`http[0].addresses[0]`", expected, "remove it"]);
    }
    for origin in ["http://169.254.169.254", "http://[fd00:ec2::254]", "http://[fe80::1]"] {
        let grant =
            json!({"id": "m", "to": origin, "methods": ["GET"], "paths": ["/**"], "addresses": ["0.0.0.0/0", "::/0"]});
        let job = job(json!([grant]));
        let response = job.script(json!([get(&format!("{origin}/"))])).run();
        if response.json["error"].is_null() {
            let outcome = &tests::probe::outcomes(response.result())[0];
            denied(outcome, "address", &["which no policy can grant"]);
        } else {
            response.fails(tests::CPI_ERROR, &["policy.json", "`http[0].to`"]);
        }
    }
}

#[test]
fn a_request_is_denied_for_its_credential_if_the_login_is_refused() {
    let identity = Server::answering(Answer::new(403, "no"));
    let server = Server::answering(Answer::ok(""));
    let login = with(
        grant("", &identity.origin()),
        json!({
            "path": "/tokens", "body": {"password": "${password}"}, "token": "json:/token", "send": {"header": "X-Auth-Token"}, "plain_http": true,
        }),
    );
    let mut login = login;
    for key in ["id", "methods", "paths"] {
        login.as_object_mut().unwrap().remove(key);
    }
    let api = with(server.grant("api"), json!({"auth": {"login": "main"}, "plain_http": true}));
    let job = with_policy(json!({"http": [api], "logins": {"main": login}}));
    let outcome = outcome(&job, get(&server.url("/")));
    denied(&outcome, "credential", &["iaas: login `main` was refused", "check the properties"]);
    assert_eq!((server.connections(), identity.requests().len()), (0, 1));
}

#[test]
fn a_denial_does_not_reveal_whether_a_guessed_secret_is_right() {
    let job = job(json!([grant("mine", "https://api.cloud.test")])).properties(json!({"pin": "123456"}));
    // The message repeats a guess of the guest unchanged, whether it is right or wrong.
    for guess in ["/123456", "/654321"] {
        let outcomes = job.probe(json!([get(&format!("https://elsewhere.test{guess}"))]));
        assert!(outcomes[0]["error"]["message"].as_str().unwrap().contains(guess), "{outcomes:?}");
    }
}

#[test]
fn denied_requests_do_not_flood_the_log() {
    let job = job(json!([grant("mine", "https://api.cloud.test")])).limits(json!({"log_lines": 10}));
    let url = format!("https://elsewhere.test/{}", "x".repeat(5000));
    let script: Vec<Value> = (0..100).map(|_| get(&url)).chain([json!({"op": "trap"})]).collect();
    let response = tests::cloud::call(&job, &json!(script));
    // Ten lines of at most 4 KiB.
    assert!(response.stderr.len() < 45_000, "{}", response.stderr.len());
    assert!(
        response.stderr.contains("log lines of probe were dropped, because `limits.log_lines` is reached"),
        "{}",
        response.stderr
    );
    // The log still has space for the reason of the end.
    assert!(response.log().contains("wasm backtrace"), "{}", response.log());
}
