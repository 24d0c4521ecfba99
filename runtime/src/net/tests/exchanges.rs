use super::run;
use super::server::{Server, Wire, response};
use crate::limits::NamedLimit;
use crate::net::connection_pool::ConnectionPool;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, EchoAllowance, Exchange, Received, SendBody, WireRequest};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use reqwest::Method;
use reqwest::header::HeaderMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wasm_cpi_policy::destination::Destination;

fn caps() -> Caps {
    Caps {
        connect: Duration::from_millis(400),
        first_byte: Duration::from_millis(400),
        idle: Duration::from_millis(400),
        max_body_bytes: 100_000,
        body_limit: NamedLimit { name: "http_response_mib", value: 1 },
        concurrent_requests: 1,
        max_headers: 64,
        max_header_bytes: 32 * 1024,
        echo_allowance: EchoAllowance::default(),
    }
}

fn exchange(url: &str) -> Exchange {
    exchange_of(Method::GET, url)
}

fn exchange_of(method: Method, url: &str) -> Exchange {
    Exchange {
        request: WireRequest {
            method,
            destination: Destination::parse(url, 8192).unwrap(),
            headers: HeaderMap::new(),
            credential_owner: String::new(),
            allows_reuse: true,
            holds_image: false,
        },
        proxy: None,
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
        tls: None,
        caps: caps(),
        deadline: Instant::now() + Duration::from_secs(10),
    }
}

/// Sends a GET, or a POST with a body.
fn send(url: &str, body: SendBody) -> Result<Received, HttpError> {
    let method = if matches!(body, SendBody::None) { Method::GET } else { Method::POST };
    run(exchange_of(method, url).run(body, &ConnectionPool::default()))
}

fn get(server: &Server) -> Result<Received, HttpError> {
    send(&server.url("/v1/x?secret=hunter2"), SendBody::None)
}

fn failure(result: Result<Received, HttpError>) -> HttpError {
    let error = result.err().expect("an error");
    assert!(!error.message.contains("hunter2"), "{error}");
    error
}

fn forever(wire: &mut dyn Wire, start: &str, piece: &[u8]) {
    let _ = wire.write_all(start.as_bytes());
    while wire.write_all(piece).is_ok() {}
}

#[test]
fn a_response_is_returned_with_status_headers_and_body() {
    let server = Server::answering(response("201 Created", "X-A: 1\r\nx-b: \u{e9}\r\nX-A: 2\r\n", "hello"));
    let received = get(&server).ok().unwrap();
    assert_eq!((received.status, received.body.as_slice()), (201, b"hello".as_slice()));
    let of =
        |name: &str| received.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect::<Vec<_>>();
    assert_eq!((of("x-a"), of("x-b")), (vec!["1", "2"], vec!["\u{e9}"]));
}

#[test]
fn the_request_is_http_1_1_without_headers_that_were_not_set() {
    let server = Server::answering(response("200 OK", "", ""));
    get(&server).ok().unwrap();
    let seen = &server.requests()[0];
    assert_eq!(seen.line(), "GET /v1/x?secret=hunter2 HTTP/1.1");
    assert_eq!(seen.header("host"), Some(server.address.to_string().as_str()));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert_eq!(seen.header("user-agent"), Some(concat!("wasm-cpi/", env!("CARGO_PKG_VERSION"))));
    for absent in ["referer", "cookie", "content-length", "transfer-encoding", "authorization", "connection", "te"] {
        assert_eq!(seen.header(absent), None, "{absent}");
    }
}

#[test]
fn a_body_is_sent_with_its_length_and_a_post_without_a_body_with_length_zero() {
    let server = Server::answering(response("200 OK", "", ""));
    let big = vec![7; 300_000];
    send(&server.url("/"), SendBody::Bytes(big.clone().into())).ok().unwrap();
    let empty = exchange_of(Method::POST, &server.url("/"));
    run(empty.run(SendBody::None, &ConnectionPool::default())).ok().unwrap();
    let seen = server.requests();
    assert!(seen[0].body == big && seen[0].header("content-length") == Some("300000"));
    assert!(seen[0].header("transfer-encoding").is_none());
    assert_eq!(seen[1].header("content-length"), Some("0"));
}

