//! The answer of a server, read by the runtime's HTTP client. The result must be the
//! same as that of a simple HTTP/1.1 parser.

use crate::http::{Framing, Head, dechunked};
use crate::loopback::{answered, port};
use reqwest::Method;
use reqwest::header::HeaderMap;
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};
use wasm_cpi::fuzzing::HttpError;
use wasm_cpi::fuzzing::{Caps, ConnectionPool, EchoAllowance, Exchange, NamedLimit, Received, SendBody, WireRequest};
use wasm_cpi_policy::destination::Destination;

const BODY: u64 = 2048;
const HEADERS: usize = 8;
const HEADER_BYTES: usize = 512;

/// The input has the method in its first line, and then the answer.
pub(crate) fn fuzz(data: &[u8]) {
    let (method, answer) = match data.iter().position(|byte| *byte == b'\n') {
        Some(at) if &data[..at] == b"HEAD" => (Method::HEAD, &data[at + 1..]),
        Some(at) if &data[..at] == b"POST" => (Method::POST, &data[at + 1..]),
        Some(at) => (Method::GET, &data[at + 1..]),
        None => (Method::GET, data),
    };
    let seen = answered(&[answer], exchange(method.clone()).run(body(&method), &ConnectionPool::default()));
    assert!(seen.requests.len() <= 1, "more than one request was sent");
    match seen.result {
        Ok(received) => check(&method, answer, &received),
        Err(error) => check_error(&error),
    }
}

fn exchange(method: Method) -> Exchange {
    thread_local! {
        static TURN: Cell<u32> = const { Cell::new(0) };
    }
    // Another address each time, as a connection that was just closed is not free at once.
    let turn = TURN.get() % 0xfffe + 1;
    TURN.set(turn);
    let address = IpAddr::V4(Ipv4Addr::from(0x7f00_0000 | turn));
    let destination = Destination::parse(&format!("http://fuzz.test:{}/x", port()), 100).expect("this URL is valid");
    let long = Duration::from_secs(60);
    let caps = Caps {
        connect: long,
        first_byte: long,
        idle: long,
        max_body_bytes: BODY,
        body_limit: NamedLimit { name: "http_response_mib", value: 1 },
        concurrent_requests: 1,
        max_headers: HEADERS,
        max_header_bytes: HEADER_BYTES,
        echo_allowance: EchoAllowance::default(),
    };
    let request = WireRequest {
        method,
        destination,
        headers: HeaderMap::new(),
        credential_owner: String::new(),
        allows_reuse: true,
        holds_image: false,
    };
    Exchange { request, addresses: vec![address], proxy: None, tls: None, caps, deadline: Instant::now() + long }
}

fn body(method: &Method) -> SendBody {
    if method == Method::POST { SendBody::Bytes("body".into()) } else { SendBody::None }
}

fn check(method: &Method, answer: &[u8], received: &Received) {
    let (head, rest) = Head::last(answer).expect("an accepted answer has a head");
    assert_eq!(received.status, head.status);
    assert!((200..=999).contains(&received.status));
    assert!(received.headers.len() <= HEADERS && received.body.len() as u64 <= BODY);
    let bytes: usize = received.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    // Replacing a byte that is not UTF-8 adds up to two bytes.
    assert!(bytes <= HEADER_BYTES * 3);
    let plain = |value: &str| !value.contains(['\r', '\n', '\0']);
    assert!(received.headers.iter().all(|(name, value)| plain(value) && !name.contains(char::is_uppercase)));
    let mut found = received.headers.clone();
    let mut expected = head.headers.clone();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    let without_body = *method == Method::HEAD || matches!(head.status, 204 | 304);
    if without_body {
        return assert!(received.body.is_empty());
    }
    let expected = match head.framing() {
        Framing::Chunked => dechunked(rest).expect("an accepted chunked body is well-formed"),
        Framing::Length(length) => rest.get(..length).expect("an accepted body is complete").to_vec(),
        Framing::UntilClose => rest.to_vec(),
    };
    assert_eq!(received.body, expected);
}

fn check_error(error: &HttpError) {
    assert!(!error.message.contains(char::is_control) && error.message.len() < 1000, "{:?}", error.message);
    let who = error.message.split(':').next().unwrap_or_default();
    assert!(["iaas", "limit", "runtime"].contains(&who), "{error}");
}
