//! Servers that violate HTTP: each causes a typed error within the time limits, and the
//! guest never gets a response that the server did not send.

use serde_json::{Value, json};
use std::io::Read;
use tests::cloud::{answered, call, failed, get, job, outcome};
use tests::servers::{Answer, Server, with};

/// Returns what the guest gets from a server with this answer.
fn outcome_of(answer: Answer) -> Value {
    let server = Server::answering(answer);
    let limits = json!({"connect_seconds": 1, "first_byte_seconds": 2, "idle_seconds": 2});
    let response =
        call(&job(json!([server.grant("api")])).limits(limits), &json!([get(&server.url("/v1/x?q=hunter2"))]));
    let outcome = tests::probe::outcomes_in(response.message()).remove(0);
    assert!(!outcome.to_string().contains("hunter2"), "{outcome}");
    outcome
}

#[test]
fn an_invalid_http_response_is_a_protocol_error() {
    let many = (0..10_000).map(|index| format!("x-{index}: v\r\n")).collect::<String>();
    for (name, answer) in [
        ("nothing", Answer::bytes("")),
        ("another protocol", Answer::bytes("SSH-2.0-OpenSSH_9.6\r\n")),
        ("a line of text", Answer::bytes("hello\r\n\r\n")),
        ("HTTP/2", Answer::bytes(&b"\0\0\x12\x04\0\0\0\0\0"[..])),
        ("HTTP/3.7", Answer::bytes("HTTP/3.7 200 OK\r\n\r\n")),
        ("no status", Answer::bytes("HTTP/1.1 OK\r\n\r\n")),
        ("a status of four digits", Answer::bytes("HTTP/1.1 2000 OK\r\n\r\n")),
        ("a status below 100", Answer::bytes("HTTP/1.1 099 OK\r\n\r\n")),
        ("a status line without end", Answer::flood("HTTP/1.1 200 ", vec![b'O'; 1 << 16])),
        ("a header without a colon", Answer::bytes("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n")),
        ("a header with a space in its name", Answer::bytes("HTTP/1.1 200 OK\r\nX A: b\r\n\r\n")),
        ("a NUL in a header", Answer::bytes("HTTP/1.1 200 OK\r\nX-A: b\0c\r\n\r\n")),
        ("ten thousand headers", Answer::bytes(format!("HTTP/1.1 200 OK\r\n{many}\r\n"))),
        ("headers without end", Answer::flood("HTTP/1.1 200 OK\r\n", "x: v\r\n".repeat(1000))),
        ("two lengths", Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")),
        ("a length with a sign", Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na")),
        ("a negative length", Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\na")),
        ("a length that overflows", Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\na")),
        ("a chunk with no size", Answer::bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")),
        (
            "a chunk size that overflows",
            Answer::bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
        ),
        ("an end within the head", Answer::bytes("HTTP/1.1 200 OK\r\nX-A: b\r\n")),
        (
            "an upgrade that was not requested",
            Answer::stall("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
        ),
        ("informational responses without end", Answer::flood("", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100))),
    ] {
        let outcome = outcome_of(answer);
        let kind = outcome["error"]["kind"].as_str().unwrap_or_default();
        assert!(
            kind == "protocol" || (name == "informational responses without end" && kind == "timeout"),
            "{name}: {outcome}"
        );
        failed(&outcome, kind, true, &["iaas: GET http://127.0.0.1:", "/v1/x: "]);
    }
}

#[test]
fn a_response_that_ends_early_is_reported_as_truncated_and_dropped() {
    for (name, answer) in [
        ("less than announced", Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it")),
        ("nothing of what was announced", Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")),
        (
            "chunks without the last",
            Answer::bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
        ),
        ("half a chunk", Answer::bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf")),
    ] {
        let outcome = outcome_of(answer);
        failed(&outcome, "truncated", true, &["iaas: ", "ended before the response was complete"]);
        assert!(!outcome.to_string().contains("half"), "{name}: {outcome}");
    }
}

#[test]
fn bytes_after_the_response_are_ignored() {
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none".repeat(2);
    assert_eq!(answered(&outcome_of(Answer::bytes(twice)), 200)["body"], "one");
    // These statuses never have a body.
    for answer in ["HTTP/1.1 204 No\r\n\r\nbody", "HTTP/1.1 304 No\r\nContent-Length: 4\r\n\r\nbody"] {
        assert_eq!(outcome_of(Answer::bytes(answer))["ok"]["bytes"], 0, "{answer}");
    }
    // With both a length and chunks, the standard prefers the chunks; an error is fine as well.
    let both = outcome_of(Answer::bytes(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
    ));
    assert!(both["ok"]["body"] == "four" || both["error"]["kind"] == "protocol", "{both}");
}

#[test]
fn the_error_of_a_refused_or_broken_connection_says_whether_the_request_was_sent() {
    let (closed, _reserved) = Server::closed_port(0).unwrap();
    let origin = format!("http://{closed}");
    let refused = outcome(&job(json!([tests::servers::grant("api", &origin)])), get(&format!("{origin}/")));
    failed(&refused, "connect", false, &["iaas: ", "check that the server runs"]);
    let hangs_up = Server::with_handler("http", |mut stream| drop(stream.read(&mut [0])));
    let broken = outcome(&job(json!([hangs_up.grant("api")])), get(&hangs_up.url("/")));
    failed(&broken, "protocol", true, &["ended before the server responded"]);
}

#[test]
fn redirects_are_not_followed() {
    let target = Server::answering(Answer::ok("not to be seen"));
    for status in [301, 302, 303, 307, 308] {
        for location in
            [target.url("/secret"), "//127.0.0.1/".into(), "http://169.254.169.254/latest/".into(), "/again".into()]
        {
            let to = location.clone();
            let server = Server::start(move |_| {
                Answer::new(status, "moved").header("Location", &to).header("Refresh", "0; url=/x")
            });
            let grants = json!([
                with(server.grant("api"), json!({"auth": {"bearer": "${password}"}, "plain_http": true})),
                target.grant("target"),
            ]);
            let request = json!({"op": "http", "method": "POST", "url": server.url("/"), "body": "once"});
            let outcome = outcome(&job(grants), request);
            assert_eq!(answered(&outcome, status)["headers"]["location"], location);
            assert_eq!(server.request().text(), "once");
        }
    }
    assert_eq!(target.connections(), 0);
}

#[test]
fn an_encoded_response_is_withheld_where_the_grant_sends_secrets() {
    for (answer, withheld) in [
        ("Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nzipp", true),
        ("Transfer-Encoding: gzip\r\n\r\nzipp", true),
        ("Content-Encoding: identity\r\nContent-Length: 4\r\n\r\nopen", false),
        ("Transfer-Encoding: chunked\r\n\r\n4\r\nopen\r\n0\r\n\r\n", false),
    ] {
        let server = Server::answering(Answer::bytes(format!("HTTP/1.1 200 OK\r\n{answer}")));
        let guarded = with(server.grant("api"), json!({"auth": {"bearer": "${password}"}, "plain_http": true}));
        let outcome = outcome(&job(json!([guarded])), get(&server.url("/")));
        match withheld {
            true => {
                failed(&outcome, "protocol", true, &["it is encoded", "the server must respond without compression"])
            }
            false => assert_eq!(answered(&outcome, 200)["body"], "open"),
        }
        assert_eq!(server.request().header("accept-encoding"), Some("identity"));
    }
}