#[test]
fn a_name_is_connected_to_at_the_given_addresses_only() {
    let server = Server::answering(response("200 OK", "", ""));
    let url = format!("http://api.invalid:{}/x", server.address.port());
    send(&url, SendBody::None).ok().unwrap();
    assert_eq!(server.requests()[0].header("host"), Some(format!("api.invalid:{}", server.address.port()).as_str()));
    let nowhere = Exchange { addresses: Vec::new(), ..exchange(&url) };
    let error = failure(run(nowhere.run(SendBody::None, &ConnectionPool::default())));
    assert_eq!((error.kind, error.sent, server.connections()), (HttpErrorKind::Connect, false, 1));
}

#[test]
fn redirects_are_returned_and_not_followed() {
    let target = Server::answering(response("200 OK", "", ""));
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let server = Server::answering(response(status, &format!("Location: {}\r\n", target.url("/")), ""));
        let received = get(&server).ok().unwrap();
        assert_eq!(received.status.to_string(), status[..3]);
        assert!(received.headers.iter().any(|(name, _)| name == "location"));
    }
    assert_eq!(target.connections(), 0);
}

#[test]
fn invalid_responses_fail_with_the_right_kind() {
    let many = "X-H: 1\r\n".repeat(10_000);
    let above = "X-H: 1\r\n".repeat(65);
    let long = format!("X-H: {}\r\n", "a".repeat(40_000));
    let ok = |headers: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
    let (protocol, truncated) = (HttpErrorKind::Protocol, HttpErrorKind::Truncated);
    let cases: Vec<(&str, String, HttpErrorKind)> = vec![
        ("nothing", String::new(), protocol),
        ("no HTTP", "SSH-2.0-OpenSSH\r\n\r\n".into(), protocol),
        ("half a head", "HTTP/1.1 200 OK\r\nX-H".into(), protocol),
        ("HTTP/2", "HTTP/2 200\r\n\r\n".into(), protocol),
        ("a long status line", format!("HTTP/1.1 200 {}", "a".repeat(1 << 20)), protocol),
        ("10000 headers", ok(&many), protocol),
        ("65 headers", ok(&above), HttpErrorKind::Limit("http_headers")),
        ("a long header", ok(&long), HttpErrorKind::Limit("header_kib")),
        ("no colon", ok("nonsense\r\n"), protocol),
        ("a folded header", ok("X-H: 1\r\n 2\r\n"), protocol),
        ("a space in a name", ok("X H: 1\r\n"), protocol),
        ("two lengths", ok("Content-Length: 5\r\nContent-Length: 6\r\n") + "hello!", protocol),
        ("a strange length", ok("Content-Length: +5\r\n") + "hello", protocol),
        ("another protocol", "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n".into(), protocol),
        ("a broken chunk", ok("Transfer-Encoding: chunked\r\n") + "zz\r\nhello\r\n", protocol),
        ("a short body", ok("Content-Length: 10\r\n") + "hello", truncated),
        ("a missing last chunk", ok("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n", truncated),
        ("half a chunk", ok("Transfer-Encoding: chunked\r\n") + "5\r\nhe", truncated),
        ("a huge length", ok("Content-Length: 1073741824\r\n"), HttpErrorKind::Limit("http_response_mib")),
    ];
    for (name, response, kind) in cases {
        let error = failure(get(&Server::answering(response)));
        assert_eq!((error.kind, error.sent), (kind, true), "{name}: {error}");
        assert!(error.message.starts_with("iaas: ") || error.message.starts_with("limit: "), "{name}: {error}");
    }
}

#[test]
fn unusual_but_unambiguous_responses_are_accepted() {
    for (response, body) in [
        ("HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
        ("HTTP/1.1 200\r\n\r\nhello", "hello"),
        // Bare line feeds: one connection carries one exchange, so there is nothing to smuggle into.
        ("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello and more", "hello"),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
    ] {
        assert_eq!(String::from_utf8(get(&Server::answering(response)).ok().unwrap().body).unwrap(), body);
    }
}

#[test]
fn the_length_in_a_response_to_head_does_not_count_as_a_body() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
    let head = exchange_of(Method::HEAD, &server.url("/"));
    let received = run(head.run(SendBody::None, &ConnectionPool::default())).ok().unwrap();
    assert!(received.body.is_empty());
    assert!(received.headers.contains(&("content-length".into(), "1073741824".into())));
}

#[test]
fn a_header_that_is_not_utf_8_is_returned_with_replacement_characters() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nX-Raw: a\xff\xfeb\r\nContent-Length: 0\r\n\r\n".to_vec());
    assert!(get(&server).ok().unwrap().headers.contains(&("x-raw".into(), "a\u{fffd}\u{fffd}b".into())));
}

