//! HTTP requests of a guest: what arrives at the server, what the guest gets back, and
//! the limits on both.

mod blocks;
mod broken_servers;
mod denials;
mod headers;
mod hints;
mod images;
mod policy_changes;
mod routes;
mod several;
mod tls;

use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;
use tests::cloud::{answered, failed, get, job, outcome, outcomes, post};
use tests::servers::{Answer, Server, with};
use tests::{CLOUD_ERROR, Job};

fn limited(server: &Server, limits: Value) -> Job {
    job(json!([server.grant("api")])).limits(limits)
}

/// Checks that the request reached this limit, and that the message names it and says what to do.
#[track_caller]
fn check_reached(outcome: &Value, limit: &str, sent: bool) {
    assert_eq!(outcome["error"]["limit"], limit, "{outcome}");
    failed(outcome, "limit", sent, &[&format!("`{limit}` ("), &format!("raise `limits.{limit}` in the CPI's config")]);
}

/// Checks that the request timed out because of this limit, and that the message names it.
#[track_caller]
fn check_timed_out(outcome: &Value, limit: &str, sent: bool) {
    failed(outcome, "timeout", sent, &["iaas: ", &format!("`limits.{limit}`")]);
}

#[test]
fn an_allowed_request_arrives_in_canonical_form_and_its_response_is_returned() {
    let server = Server::start(|_| {
        Answer::new(207, &b"{\"a\": [1]}"[..]).header("X-Twice", "1").header("X-TWICE", "2").header("ETag", "\"e\"")
    });
    let job = job(json!([server.grant("api")]));
    let request = json!({
        "op": "http", "method": "PATCH", "url": server.url("/v1/./a%20b/../c%7E?q=1&q=%2F..#fragment"),
        "headers": [["X-One", "a"], ["x-one", "b"], ["Content-Type", "text/plain"]], "body": "the=body",
    });
    let outcome = outcome(&job, request);
    let answer = answered(&outcome, 207);
    assert_eq!(answer["body"], "{\"a\": [1]}");
    assert_eq!(answer["headers"], json!({"x-twice": "1, 2", "etag": "\"e\"", "content-length": "10"}));
    let seen = server.request();
    assert_eq!(seen.line, "PATCH /v1/c~?q=1&q=%2F.. HTTP/1.1");
    assert_eq!(seen.text(), "the=body");
    let mut headers = seen.headers.clone();
    headers.sort();
    let version = env!("CARGO_PKG_VERSION");
    let expected = [
        ("accept", "*/*".to_owned()),
        ("accept-encoding", "identity".into()),
        ("content-length", "8".into()),
        ("content-type", "text/plain".into()),
        ("host", server.address().to_string()),
        ("user-agent", format!("wasm-cpi/{version}")),
        ("x-one", "a".into()),
        ("x-one", "b".into()),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn all_methods_and_all_forms_of_response_bodies_are_supported() {
    let server = Server::start(|seen| match seen.target() {
        "/none" => Answer::bytes("HTTP/1.1 204 No Content\r\n\r\n"),
        "/chunked" => {
            Answer::bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        }
        "/any" if seen.method() == "HEAD" => Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"),
        "/until-the-end" => Answer::bytes("HTTP/1.1 200 OK\r\n\r\nall of it"),
        "/binary" => Answer::ok(&b"\0\xff\xfe\0"[..]),
        "/odd-header" => Answer::bytes(&b"HTTP/1.1 200 OK\r\nX-Odd: a\xffb\r\nContent-Length: 0\r\n\r\n"[..]),
        "/compressed" => Answer::ok(&b"\x1f\x8b not unpacked"[..]).header("Content-Encoding", "gzip"),
        "/informed" => Answer::bytes("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        "/error" => Answer::new(503, "later"),
        _ => Answer::ok("ok"),
    });
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let paths = ["none", "chunked", "until-the-end", "binary", "odd-header", "compressed", "informed", "error"];
    let by_method = methods.iter().map(|method| json!({"op": "http", "method": method, "url": server.url("/any")}));
    let script: Vec<Value> = by_method.chain(paths.iter().map(|path| get(&server.url(&format!("/{path}"))))).collect();
    let outcomes = outcomes(&job(json!([server.grant("api")])), &json!(script));
    let seen = server.requests();
    for (index, method) in methods.iter().enumerate() {
        answered(&outcomes[index], 200);
        assert_eq!(seen[index].method(), *method);
        let length = seen[index].header("content-length");
        assert_eq!(length, ["POST", "PUT", "PATCH"].contains(method).then_some("0"), "{method}");
    }
    let of = |path: &str| &outcomes[methods.len() + paths.iter().position(|known| *known == path).unwrap()]["ok"];
    assert_eq!((&of("none")["status"], &of("none")["bytes"]), (&json!(204), &json!(0)));
    assert_eq!(of("chunked")["body"], "abcde");
    assert_eq!(of("until-the-end")["body"], "all of it");
    assert_eq!(of("binary")["body_base64"], "AP/+AA==");
    assert_eq!(of("odd-header")["headers"]["x-odd"], "a\u{fffd}b");
    assert_eq!(of("compressed")["bytes"], 15);
    assert_eq!(of("informed")["body"], "ok");
    assert_eq!((&of("error")["status"], &of("error")["body"]), (&json!(503), &json!("later")));
}

#[test]
fn http_requests_counts_refused_requests_as_well() {
    let server = Server::answering(Answer::ok(""));
    let script = json!([
        {"op": "http", "url": "ftp://127.0.0.1/"},
        {"op": "http", "url": server.url("/"), "repeat": 5},
        {"op": "session", "name": "any"},
    ]);
    let outcomes = outcomes(&limited(&server, json!({"http_requests": 3})), &script);
    check_reached(&outcomes[1], "http_requests", false);
    assert_eq!(outcomes[1]["times"], 3);
    check_reached(&outcomes[2], "http_requests", false);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn http_request_mib_bounds_the_body_that_is_sent() {
    let server = Server::answering(Answer::ok(""));
    let send = |bytes: usize| json!({"op": "http", "method": "PUT", "url": server.url("/"), "body": "x".repeat(bytes)});
    let outcomes = limited(&server, json!({"http_request_mib": 1})).probe(json!([send(1 << 20), send((1 << 20) + 1)]));
    answered(&outcomes[0], 200);
    check_reached(&outcomes[1], "http_request_mib", false);
    assert_eq!(server.request().length, 1 << 20);
}

#[test]
fn http_response_mib_bounds_the_body_that_is_received() {
    let mib = vec![b'x'; 1 << 20];
    let chunk = [b"10000\r\n", vec![b'x'; 0x10000].as_slice(), b"\r\n"].concat();
    for (name, answer, fits) in [
        ("as large as allowed", Answer::ok(mib.clone()), true),
        ("one byte larger", Answer::ok(vec![b'x'; (1 << 20) + 1]), false),
        (
            "announced as a gigabyte",
            Answer::flood("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", mib.clone()),
            false,
        ),
        ("chunks without end", Answer::flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk), false),
        ("no end at all", Answer::flood("HTTP/1.1 200 OK\r\n\r\n", mib.clone()), false),
        ("an error page", Answer::flood("HTTP/1.1 500 Oops\r\n\r\n", mib.clone()), false),
    ] {
        let server = Server::answering(answer);
        let limited = limited(&server, json!({"http_response_mib": 1}));
        let response = tests::cloud::call(&limited, &json!([with(get(&server.url("/")), json!({"keep": 1}))]));
        let outcome = &tests::probe::outcomes_in(response.message())[0];
        match fits {
            true => assert_eq!(answered(outcome, 200)["bytes"], 1 << 20, "{name}"),
            false => check_reached(outcome, "http_response_mib", true),
        }
    }
}

#[test]
fn http_total_mib_bounds_the_sum_of_all_bodies() {
    let server =
        Server::start(|seen| Answer::ok(if seen.method() == "GET" { vec![b'x'; 400 << 10] } else { Vec::new() }));
    let put = json!({"op": "http", "method": "PUT", "url": server.url("/"), "body": "x".repeat(400 << 10)});
    let take = with(get(&server.url("/")), json!({"keep": 1}));
    let limits = json!({"http_total_mib": 1});
    let outcomes = limited(&server, limits).probe(json!([put, take, take, put, get(&server.url("/"))]));
    answered(&outcomes[0], 200);
    answered(&outcomes[1], 200);
    check_reached(&outcomes[2], "http_total_mib", true);
    check_reached(&outcomes[3], "http_total_mib", false);
    check_reached(&outcomes[4], "http_total_mib", true);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn http_headers_bounds_the_number_of_headers_in_both_directions() {
    let server = Server::start(|seen| {
        let count: usize = seen.target()[1..].parse().unwrap_or(0);
        (0..count).fold(Answer::ok(""), |answer, index| answer.header(&format!("x-{index}"), "v"))
    });
    let headers = |count: usize| (0..count).map(|index| json!([format!("x-{index}"), "v"])).collect::<Vec<_>>();
    let send = |count: usize| with(get(&server.url("/0")), json!({"headers": headers(count)}));
    // The server adds `Content-Length`, which counts as well.
    let receive = |count: usize| get(&server.url(&format!("/{}", count - 1)));
    let script = json!([send(5), receive(5), send(6), receive(6), send(10_000), receive(10_000)]);
    let outcomes = limited(&server, json!({"http_headers": 5})).probe(script);
    answered(&outcomes[0], 200);
    answered(&outcomes[1], 200);
    check_reached(&outcomes[2], "http_headers", false);
    check_reached(&outcomes[3], "http_headers", true);
    check_reached(&outcomes[4], "http_headers", false);
    failed(&outcomes[5], "protocol", true, &["`limits.http_headers`"]);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn header_kib_bounds_the_size_of_headers_in_both_directions() {
    let server = Server::start(|seen| match seen.target() {
        "/small" => Answer::ok("").header("x", &"v".repeat(900)),
        "/large" => Answer::ok("").header("x", &"v".repeat(1024)),
        "/huge" => Answer::flood("HTTP/1.1 200 OK\r\nx: ", "v".repeat(1 << 16)),
        "/name" => Answer::bytes(format!("HTTP/1.1 200 OK\r\n{}: v\r\n\r\n", "n".repeat(2000))),
        _ => Answer::ok(""),
    });
    let send = |bytes: usize| with(get(&server.url("/")), json!({"headers": {"x": "v".repeat(bytes)}}));
    let receive = |path: &str| get(&server.url(path));
    let script = json!([
        send(1023),
        receive("/small"),
        send(1024),
        receive("/large"),
        receive("/name"),
        receive("/huge"),
        send(1 << 20)
    ]);
    let outcomes = limited(&server, json!({"header_kib": 1})).probe(script);
    answered(&outcomes[0], 200);
    answered(&outcomes[1], 200);
    check_reached(&outcomes[2], "header_kib", false);
    check_reached(&outcomes[3], "header_kib", true);
    check_reached(&outcomes[4], "header_kib", true);
    failed(&outcomes[5], "protocol", true, &["`limits.header_kib`"]);
    check_reached(&outcomes[6], "header_kib", false);
}

#[test]
fn url_bytes_bounds_the_url() {
    let server = Server::answering(Answer::ok(""));
    let url = |bytes: usize| format!("{}{}", server.url("/"), "p".repeat(bytes - server.url("/").len()));
    let script = json!([get(&url(100)), get(&url(101)), get(&format!("ftp://{}", "p".repeat(1 << 20)))]);
    let outcomes = limited(&server, json!({"url_bytes": 100})).probe(script);
    answered(&outcomes[0], 200);
    check_reached(&outcomes[1], "url_bytes", false);
    check_reached(&outcomes[2], "url_bytes", false);
    assert_eq!(server.connections(), 1);
}

#[test]
fn connect_seconds_bounds_connecting_and_the_handshake() {
    let (address, _waiting) = Server::full_backlog();
    let silent = Server::with_handler("https", |stream| drop(std::io::Read::read(&mut { stream }, &mut [0; 1])));
    let mute = Server::with_handler("https", |mut stream| {
        let mut hello = [0; 4096];
        while std::io::Read::read(&mut stream, &mut hello).is_ok_and(|count| count > 0) {}
    });
    for origin in [format!("http://{address}"), format!("https://{address}"), silent.origin(), mute.origin()] {
        let job = job(json!([tests::servers::grant("api", &origin)])).limits(json!({"connect_seconds": 1}));
        let response = tests::cloud::call(&job, &json!([get(&format!("{origin}/"))]));
        let outcome = &tests::probe::outcomes_in(response.message())[0];
        if origin == silent.origin() {
            failed(outcome, "tls", false, &["during the handshake"]);
            continue;
        }
        check_timed_out(outcome, "connect_seconds", false);
    }
}

#[test]
fn first_byte_seconds_bounds_the_wait_for_a_response() {
    for answer in [
        Answer::stall(""),
        Answer::stall("HTTP/1.1 200"),
        Answer::stall("HTTP/1.1 200 OK\r\nX-A: b\r\n"),
        Answer::Drip([&b"HTTP/1.1 200 OK\r\nX-A: "[..], &[b'x'; 600]].concat(), Duration::from_millis(100)),
    ] {
        let server = Server::answering(answer);
        let job = limited(&server, json!({"first_byte_seconds": 1, "connect_seconds": 1}));
        for request in [get(&server.url("/")), post(&server.url("/"), &json!({"a": 1}))] {
            let response = tests::cloud::call(&job, &json!([request]));
            check_timed_out(&tests::probe::outcomes_in(response.message())[0], "first_byte_seconds", true);
        }
    }
}

#[test]
fn idle_seconds_bounds_pauses_in_bodies_in_both_directions() {
    let large = "x".repeat(8 << 20);
    let deaf = Server::with_handler("http", |stream| {
        std::thread::sleep(Duration::from_secs(8));
        drop(stream);
    });
    let stops = Server::answering(Answer::stall("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
    let stops_in_chunk =
        Server::answering(Answer::stall("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf"));
    for (server, method, body) in [(deaf, "PUT", large.as_str()), (stops, "GET", ""), (stops_in_chunk, "GET", "")] {
        let job = limited(&server, json!({"idle_seconds": 1}));
        let request = json!({"op": "http", "method": method, "url": server.url("/"), "body": body});
        let response = job.script(json!([request])).run();
        check_timed_out(&tests::probe::outcomes(response.result())[0], "idle_seconds", true);
    }
}

#[test]
fn a_slow_response_that_keeps_arriving_is_accepted() {
    let slow = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nlate, though".to_vec();
    let server = Server::answering(Answer::Drip(slow, Duration::from_millis(30)));
    let job = limited(&server, json!({"idle_seconds": 1, "first_byte_seconds": 2}));
    let outcome = outcome(&job, get(&server.url("/")));
    assert_eq!(answered(&outcome, 200)["body"], "late, though");
}

#[test]
fn a_request_ends_at_its_own_timeout_or_at_the_deadline_of_the_call() {
    let server = Server::start(|seen| match seen.method() {
        "DELETE" => Answer::ok("undone"),
        _ => Answer::Drip([&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[b'x'; 600]].concat(), Duration::from_millis(100)),
    });
    let job = limited(&server, json!({"wall_seconds": 2}));
    let undo = json!({"op": "http", "method": "DELETE", "url": server.url("/")});
    let script = json!([
        with(get(&server.url("/")), json!({"timeout_ms": 300})),
        with(get(&server.url("/")), json!({"timeout_ms": 0})),
        get(&server.url("/")),
        {"op": "clock.sleep", "ms": 60_000, "on_cancel": [undo]},
    ]);
    let response = job.script(script).run();
    response.fails(CLOUD_ERROR, &["`wall_seconds` (2)"]);
    let outcomes = tests::probe::outcomes_in(response.message());
    failed(&outcomes[0], "timeout", true, &["raise the request's timeout"]);
    assert_eq!(outcomes[1]["error"]["kind"], "timeout", "{}", outcomes[1]);
    failed(&outcomes[2], "timeout", true, &["`limits.wall_seconds`"]);
    assert_eq!(outcomes[3]["error"]["kind"], "cancelled");
    // The guest has time left to clean up, including requests.
    assert_eq!(answered(&outcomes[4], 200)["body"], "undone");
}

#[test]
fn a_call_that_is_stopped_lists_the_requests_that_may_have_changed_something() {
    let server = Server::start(|seen| match seen.target() {
        "/made?q=hunter2" => Answer::new(201, ""),
        "/refused" => Answer::new(409, ""),
        "/gateway" => Answer::new(504, ""),
        "/lost" => Answer::bytes(""),
        "/silent" => Answer::stall(""),
        _ => Answer::ok(""),
    });
    let send = |method: &str, path: &str| json!({"op": "http", "method": method, "url": server.url(path)});
    let before = json!([
        send("POST", "/made?q=hunter2"), send("POST", "/refused"), send("PUT", "/gateway"), send("POST", "/lost"), send("GET", "/read"),
        {"op": "http", "method": "DELETE", "url": "http://127.0.0.1:1/denied"},
    ]);
    let describe = |path: &str, outcome: &str| format!("{} {outcome}", server.url(path));
    let listed = [
        format!("POST {}", describe("/made", "-> 201")),
        format!("PUT {}", describe("/gateway", "-> 504")),
        format!("POST {}", describe("/lost", "without a response")),
    ];
    let job = limited(&server, json!({"cleanup_seconds": 1}));
    let ends = [
        (json!({"op": "trap"}), None),
        (json!({"op": "exit", "code": 1}), None),
        (send("PATCH", "/silent"), Some(format!("PATCH {}", describe("/silent", "without a response")))),
    ];
    for (end, pending) in ends {
        let mut script = before.as_array().cloned().unwrap();
        script.extend([json!({"op": "log", "message": "stop"}), end, json!({"op": "trap"})]);
        let call = job.script(json!(script));
        let response = if pending.is_some() { call.signal_at("stop", Signal::TERM) } else { call }.run();
        let expected = listed.iter().cloned().chain(pending).collect::<Vec<_>>().join(", ");
        response.fails(CLOUD_ERROR, &[&expected]);
        for unlisted in ["/refused", "/read", "/denied", "hunter2"] {
            assert!(!response.message().contains(unlisted), "{unlisted} in {}", response.message());
        }
    }
}

#[test]
fn a_pending_request_is_cancelled_when_the_call_ends_so_that_the_guest_can_clean_up() {
    let server = Server::start(|seen| if seen.method() == "DELETE" { Answer::ok("undone") } else { Answer::stall("") });
    let undo = json!({"op": "http", "method": "DELETE", "url": server.url("/vms/1")});
    let script = json!([
        {"op": "log", "message": "asking"},
        {"op": "http", "method": "POST", "url": server.url("/vms"), "on_cancel": [undo]},
    ]);
    let response =
        limited(&server, json!({"cleanup_seconds": 4})).script(script).signal_at("asking", Signal::TERM).run();
    response.fails(
        CLOUD_ERROR,
        &["SIGTERM ended the call; the guest cleaned up in time", "POST ", " without a response", "DELETE "],
    );
    let outcomes = tests::probe::outcomes_in(response.message());
    failed(&outcomes[1], "cancelled", true, &["the call is ending"]);
    assert_eq!(answered(&outcomes[2], 200)["body"], "undone");
}
