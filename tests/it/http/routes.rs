//! The route to a server: names and addresses. Environment variables have no effect on it.

use serde_json::{Value, json};
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;
use tests::cloud::{answered, failed, get, job, outcome, outcomes};
use tests::servers::{Answer, Authority, Server, Validity, grant, with};
use tests::users::is_root;
use tests::{probe, process};

#[test]
fn servers_are_reached_by_name_and_over_ipv4_and_ipv6() {
    let server = Server::answering(Answer::ok(""));
    let Some((six, _taken)) = Server::over_ipv6() else { return };
    let named = format!("http://some.localhost:{}", server.port());
    let named_six = format!("http://localhost:{}", six.port());
    let grants = json!([grant("named", &named), grant("six", &six.origin()), grant("named-six", &named_six)]);
    let script = json!([
        get(&format!("{named}/")),
        get(&format!("{}/", named.to_uppercase())),
        get(&six.url("/")),
        get(&format!("{named_six}/"))
    ]);
    for outcome in outcomes(&job(grants), &script) {
        answered(&outcome, 200);
    }
    assert_eq!((server.requests().len(), six.requests().len()), (2, 2));
    assert_eq!(server.requests()[1].header("host"), Some(&named["http://".len()..]));
    assert_eq!(six.requests()[0].header("host"), Some(format!("[::1]:{}", six.port()).as_str()));
}

#[test]
fn only_granted_addresses_are_connected_to() {
    let Some((six, _taken)) = Server::over_ipv6() else { return };
    let origin = format!("http://localhost:{}", six.port());
    // The name has two addresses. The server listens on the one that is not granted.
    let grants = json!([with(grant("four", &origin), json!({"addresses": ["127.0.0.0/8"]}))]);
    failed(&outcome(&job(grants), get(&format!("{origin}/"))), "connect", false, &["check that the server runs"]);
    assert_eq!(six.connections(), 0);
}

#[test]
fn a_name_that_cannot_be_resolved_is_a_dns_error() {
    let origin = "https://nothing-here.invalid";
    let job = job(json!([grant("nowhere", origin)]));
    let response = tests::cloud::call(
        &job,
        &json!([get(&format!("{origin}/")), with(get(&format!("{origin}/")), json!({"timeout_ms": 100}))]),
    );
    let outcomes = probe::outcomes_in(response.message());
    failed(
        &outcomes[0],
        "dns",
        false,
        &["iaas: the name `nothing-here.invalid` could not be resolved", "/etc/resolv.conf"],
    );
    failed(&outcomes[1], "dns", false, &[]);
}

#[test]
fn proxies_authorities_and_key_logs_of_the_environment_are_ignored() {
    let proxy = Server::answering(Answer::ok("from the proxy"));
    let server = Server::answering(Answer::ok("from the server"));
    let authority = Authority::new();
    let secure = Server::tls(authority.issue(&["127.0.0.1"], Validity::Now).server(None), |_| Answer::ok("secure"));
    let job = job(json!([
        server.grant("plain"),
        secure.grant("strange"),
        with(secure.grant("secure"), json!({"tls": {"ca": authority.pem()}, "paths": ["/trusted"]}))
    ]));
    let (ca, keys) = (job.path("ca.pem"), job.path("keys.log"));
    tests::job::write(&ca, authority.pem().as_bytes());
    let script = json!([get(&server.url("/")), get(&secure.url("/trusted")), get(&secure.url("/"))]);
    let call = job.script(script);
    let mut command = call.command();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env(name, proxy.origin());
    }
    command.env("NO_PROXY", "").env("no_proxy", "").env("SSL_CERT_FILE", &ca).env("SSL_CERT_DIR", job.path("config"));
    command
        .env("SSLKEYLOGFILE", &keys)
        .env("HOSTALIASES", &ca)
        .env("RES_OPTIONS", "debug")
        .env("LOCALDOMAIN", "evil.test");
    let finished = process::run(&mut command, call.request().as_bytes(), Duration::from_secs(20));
    let response: Value = serde_json::from_slice(&finished.stdout).unwrap();
    let outcomes = probe::outcomes(&response["result"]);
    assert_eq!(answered(&outcomes[0], 200)["body"], "from the server");
    assert_eq!(answered(&outcomes[1], 200)["body"], "secure");
    failed(&outcomes[2], "tls", false, &["no trusted authority has issued"]);
    assert_eq!(proxy.connections(), 0);
    assert!(!keys.exists());
}

/// Starts a DNS server on loopback that returns one address for every name.
fn name_server(at: &str) -> std::io::Result<()> {
    let socket = UdpSocket::bind((at, 53))?;
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, peer)) = socket.recv_from(&mut query) {
            let Some(question) = query.get(12..length).and_then(|rest| {
                let name = rest.iter().position(|byte| *byte == 0)?;
                rest.get(..name + 5)
            }) else {
                continue;
            };
            let is_a = question[question.len() - 4..] == [0, 1, 0, 1];
            let mut answer = [&query[..2], &[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0], question].concat();
            if is_a {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
            }
            let _ = socket.send_to(&answer, peer);
        }
    });
    Ok(())
}

#[test]
fn names_are_resolved_without_shared_libraries() {
    const AT: &str = "127.0.0.77";
    if !is_root("mounting over /usr/lib in a namespace of its own") {
        return;
    }
    name_server(AT).unwrap();
    let server = Server::answering(Answer::ok("found"));
    let origin = format!("http://api.cloud.test:{}", server.port());
    let job = job(json!([grant("named", &origin)]));
    let resolv = job.path("resolv.conf");
    tests::job::write(&resolv, format!("nameserver {AT}\n").as_bytes());
    let call = job.script(json!([get(&format!("{origin}/"))]));
    let mut command = Command::new("unshare");
    let hide = "mount --bind \"$1\" /etc/resolv.conf && mount -t tmpfs none /usr/lib && shift && exec \"$@\"";
    command.args(["-m", "sh", "-c", hide, "sh"]).arg(&resolv).arg(call.command().get_program());
    command.args(call.command().get_args());
    let finished = process::run(&mut command, call.request().as_bytes(), Duration::from_secs(20));
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let response: Value = serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert_eq!(answered(&probe::outcomes(&response["result"])[0], 200)["body"], "found");
}

#[test]
fn the_most_specific_grant_decides() {
    let server = Server::answering(Answer::ok(""));
    let grants = json!([
        server.grant("wide"),
        with(
            server.grant("narrow"),
            json!({"paths": ["/v1/things/*"], "auth": {"header": {"name": "X-Key", "value": "${password}"}}, "plain_http": true})
        ),
        with(server.grant("narrowest"), json!({"paths": ["/v1/things/public"]})),
    ]);
    let paths = ["/v1", "/v1/things/7", "/v1/things/public", "/v1/things/7/x"];
    let script: Vec<Value> = paths.iter().map(|path| get(&server.url(path))).collect();
    for outcome in outcomes(&job(grants), &json!(script)) {
        answered(&outcome, 200);
    }
    let keyed: Vec<bool> = server.requests().iter().map(|seen| seen.header("x-key").is_some()).collect();
    assert_eq!(keyed, [false, true, false, false]);
}
