//! Connections that are kept for further requests: when they are, when they must not be, and
//! whether an error says exactly if the request was sent.

use super::fixture::{Fixture, Running, post, request};
use super::handshakes::{Authority, trusted};
use super::run;
use super::server::{Seen, Server, Wire, kept_response, read_request};
use crate::image::{Image, ImagePart};
use crate::net::connection::WatchedStream;
use crate::net::error::HttpErrorKind;
use crate::net::gate::{GuestBody, GuestRequest};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Starts a server that serves many requests per connection. `serve` gets the number of the request on
/// its connection, and returns false to close the connection.
fn keeping(serve: impl Fn(usize, &Seen, &mut dyn Wire) -> bool + Send + Sync + 'static) -> Server {
    Server::raw(move |mut stream, requests| {
        for number in 0.. {
            let Some(seen) = read_request(&mut stream) else { return };
            requests.lock().unwrap().push(seen.clone());
            if !serve(number, &seen, &mut stream) {
                return;
            }
        }
    })
}

fn hello() -> Vec<u8> {
    kept_response("200 OK", "", "hello")
}

fn grants(server: &Server) -> Value {
    let methods = ["GET", "HEAD", "POST", "PUT", "DELETE"];
    json!([{"id": "api", "to": server.url(""), "methods": methods, "paths": ["/**"]}])
}

fn start(server: &Server) -> Running {
    Fixture::new(grants(server)).start()
}

#[test]
fn requests_of_one_call_share_a_connection() {
    let server = keeping(|_, _, wire| wire.write_all(&hello()).is_ok());
    let running = start(&server);
    for number in 0..10 {
        let body = json!({"number": number});
        assert_eq!(running.get(server.url("/a")).unwrap().body, b"hello");
        assert_eq!(running.send(post(server.url("/b"), &body)).unwrap().status, 200);
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 20));
}

#[test]
fn a_connection_is_kept_after_an_image_that_cannot_begin_a_request() {
    let long = |beginning: &[u8]| [beginning, &vec![0x90; 1 << 20]].concat();
    for (name, bytes, connections) in [
        ("image of a disk", long(b"QFI\xfb\0\0\0\x03"), 1),
        ("short", b"\x7fELF\"\n".to_vec(), 1),
        ("empty", Vec::new(), 1),
        ("request", long(b"DELETE /v2/x HTTP/1.1\r\nX: "), 2),
        ("request with other blanks", long(b"DELETE\x1f/v2/x\xa0HTTP/1.1\r\nX: "), 2),
        ("short request", b"DELETE /v2/x?y=".to_vec(), 2),
        ("unknown beginning", long(&[0; 512 << 10]), 2),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        for part in [ImagePart::Whole, ImagePart::Member("disk".into())] {
            if part == ImagePart::Whole {
                std::fs::write(&path, &bytes).unwrap();
            } else {
                let mut archive = tar::Builder::new(GzEncoder::new(File::create(&path).unwrap(), Compression::fast()));
                let mut header = tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                header.set_mode(0o644);
                archive.append_data(&mut header, "disk", bytes.as_slice()).unwrap();
                archive.into_inner().unwrap().finish().unwrap();
            }
            let server = keeping(|_, _, wire| wire.write_all(&hello()).is_ok());
            let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
            let running = Fixture { image, ..Fixture::new(grants(&server)) }.start();
            let upload = GuestRequest { body: GuestBody::Image(part.clone()), ..request("PUT", server.url("/a")) };
            assert_eq!(running.send(upload).unwrap().status, 200, "{name}");
            assert_eq!(server.requests()[0].body, bytes, "{name}");
            running.get(server.url("/b")).unwrap();
            assert_eq!(server.connections(), connections, "{name} {part:?}");
        }
    }
}

#[test]
fn a_connection_is_kept_only_after_a_strictly_framed_response() {
    let ok = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}").into_bytes();
    let cases: Vec<(&str, &str, Vec<u8>, bool)> = vec![
        ("a length", "GET", hello(), true),
        ("chunks", "GET", ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), true),
        ("no chunk", "GET", ok("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), true),
        ("no content", "DELETE", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), true),
        ("a HEAD", "HEAD", ok("Content-Length: 5\r\n", ""), true),
        ("keep-alive", "GET", ok("Connection: keep-alive\r\nContent-Length: 2\r\n", "ok"), true),
        ("a long idle time", "GET", ok("Keep-Alive: timeout=60\r\nContent-Length: 2\r\n", "ok"), true),
        ("a short idle time", "GET", ok("Keep-Alive: max=5, timeout=1\r\nContent-Length: 2\r\n", "ok"), false),
        ("an announced end", "GET", ok("Connection: x, Close\r\nContent-Length: 2\r\n", "ok"), false),
        ("an old version", "GET", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(), false),
        ("bytes after the end", "GET", [hello(), b"x".to_vec()].concat(), false),
        ("a second response", "GET", [hello(), kept_response("200 OK", "", "evil")].concat(), false),
        ("bare line feeds", "GET", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok".to_vec(), false),
        ("one bare line feed", "GET", b"HTTP/1.1 200 OK\r\nX: y\nContent-Length: 2\r\n\r\nok".to_vec(), false),
        ("an interim response", "GET", [b"HTTP/1.1 103 x\r\n\r\n".to_vec(), hello()].concat(), false),
        ("trailers", "GET", ok("Transfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\nX: y\r\n\r\n"), false),
        ("a chunk extension", "GET", ok("Transfer-Encoding: chunked\r\n", "2\r\nok\r\n0;x=y\r\n\r\n"), false),
    ];
    for (name, method, first, kept) in cases {
        let server = keeping(move |number, seen, wire| {
            let later = seen.line().contains("/second");
            // Only a first response of a connection is the one under test.
            wire.write_all(if number == 0 && !later { &first } else { b"HTTP/1.1 204 x\r\n\r\n" }).is_ok()
        });
        let running = start(&server);
        assert!(running.send(request(method, server.url("/first"))).is_ok(), "{name}");
        assert_eq!(running.get(server.url("/second")).map(|response| response.status), Ok(204), "{name}");
        assert_eq!(server.connections(), if kept { 1 } else { 2 }, "{name}");
    }
}

