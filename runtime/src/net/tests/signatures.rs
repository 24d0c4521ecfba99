//! Signed requests: what is signed and sent, what a guest may write, and what it sees of refusals.

use super::fixture::{Fixture, Running, post, request};
use super::handshakes::{Authority, trusted};
use super::server::{Seen, Server, Wire, response};
use crate::image::{Image, ImagePart};
use crate::net::error::HttpErrorKind;
use crate::net::gate::{GuestBody, GuestBodyPart, GuestRequest};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;
use wasm_cpi_sigv4::{PathRules, Request, Scope, SigningKey, sha256_hex};

pub(super) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+secret";
pub(super) const TOKEN: &str = "session-token-of-the-job==";

/// Returns true if the request is signed with this key, as it arrived, within a minute of `now`.
pub(super) fn is_signed_by(seen: &Seen, secret: &str, service: &str, now: Timestamp) -> bool {
    let line = seen.line().split(' ').collect::<Vec<_>>();
    let (method, target) = (line[0], line[1]);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let authorization = seen.header("authorization").unwrap_or_default();
    let timestamp = seen.header("x-amz-date").unwrap_or_default();
    let names =
        authorization.split("SignedHeaders=").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default();
    let mut headers = Vec::new();
    for line in seen.head.lines().skip(1).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        if names.split(';').any(|signed| signed.eq_ignore_ascii_case(name)) {
            headers.push((name, value));
        }
    }
    let payload_sha256 = sha256_hex(&seen.body);
    let path_rules = PathRules::of_service(service);
    let canonical = Request { method, path, path_rules, query, headers: &headers, payload_sha256: &payload_sha256 };
    let scope = Scope { timestamp, region: "eu-central-1", service };
    let id = authorization.split("Credential=").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let expected = canonical.authorization(id, &SigningKey::derive(secret, &scope), &scope);
    let is_timely = (-60..=60).any(|offset| {
        let time = now.checked_add(SignedDuration::from_secs(offset)).unwrap();
        time.strftime("%Y%m%dT%H%M%SZ").to_string() == timestamp
    });
    authorization == expected && is_timely && seen.header("x-amz-content-sha256") == Some(&payload_sha256)
}

fn policy(url: &str, more: Value) -> Value {
    let mut grant = json!({"id": "api", "to": url, "methods": ["GET", "POST", "PUT"], "paths": ["/**"], "auth": {"sigv4": {
        "service": "compute", "region": "eu-central-1", "credentials": "main"}}});
    grant.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    json!({"http": [grant], "credentials": {"main": {"static": {
        "access_key_id": "${id}", "secret_access_key": "${key}", "session_token": "${token}"}}}})
}

fn start_with(url: &str, more: Value, token: &str) -> Running {
    let properties =
        json!({"id": "AKIDOFTHEJOB12345", "key": SECRET, "token": token, "password": "correct horse battery"});
    Fixture { properties, ..Fixture::with(policy(url, more)) }.start()
}

fn start(server: &Server) -> Running {
    start_with(&server.url(""), json!({}), TOKEN)
}