#[test]
fn an_endless_response_is_stopped_at_its_limit() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (start, piece) in [
        (chunked, b"400\r\n".iter().copied().chain([b'a'; 1024]).chain(*b"\r\n").collect::<Vec<u8>>()),
        ("HTTP/1.1 200 OK\r\n\r\n", vec![b'a'; 4096]),
    ] {
        let error = failure(get(&Server::plain(move |_, wire| forever(wire, start, &piece))));
        assert_eq!((error.kind, error.sent), (HttpErrorKind::Limit("http_response_mib"), true));
    }
    // Extensions and heads without an end are the parser's to stop.
    for (start, piece) in [(chunked, b"1;aaaaaaaaaaaa".as_slice()), ("HTTP/1.1 200 OK\r\n", b"X-H: 1\r\n".as_slice())] {
        let piece = piece.repeat(100);
        let error = failure(get(&Server::plain(move |_, wire| forever(wire, start, &piece))));
        assert!(matches!(error.kind, HttpErrorKind::Protocol | HttpErrorKind::Timeout), "{error}");
    }
}

#[test]
fn the_error_of_a_stalled_exchange_names_the_limit() {
    let pause = || std::thread::sleep(Duration::from_secs(3));
    let silent = Server::plain(move |_, _| pause());
    let started = Server::plain(move |_, wire| {
        wire.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel").unwrap();
        pause();
    });
    let deaf = Server::raw(move |_stream, _| pause());
    let large = || SendBody::Bytes(vec![0; 30_000_000].into());
    for (name, server, body, limit) in [
        ("before the status", &silent, SendBody::None, "first_byte_seconds"),
        ("after a small body", &silent, SendBody::Bytes(Bytes::from_static(b"x")), "first_byte_seconds"),
        ("within the response", &started, SendBody::None, "idle_seconds"),
        ("within the request", &deaf, large(), "idle_seconds"),
    ] {
        let start = Instant::now();
        let error = failure(send(&server.url("/"), body));
        assert_eq!((error.kind, error.sent), (HttpErrorKind::Timeout, true), "{name}: {error}");
        assert!(error.message.contains(&format!("limits.{limit}")), "{name}: {error}");
        assert!(start.elapsed() < Duration::from_secs(2), "{name} took {:?}", start.elapsed());
    }
}

#[test]
fn the_deadline_ends_an_exchange_that_makes_slow_progress() {
    let drip = Server::plain(|_, wire| {
        let _ = wire.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while wire.write_all(b"a").and_then(|()| wire.flush()).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let start = Instant::now();
    let slow = Exchange { deadline: start + Duration::from_millis(600), ..exchange(&drip.url("/")) };
    let error = failure(run(slow.run(SendBody::None, &ConnectionPool::default())));
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Timeout, true));
    assert!(start.elapsed() < Duration::from_millis(1200));

    let late = Exchange { deadline: start, ..exchange(&drip.url("/")) };
    let error = failure(run(late.run(SendBody::None, &ConnectionPool::default())));
    assert_eq!((error.kind, error.sent, drip.connections()), (HttpErrorKind::Timeout, false, 1));
}

