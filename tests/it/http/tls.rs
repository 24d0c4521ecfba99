//! TLS: which servers the runtime accepts, and which client certificate it presents.
//! Other servers receive no byte of a request.

use serde_json::{Value, json};
use std::io::{Read, Write};
use tests::cloud::{answered, call, failed, get, job, outcome};
use tests::probe::outcomes_in;
use tests::servers::{Answer, Authority, Identity, Server, Validity, grant, with};
use tests::users::{NOBODY, give, is_root};
use tests::{CPI_ERROR, Job, job as files};

const NAMES: [&str; 3] = ["127.0.0.1", "api.localhost", "localhost"];

fn tls_server(identity: &Identity) -> Server {
    Server::tls(identity.server(None), |_| Answer::ok("hello"))
}

fn trusting(server: &Server, tls: Value) -> Job {
    job(json!([with(server.grant("api"), json!({"tls": tls}))]))
}

/// Checks that the server received no request, and that the caller gets an error with this text.
#[track_caller]
fn check_refused(server: &Server, job: &Job, expected: &str) {
    let response = call(job, &json!([get(&server.url("/v1?q=hunter2"))]));
    let outcome = outcomes_in(response.message()).remove(0);
    failed(&outcome, "tls", false, &["iaas: GET https://127.0.0.1:", "/v1: TLS failed: "]);
    assert!(response.message().contains(expected), "{expected}: {}", response.message());
    assert!(!response.message().contains("hunter2"), "{outcome}");
    assert_eq!(server.requests().len(), 0, "{expected}");
}

#[test]
fn a_server_with_a_valid_certificate_is_accepted() {
    let authority = Authority::new();
    let server = tls_server(&authority.issue(&NAMES, Validity::Now));
    let inline = trusting(&server, json!({"ca": authority.pem()}));
    assert_eq!(answered(&outcome(&inline, get(&server.url("/"))), 200)["body"], "hello");
    // The file is in the directory of the policy.
    let by_file = trusting(&server, json!({"ca": "authority.pem"}));
    files::write(&by_file.path("config/authority.pem"), authority.pem().as_bytes());
    answered(&outcome(&by_file, get(&server.url("/"))), 200);
    let origin = format!("https://api.localhost:{}", server.port());
    let named = job(json!([with(grant("api", &origin), json!({"tls": {"ca": authority.pem()}}))]));
    answered(&outcome(&named, get(&format!("{origin}/"))), 200);
    let hosts: Vec<String> = server.requests().iter().map(|seen| seen.header("host").unwrap().to_owned()).collect();
    assert_eq!(hosts[2], format!("api.localhost:{}", server.port()));
}

#[test]
fn a_server_with_an_invalid_certificate_is_refused() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let ca = json!({"ca": authority.pem()});
    let others = [
        (authority.issue(&["api.localhost"], Validity::Now), "not valid for name"),
        (authority.issue(&["127.0.0.2"], Validity::Now), "not valid for name"),
        (authority.issue(&NAMES, Validity::Expired), "expired"),
        (authority.issue(&NAMES, Validity::NotYet), "not valid yet"),
        (stranger.issue(&NAMES, Validity::Now), "UnknownIssuer"),
        (Identity::self_signed(&NAMES), "UnknownIssuer"),
    ];
    for (identity, expected) in &others {
        let server = tls_server(identity);
        check_refused(&server, &trusting(&server, ca.clone()), expected);
    }
    // A grant without an authority trusts the public ones, and a grant with an authority
    // trusts only that one.
    let server = tls_server(&authority.issue(&NAMES, Validity::Now));
    check_refused(&server, &trusting(&server, json!({})), "UnknownIssuer");
    check_refused(&server, &trusting(&server, json!({"ca": stranger.pem()})), "");
}