#[test]
fn both_lengths_and_a_flood_of_interim_responses_are_errors() {
    let flood = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(9);
    for (name, wrong) in [
        (
            "both lengths",
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
        ),
        ("a flood", [flood, hello()].concat()),
    ] {
        let server = keeping(move |_, seen, wire| {
            wire.write_all(if seen.line().contains("/wrong") { &wrong } else { b"HTTP/1.1 204 x\r\n\r\n" }).is_ok()
        });
        let running = start(&server);
        let error = running.get(server.url("/wrong")).unwrap_err();
        assert_eq!((error.kind, error.sent), (HttpErrorKind::Protocol, true), "{name}");
        assert!(running.get(server.url("/right")).is_ok() && server.connections() == 2, "{name}");
    }
}

#[test]
fn a_response_that_begins_before_the_request_is_complete_ends_the_connection() {
    let head = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
    // The whole request before the response, then half of it, then nothing of it.
    for (before, strict) in [(head.len() + 4, true), (head.len() + 2, false), (0, false)] {
        let (client, mut server) = tokio::io::duplex(1024);
        let mut stream = WatchedStream::plain(Box::new(client));
        run(async {
            let request = [&head[..], b"body"].concat();
            stream.start_request(4);
            stream.write_all(&request[..before]).await.unwrap();
            server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            assert!(stream.read(&mut [0; 100]).await.unwrap() > 20);
            stream.write_all(&request[before..]).await.unwrap();
        });
        assert_eq!(stream.is_strictly_framed(false), strict, "{before}");
    }
}

#[test]
fn a_connection_that_the_server_closed_or_wrote_to_is_not_used() {
    for (name, unasked) in
        [("closed", None), ("a response that no one asked for", Some(kept_response("200 OK", "", "evil")))]
    {
        // The server acts between two requests: it begins once the client has its response, and the client goes on
        // once the server is done.
        let (begin, begun) = channel();
        let (end, ended) = channel();
        let (begun, end) = (Mutex::new(begun), Mutex::new(end));
        let server = Server::raw(move |mut stream, requests| {
            while let Some(seen) = read_request(&mut stream) {
                requests.lock().unwrap().push(seen);
                let _ = stream.write_all(&hello());
                let Ok(()) = begun.lock().unwrap().recv() else { return };
                let _ = match &unasked {
                    Some(unasked) => stream.write_all(unasked),
                    None => stream.shutdown(Shutdown::Both),
                };
                let Ok(()) = end.lock().unwrap().send(()) else { return };
            }
        });
        let running = start(&server);
        for _ in 0..3 {
            let body = running.send(post(server.url("/"), &json!({}))).map(|response| response.body);
            assert_eq!(body, Ok(b"hello".to_vec()), "{name}");
            begin.send(()).unwrap();
            ended.recv().unwrap();
        }
        assert_eq!(server.connections(), 3, "{name}");
    }
}

#[test]
fn requests_with_other_credentials_use_another_connection() {
    let server = keeping(|_, _, wire| wire.write_all(&hello()).is_ok());
    let grant = |id: &str, auth: Value| {
        let mut grant = json!({"id": id, "to": server.url(""), "methods": ["GET"], "paths": [format!("/{id}")]});
        if !auth.is_null() {
            grant["auth"] = auth;
        }
        grant
    };
    let fixture = Fixture {
        properties: json!({"one": "secret-1", "two": "secret-2"}),
        ..Fixture::new(json!([
            grant("anonymous", Value::Null),
            grant("one", json!({"bearer": "${one}"})),
            grant("one-more", json!({"bearer": "${one}"})),
            grant("two", json!({"bearer": "${two}"})),
            grant("header", json!({"header": {"name": "X-Key", "value": "${one}"}})),
            // Texts around the same property make other credentials.
            grant("reader", json!({"bearer": "reader-${one}"})),
            grant("admin", json!({"bearer": "admin-${one}"})),
            grant("user", json!({"basic": {"user": "a-${one}", "password": "${two}"}})),
            grant("other", json!({"basic": {"user": "${one}", "password": "${two}"}})),
        ]))
    };
    let running = fixture.start();
    for (path, connections) in [
        ("anonymous", 1),
        ("one", 2),
        ("one-more", 2),
        ("two", 3),
        ("header", 4),
        ("reader", 5),
        ("admin", 6),
        ("user", 7),
        ("other", 8),
        ("anonymous", 8),
        ("two", 8),
        ("reader", 8),
    ] {
        running.get(server.url(&format!("/{path}"))).unwrap();
        assert_eq!(server.connections(), connections, "{path}");
    }
}