fn form(url: String, body: &str) -> GuestRequest {
    let headers = vec![("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
    GuestRequest { headers, body: GuestBody::Bytes(body.as_bytes().to_vec()), ..request("POST", url) }
}

fn ok() -> Server {
    Server::answering(response("200 OK", "", "done"))
}

#[test]
fn what_is_sent_is_what_was_signed() {
    let server = ok();
    for token in [TOKEN, ""] {
        let running = start_with(&server.url(""), json!({}), token);
        let mut with_headers = form(server.url("/"), "Action=RunServers&Name=a+b%C3%A4");
        with_headers.headers.push(("X-Two".into(), "a   b ".into()));
        with_headers.headers.push(("x-two".into(), "c\u{e4}".into()));
        with_headers.headers.push(("X-Amz-Checksum-Algorithm".into(), "SHA256".into()));
        running.send(with_headers).unwrap();
        running.get(server.url("/a%20b/c:d/?y=2&x=%7E1+2&x=0&flag")).unwrap();
        running.send(request("PUT", server.url("/empty"))).unwrap();
    }
    let seen = server.requests();
    assert_eq!(seen.len(), 6);
    for (index, seen) in seen.iter().enumerate() {
        assert!(is_signed_by(seen, SECRET, "compute", Timestamp::now()), "{}", seen.head);
        assert!(!is_signed_by(seen, "another", "compute", Timestamp::now()));
        assert!(!seen.head.contains(SECRET));
        assert_eq!(seen.header("x-amz-security-token"), (index < 3).then_some(TOKEN));
    }
    let signed = "SignedHeaders=content-type;host;x-amz-checksum-algorithm;x-amz-content-sha256;x-amz-date;x-amz-security-token;x-two,";
    assert!(seen[0].header("authorization").unwrap().contains(signed), "{}", seen[0].head);
}

#[test]
fn the_body_is_signed_after_its_slots_are_filled() {
    let server = ok();
    let slots = json!({"slots": [{"method": "POST", "path": "/x", "place": "json:/data", "takes": ["password"]}]});
    let running = start_with(&server.url(""), slots, TOKEN);
    let seal = running.visible["password"].as_str().unwrap();
    running.send(post(server.url("/x"), &json!({"data": seal}))).unwrap();
    let seen = &server.requests()[0];
    assert!(String::from_utf8_lossy(&seen.body).contains("correct horse battery"));
    assert!(is_signed_by(seen, SECRET, "compute", Timestamp::now()), "{}", seen.head);
}

#[test]
fn an_image_is_read_once_more_for_its_digest() {
    let server = ok();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    std::fs::write(&path, vec![7; 300_000]).unwrap();
    let properties = json!({"id": "AKID", "key": SECRET});
    let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
    let running = Fixture { properties, image, ..Fixture::with(policy(&server.url(""), json!({}))) }.start();
    running
        .send(GuestRequest { body: GuestBody::Image(ImagePart::Whole), ..request("PUT", server.url("/i")) })
        .unwrap();
    let parts = vec![GuestBodyPart::Bytes(b"before".to_vec()), GuestBodyPart::Image(ImagePart::Whole)];
    running.send(GuestRequest { body: GuestBody::Parts(parts), ..request("PUT", server.url("/i")) }).unwrap();
    let seen = server.requests();
    assert_eq!([seen[0].body.len(), seen[1].body.len()], [300_000, 300_006]);
    assert!(seen.iter().all(|seen| is_signed_by(seen, SECRET, "compute", Timestamp::now())));
}

#[test]
fn headers_of_the_protocol_are_refused_unless_they_describe_the_body() {
    let server = ok();
    let running = start(&server);
    for (name, refused) in [
        ("X-Amz-Date", Some(Check::SignedHeader)),
        ("Date", Some(Check::SignedHeader)),
        ("x-amz-security-token", Some(Check::SignedHeader)),
        ("x-amz-content-sha256", Some(Check::SignedHeader)),
        ("X-Amz-Copy-Source", Some(Check::SignedHeader)),
        ("x-amz-acl", Some(Check::SignedHeader)),
        ("x-amz-grant-read", Some(Check::SignedHeader)),
        ("x_amz_date", Some(Check::SignedHeader)),
        ("x-amz-target", Some(Check::SignedHeader)),
        ("x-amzn-anything", Some(Check::SignedHeader)),
        ("x-amz-checksum-x", Some(Check::SignedHeader)),
        ("Authorization", Some(Check::HeaderOfAuth)),
        ("x-amz-checksum", None),
        ("X-Amz-Data-Length", None),
        ("x-amz-ChangedBlocksCount", None),
        ("x-custom", None),
    ] {
        let headers = vec![(name.to_owned(), "1".to_owned())];
        let result = running.send(GuestRequest { headers, ..request("GET", server.url("/x")) });
        assert_eq!(result.as_ref().err().and_then(|error| error.check), refused, "{name}: {result:?}");
    }
    // The target is an operation: it is accepted where the policy judges it.
    let operations = json!({"operations": {"in": "header:X-Amz-Target", "allow": ["Api.Run"]}});
    let running = start_with(&server.url(""), operations, TOKEN);
    for (target, kind) in [("Api.Run", None), ("Api.Stop", Some(HttpErrorKind::Denied(DenialReason::Operation)))] {
        let mut run = post(server.url("/x"), &json!({}));
        run.headers.push(("x-amz-target".into(), target.into()));
        assert_eq!(running.send(run).err().map(|error| error.kind), kind, "{target}");
    }
}

#[test]
fn parameters_of_signatures_and_a_query_beside_a_form_are_refused() {
    let server = ok();
    let running = start(&server);
    for (query, body, refused) in [
        ("", "Action=A&Filter.1.Name=x", None),
        ("?a=1", "", None),
        ("?Action=B", "Action=A", Some(Check::SignedFormQuery)),
        ("", "Action=A&Signature=x", Some(Check::SignedParameter)),
        ("", "Action=A&AWSACCESSKEYID=x", Some(Check::SignedParameter)),
        ("", "Action=A&X-Amz-Security-Token=x", Some(Check::SignedParameter)),
        ("", "Action=A&x-amz-date=x", Some(Check::SignedParameter)),
        ("", "Action=A&SecurityToken=x", Some(Check::SignedParameter)),
        ("", "Action=A&SignatureVersion=2&Timestamp=x", Some(Check::SignedParameter)),
        ("", "Action=A&Expires=9", Some(Check::SignedParameter)),
        ("", "Action=A&X%2DAmz-Date=x", Some(Check::SignedParameter)),
        ("", "Action=%zz", Some(Check::SignedParameter)),
        ("?X-Amz-Algorithm=x", "", Some(Check::SignedParameter)),
        ("?Expires=9", "", Some(Check::SignedParameter)),
    ] {
        let url = server.url(&format!("/{query}"));
        let sent = if body.is_empty() { request("GET", url) } else { form(url, body) };
        let result = running.send(sent);
        assert_eq!(result.as_ref().err().and_then(|error| error.check), refused, "{query} {body}: {result:?}");
    }
}

#[test]
fn a_guest_does_not_see_what_was_signed() {
    let quoted =
        format!("The canonical string should have been\\n'POST\\n/\\n\\nhost:x\\nx-amz-security-token:{TOKEN}\\n'");
    let types = [
        ("application/json", json!({"__type": "SignatureDoesNotMatch", "message": quoted, "request-id": "r-1"}).to_string()),
        ("application/json", json!({"Error": {"StringToSign": TOKEN, "CanonicalRequest": TOKEN, "AWSACCESSKEYID": "AKIDOFTHEJOB12345"}, "request-id": "r-1"}).to_string()),
        ("text/xml", format!("<E><Code>SignatureDoesNotMatch</Code><Message>{quoted}</Message><R>r-1</R></E>")),
        ("application/xml", format!("<Error><Code>X</Code><StringToSign>{TOKEN}</StringToSign><SignatureProvided>ab</SignatureProvided><CanonicalRequestBytes>50</CanonicalRequestBytes><AccessKeyId>AKIDOFTHEJOB12345</AccessKeyId><R>r-1</R></Error>")),
        ("application/xml", format!("<Error><Code>ExpiredToken</Code><Token-0>{TOKEN}</Token-0><R>r-1</R></Error>")),
    ];
    for (kind, body) in types {
        let server = Server::answering(response("403 Forbidden", &format!("Content-Type: {kind}\r\n"), &body));
        let running = start(&server);
        let seen = running.get(server.url("/x")).unwrap();
        let text = String::from_utf8(seen.body).unwrap();
        assert!(seen.status == 403 && text.contains("r-1"), "{text}");
        for secret in [TOKEN, "AKIDOFTHEJOB12345", "canonical string", ">ab<", ">50<"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(running.gate.leak().is_none());
        assert_eq!(server.requests().len(), 1);
    }
    let plain = format!("The String-to-Sign should have been {TOKEN}");
    let server = Server::answering(response("403 Forbidden", "Content-Type: text/plain\r\n", &plain));
    let running = start(&server);
    let seen = running.get(server.url("/x")).unwrap();
    assert!((seen.status, seen.body.len()) == (403, 0) && running.gate.leak().is_none());
}

/// A server that answers with this status and type, and `SIGNED` and `SIGNATURE` replaced by what it received.
fn quoting(status: &'static str, kind: &'static str, header: &'static str, body: &'static str) -> Server {
    Server::plain(move |seen: &Seen, wire: &mut dyn Wire| {
        let signed = seen.header("authorization").unwrap_or_default();
        let signature = signed.split("Signature=").nth(1).unwrap_or_default();
        let fill = |text: &str| text.replace("SIGNED", signed).replace("SIGNATURE", signature);
        let headers = format!("Content-Type: {kind}\r\n{}", fill(header));
        wire.write_all(&response(status, &headers, &fill(body))).unwrap();
    })
}

#[test]
fn a_response_with_a_signature_is_a_leak_and_an_error_shows_none() {
    let properties = json!({"id": "minioadmin", "key": SECRET});
    for (status, kind, header, body, leaks) in [
        ("200 OK", "application/json", "", r#"{"h": "SIGNED"}"#, true),
        ("200 OK", "text/plain", "", "it was SIGNATURE", true),
        ("200 OK", "application/json", "X-Seen: SIGNED\r\n", "{}", true),
        ("302 Found", "application/json", "Location: http://x.test/?SIGNATURE\r\n", "{}", true),
        ("403 Forbidden", "application/json", "", r#"{"m": "got SIGNATURE", "r": "r-1"}"#, false),
        ("403 Forbidden", "text/xml", "", "<E><M>got SIGNATURE</M><R>r-1</R></E>", false),
        ("403 Forbidden", "text/plain", "X-Seen: SIGNATURE\r\nX-Id: r-1\r\n", "SIGNATURE", false),
    ] {
        let server = quoting(status, kind, header, body);
        let fixture = Fixture { properties: properties.clone(), ..Fixture::with(policy(&server.url(""), json!({}))) };
        let running = fixture.start();
        let result = running.get(server.url("/x"));
        let signed = server.requests()[0].header("authorization").unwrap().to_owned();
        let signature = signed.split("Signature=").nth(1).unwrap();
        match result {
            Ok(seen) => {
                let shown = format!("{:?} {}", seen.headers, String::from_utf8_lossy(&seen.body));
                assert!(
                    !leaks && !shown.contains(signature) && shown.contains("r-1"),
                    "{status} {header} {body}: {shown}"
                );
            }
            Err(error) => assert!(leaks, "{status} {header} {body}: {error}"),
        }
        assert_eq!(running.gate.leak().is_some(), leaks, "{status} {header} {body}");
    }
}

/// A server whose clock is `ahead` seconds ahead, and which refuses signatures of other times with this code.
fn skewed(authority: &Authority, ahead: i64, code: &'static str) -> Server {
    trusted(authority, "localhost", move |seen: &Seen, wire: &mut dyn Wire| {
        let now = Timestamp::now().checked_add(SignedDuration::from_secs(ahead)).unwrap();
        let date = format!("Date: {}\r\nContent-Type: text/xml\r\n", now.strftime("%a, %d %b %Y %H:%M:%S GMT"));
        let refused = format!("<Response><Errors><Error><Code>{code}</Code></Error></Errors></Response>");
        let answer = match is_signed_by(seen, SECRET, "compute", now) {
            true => response("200 OK", &date, "<ok/>"),
            false => response("400 Bad Request", &date, &refused),
        };
        wire.write_all(&answer).unwrap();
    })
}

#[test]
fn the_servers_time_is_used_once_it_says_that_ours_is_wrong() {
    let authority = Authority::new();
    for (ahead, code, statuses, requests) in [
        (3600, "RequestExpired", [200, 200], 3),
        (-3600, "SignatureDoesNotMatch", [200, 200], 3),
        (3600, "UnauthorizedOperation", [400, 400], 2),
        (100_000, "RequestTimeTooSkewed", [400, 400], 2),
    ] {
        let server = skewed(&authority, ahead, code);
        let url = format!("https://localhost:{}", server.address.port());
        let mut fixture = Fixture::with(policy(&url, json!({"tls": {"ca": authority.pem()}})));
        fixture.properties = json!({"id": "AKID", "key": SECRET});
        fixture.hosts = "127.0.0.1 localhost\n".into();
        let running = fixture.start();
        let found = [0, 1].map(|_| running.get(format!("{url}/x")).unwrap().status);
        assert_eq!((found, server.requests().len()), (statuses, requests), "{ahead} {code}");
    }
}

#[test]
fn a_server_without_tls_cannot_change_the_time() {
    let date = "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: text/xml\r\n";
    let server = Server::answering(response("400 Bad Request", date, "<R><Code>RequestExpired</Code></R>"));
    let running = start(&server);
    assert_eq!(running.get(server.url("/x")).unwrap().status, 400);
    // Keys of properties are not renewed, either.
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn requests_of_other_credentials_use_other_connections() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let server = Server::raw(move |mut stream, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        while super::server::read_request(&mut stream).is_some() {
            std::io::Write::write_all(&mut stream, &super::server::kept_response("200 OK", "", "done")).unwrap();
        }
    });
    let mut policy = policy(&server.url(""), json!({"paths": ["/a"]}));
    policy["credentials"]["other"] = policy["credentials"]["main"].clone();
    let mut other = policy["http"][0].clone();
    (other["id"], other["paths"], other["auth"]["sigv4"]["credentials"]) =
        (json!("other"), json!(["/b"]), json!("other"));
    policy["http"].as_array_mut().unwrap().push(other);
    let properties = json!({"id": "AKID", "key": SECRET});
    let running = Fixture { properties, ..Fixture::with(policy) }.start();
    for path in ["/a", "/a", "/b", "/b", "/a"] {
        running.get(server.url(path)).unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