#[test]
fn pins_restrict_the_certificates_of_an_authority() {
    let authority = Authority::new();
    let identity = authority.issue(&NAMES, Validity::Now);
    let server = tls_server(&identity);
    let other = "0".repeat(64);
    check_refused(&server, &trusting(&server, json!({"ca": authority.pem(), "pin_sha256": [other]})), "`pin_sha256`");
    let pinned = trusting(&server, json!({"ca": authority.pem(), "pin_sha256": [other, identity.pin]}));
    answered(&outcome(&pinned, get(&server.url("/"))), 200);
    let unknown = trusting(&server, json!({"pin_sha256": [identity.pin]}));
    failed(&outcome(&unknown, get(&server.url("/"))), "tls", false, &["no trusted authority has issued"]);
}

#[test]
fn the_client_certificate_of_the_grant_is_presented() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let identity = authority.issue(&NAMES, Validity::Now);
    let server = Server::tls(identity.server(Some(&clients)), |_| Answer::ok("known"));
    let own = clients.issue(&["cpi"], Validity::Now);
    let with_client =
        |cert: &str, key: &str| trusting(&server, json!({"ca": authority.pem(), "client": {"cert": cert, "key": key}}));

    let by_property = with_client("${cert}", "${key}").properties(json!({"cert": own.certificate, "key": own.key}));
    assert_eq!(answered(&outcome(&by_property, get(&server.url("/"))), 200)["body"], "known");
    let by_file = with_client("own.pem", "own.key");
    files::write(&by_file.path("config/own.pem"), own.certificate.as_bytes());
    files::write(&by_file.path("config/own.key"), own.key.as_bytes());
    files::set_mode(&by_file.path("config/own.key"), 0o640);
    answered(&outcome(&by_file, get(&server.url("/"))), 200);
    assert_eq!(server.requests().len(), 2);

    let stranger = Authority::new().issue(&["cpi"], Validity::Now);
    let foreign =
        with_client("${cert}", "${key}").properties(json!({"cert": stranger.certificate, "key": stranger.key}));
    for job in [trusting(&server, json!({"ca": authority.pem()})), foreign] {
        let outcome = outcome(&job, get(&server.url("/")));
        assert_eq!(outcome["error"]["kind"], "tls", "{outcome}");
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn the_error_names_files_and_properties_that_are_not_certificates_without_quoting_them() {
    let authority = Authority::new();
    let own = authority.issue(&["cpi"], Validity::Now);
    let server = tls_server(&authority.issue(&NAMES, Validity::Now));
    let broken = "-----BEGIN PRIVATE KEY-----\nhunter2hunter2\n-----END PRIVATE KEY-----";
    for (tls, expected) in [
        (json!({"ca": "missing.pem"}), "missing.pem cannot be read"),
        (json!({"ca": "policy.json"}), "policy.json does not hold PEM"),
        (json!({"ca": "-----BEGIN CERTIFICATE-----\nhunter2"}), "`tls.ca` holds"),
        (json!({"ca": authority.pem(), "client": {"cert": own.certificate, "key": broken}}), "`tls.client.key` holds"),
        (
            json!({"ca": authority.pem(), "client": {"cert": own.key, "key": own.key}}),
            "`tls.client.cert` holds no certificate",
        ),
    ] {
        let response = call(&trusting(&server, tls), &json!([get(&server.url("/"))]));
        let outcome = outcomes_in(response.message()).remove(0);
        failed(&outcome, "tls", false, &["config: grant `api` cannot use TLS as the policy says"]);
        assert!(response.message().contains(expected), "{expected}: {}", response.message());
        assert!(!response.message().contains("hunter2"), "{outcome}");
    }
    let not_pem = trusting(&server, json!({"client": {"cert": "${cert}", "key": "${key}"}}))
        .properties(json!({"cert": "/etc/passwd", "key": "hunter2hunter2"}));
    let response = not_pem.script(json!([])).run();
    response.fails(CPI_ERROR, &["policy.json", "`http[0].tls.client.cert`", "the property `cert` does not hold PEM"]);
    assert!(!response.json.to_string().contains("hunter2"));
    let insecure = trusting(&server, json!({"insecure": true})).script(json!([])).run();
    insecure.fails(CPI_ERROR, &["`http[0].tls.insecure`"]);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_server_without_tls_gets_no_request() {
    let plain = Server::with_handler("https", |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    check_refused(&plain, &job(json!([plain.grant("api")])), "");
    let closing = Server::with_handler("https", drop);
    check_refused(&closing, &job(json!([closing.grant("api")])), "during the handshake");
    let old = Server::with_handler("https", |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        // A hello of TLS 1.0.
        let _ = stream.write_all(&[&[22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1][..], &[7; 32], &[0, 0, 47, 0]].concat());
        let _ = stream.read(&mut [0; 4096]);
    });
    check_refused(&old, &job(json!([old.grant("api")])), "");
}

/// A user who can write the CA can impersonate the server, and one who can read the key, the client.
#[test]
fn certificates_that_others_can_write_and_keys_that_others_can_read_are_refused() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let identity = authority.issue(&NAMES, Validity::Now);
    let server = Server::tls(identity.server(Some(&clients)), |_| Answer::ok("known"));
    let own = clients.issue(&["cpi"], Validity::Now);
    let job = trusting(&server, json!({"ca": "ca.pem", "client": {"cert": "own.pem", "key": "own.key"}}));
    let file = |name: &str| job.path("config").join(name);
    for (name, text) in
        [("ca.pem", authority.pem()), ("own.pem", own.certificate.clone()), ("own.key", own.key.clone())]
    {
        files::write(&file(name), text.as_bytes());
        files::set_mode(&file(name), 0o600);
    }
    answered(&outcome(&job, get(&server.url("/"))), 200);
    if is_root("running as another user") {
        // As on a Director: the files belong to the user of the call, and are checked after lock-down.
        let other_job = trusting(&server, json!({"ca": "ca.pem", "client": {"cert": "own.pem", "key": "own.key"}}));
        for name in ["ca.pem", "own.pem", "own.key"] {
            std::fs::copy(file(name), other_job.path("config").join(name)).unwrap();
        }
        give(&other_job.path(""), NOBODY);
        let response = other_job.script(json!([get(&server.url("/"))])).user(NOBODY).run();
        answered(&tests::probe::outcomes(response.result())[0], 200);
    }
    let before = server.requests().len();
    let check_both_refuse = |name: &str, expected: &str| {
        let response = call(&job, &json!([get(&server.url("/"))]));
        let outcome = outcomes_in(response.message()).remove(0);
        assert_eq!(outcome["error"]["kind"], "tls", "{outcome}");
        let config = job.config_file();
        let check =
            std::process::Command::new(tests::dist::tool()).args(["check", "--config"]).arg(config).output().unwrap();
        assert_eq!(check.status.code(), Some(1));
        for text in [response.message(), &String::from_utf8_lossy(&check.stdout)] {
            assert!(text.contains(name) && text.contains(expected), "{name}: no `{expected}` in {text}");
        }
    };
    for (name, mode, expected) in [
        ("ca.pem", 0o622, "is writable by group or others (mode 622)"),
        ("own.pem", 0o660, "is writable by group or others (mode 660)"),
        ("own.key", 0o660, "is writable by group or others (mode 660)"),
        ("own.key", 0o604, "can be read by all users; run `chmod o-r` on it"),
    ] {
        files::set_mode(&file(name), mode);
        check_both_refuse(name, expected);
        files::set_mode(&file(name), 0o644);
    }
    files::set_mode(&file("own.key"), 0o600);
    for name in ["ca.pem", "own.key"] {
        let content = std::fs::read(file(name)).unwrap();
        std::fs::remove_file(file(name)).unwrap();
        files::make_dir(&file(name));
        check_both_refuse(name, "is not a regular file");
        std::fs::remove_dir(file(name)).unwrap();
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(file(name)).status();
        assert!(made.is_ok_and(|status| status.success()));
        check_both_refuse(name, "is not a regular file");
        std::fs::remove_file(file(name)).unwrap();
        files::write(&file(name), &content);
        files::set_mode(&file(name), 0o600);
    }
    assert_eq!(server.requests().len(), before);
}