#[test]
fn requests_with_other_tls_settings_use_another_connection_and_check_the_certificate() {
    let (ours, other) = (Authority::new(), Authority::new());
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    let server = trusted(&ours, "api.test", move |_, wire| {
        count.fetch_add(1, Ordering::SeqCst);
        let _ = wire.write_all(&hello());
        // The connection stays open.
        let _ = wire.read(&mut [0]);
    });
    let to = format!("https://api.test:{}", server.address.port());
    let grant = |id: &str, ca: &Authority| json!({"id": id, "to": to, "methods": ["GET"], "paths": [format!("/{id}")], "tls": {"ca": ca.pem()}});
    let running = Fixture::new(json!([grant("right", &ours), grant("wrong", &other)])).start();
    assert!(running.get(format!("{to}/right")).is_ok());
    let error = running.get(format!("{to}/wrong")).unwrap_err();
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Tls, false));
    assert_eq!((server.connections(), served.load(Ordering::SeqCst)), (2, 1));
}

#[test]
fn a_kept_connection_is_used_only_by_requests_that_may_reach_its_address() {
    let server = keeping(|_, _, wire| wire.write_all(&hello()).is_ok());
    let to = format!("http://api.test:{}", server.address.port());
    let grant = |id: &str, addresses: Value| json!({"id": id, "to": to, "methods": ["GET"], "paths": [format!("/{id}")], "addresses": addresses});
    let grants = json!([grant("near", json!(["127.0.0.0/8"])), grant("far", json!(["10.0.0.0/8"]))]);
    let running = Fixture::new(grants).start();
    assert!(running.get(format!("{to}/near")).is_ok());
    let error = running.get(format!("{to}/far")).unwrap_err();
    assert!(matches!(error.kind, HttpErrorKind::Denied(_)), "{error}");
    assert_eq!(server.requests().len(), 1);
}

/// Where the server closes the connection, after the request of a warm-up if the connection is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Closes {
    BeforeTheFirstByte,
    InTheHead,
    InTheBody,
    AfterTheRequest,
}

#[test]
fn an_error_says_exactly_whether_the_request_was_sent() {
    for kept in [false, true] {
        for closes in [Closes::BeforeTheFirstByte, Closes::InTheHead, Closes::InTheBody, Closes::AfterTheRequest] {
            for method in ["GET", "POST", "PUT", "DELETE"] {
                check_sent(kept, closes, method);
            }
        }
    }
}

fn check_sent(kept: bool, closes: Closes, method: &'static str) {
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    let server = Server::raw(move |mut stream, _| {
        if kept {
            let Some(_) = read_request(&mut stream) else { return };
            let _ = stream.write_all(&hello());
        }
        let wanted = match closes {
            Closes::BeforeTheFirstByte => 0,
            Closes::InTheHead => 10,
            Closes::InTheBody => 400,
            Closes::AfterTheRequest => {
                count.fetch_add(usize::from(read_request(&mut stream).is_some()), Ordering::SeqCst);
                0
            }
        };
        let mut byte = [0];
        // A request without a body has fewer bytes.
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        for _ in 0..wanted {
            match stream.read(&mut byte) {
                Ok(1) => count.fetch_add(1, Ordering::SeqCst),
                _ => break,
            };
        }
        let _ = stream.shutdown(Shutdown::Both);
    });
    let running = start(&server);
    if kept {
        running.get(server.url("/warm-up")).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let request = match method {
        "GET" | "DELETE" => request(method, server.url("/x")),
        _ => GuestRequest { method: method.to_owned(), ..post(server.url("/x"), &json!({"data": "x".repeat(500)})) },
    };
    let result = running.send(request);
    if kept && closes == Closes::BeforeTheFirstByte {
        // Nothing was sent, so the host itself opens a new connection, on which this server responds once.
        // On a busy machine the end of the connection may arrive after the request was sent.
        return match result {
            Ok(_) => assert_eq!(server.connections(), 2, "{method}"),
            Err(error) => assert!(error.sent, "{method}: {error}"),
        };
    }
    let error = result.unwrap_err();
    std::thread::sleep(Duration::from_millis(20));
    let arrived = received.load(Ordering::SeqCst) > 0;
    // A byte that arrived was sent. A byte that was written may get lost, so the opposite is not demanded.
    assert!(error.sent || !arrived, "{kept} {closes:?} {method}: {error}");
    assert!(error.sent || closes == Closes::BeforeTheFirstByte, "{kept} {closes:?} {method}: {error}");
}