#[test]
fn the_error_of_a_refused_connection_says_that_nothing_was_sent() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = failure(send(&format!("http://127.0.0.1:{port}/?k=hunter2"), SendBody::None));
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Connect, false));
    assert!(error.message.contains(&format!("GET http://127.0.0.1:{port}/: no connection")), "{error}");
}

#[test]
fn a_stream_is_sent_piece_by_piece_and_not_buffered() {
    const PIECES: u64 = 1600;
    let received = Arc::new(AtomicU64::new(0));
    let count = received.clone();
    let server = Server::raw(move |mut stream, _| {
        let (mut head, mut byte, mut buffer) = (Vec::new(), [0], vec![0; 1 << 20]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(String::from_utf8(head).unwrap().contains(&format!("content-length: {}\r\n", PIECES * 65536)));
        while count.load(Ordering::SeqCst) < PIECES * 65536 {
            count.fetch_add(stream.read(&mut buffer).unwrap() as u64, Ordering::SeqCst);
        }
        stream.write_all(&response("200 OK", "", "")).unwrap();
    });
    // Made when asked for: at most what the client and the kernel buffer may be ahead,
    // and kernels buffer tens of megabytes for a reader that gets no turn.
    let behind = received.clone();
    let made = Arc::new(AtomicU64::new(0));
    let pieces = stream::iter(0..PIECES).map(move |_| {
        let made = made.fetch_add(65536, Ordering::SeqCst);
        assert!(made < behind.load(Ordering::SeqCst) + (64 << 20), "the body is being kept");
        Ok(Bytes::from(vec![1; 65536]))
    });
    let body = SendBody::Stream { length: PIECES * 65536, pieces: pieces.boxed() };
    assert_eq!(send(&server.url("/"), body).ok().unwrap().status, 200);
    assert_eq!(received.load(Ordering::SeqCst), PIECES * 65536);
}

#[test]
fn the_error_of_a_broken_stream_blames_the_runtime_and_not_the_server() {
    let server = Server::answering(response("200 OK", "", ""));
    let piece = || Ok(Bytes::from_static(b"12345"));
    for (name, pieces, why) in [
        ("an error", vec![piece(), Err(std::io::Error::other("the disk is gone"))], "the disk is gone"),
        ("too short", vec![piece()], "shorter than"),
        ("too long", vec![piece(), piece(), piece()], "longer than"),
    ] {
        let body = SendBody::Stream { length: 12, pieces: stream::iter(pieces).boxed() };
        let error = failure(send(&server.url("/"), body));
        assert_eq!(error.kind, HttpErrorKind::Truncated, "{name}: {error}");
        assert!(error.message.starts_with("runtime: ") && error.message.contains(why), "{name}: {error}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_slow_source_of_a_body_does_not_time_out_as_a_slow_server() {
    let server = Server::answering(response("200 OK", "", ""));
    let slow = stream::unfold(0, |turn| async move {
        tokio::time::sleep(Duration::from_millis(900)).await;
        (turn < 2).then(|| (Ok(Bytes::from_static(b"12345")), turn + 1))
    });
    let body = SendBody::Stream { length: 10, pieces: slow.boxed() };
    assert_eq!(send(&server.url("/"), body).ok().unwrap().status, 200);
}

#[test]
fn proxies_and_key_logs_in_the_environment_are_ignored() {
    const INNER: &str = "WASM_CPI_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        let server = Server::answering(response("200 OK", "", ""));
        assert_eq!(get(&server).ok().unwrap().status, 200);
        return;
    }
    let proxy = Server::answering(response("502 Bad Gateway", "", ""));
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again
        .args(["--exact", "net::tests::exchanges::proxies_and_key_logs_in_the_environment_are_ignored"])
        .env(INNER, "1");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        again.env(name, proxy.url(""));
    }
    again.env("SSL_CERT_FILE", "/nonexistent").env_remove("NO_PROXY").env_remove("no_proxy");
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(proxy.connections(), 0);
}
