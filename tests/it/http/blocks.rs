//! `http.send-blocks`, the upload of the image in blocks, and bodies of several parts.

use super::check_reached;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tests::archive::{gzip, tar};
use tests::audit::{about, audited};
use tests::cloud::{answered, denied, failed, job, with_policy};
use tests::servers::{Answer, ReceivedRequest, Server, with};
use tests::{Job, job as files, probe};

const BLOCK: usize = 64 << 10;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| u8::try_from(index * 31 % 251).unwrap()).collect()
}

/// Returns a grant for blocks with two computed headers.
fn grant(server: &Server) -> Value {
    let blocks = json!({"methods": ["PUT"], "blocks": true, "block_headers": ["X-Checksum", "X-Length"]});
    with(server.grant("blocks"), blocks)
}

fn upload(server: &Server, more: Value) -> Value {
    let upload = json!({"op": "http.blocks", "url": server.url("/blocks/{index}?part={index}"), "block_bytes": BLOCK});
    with(upload, more)
}

/// Runs `create_stemcell` with this image and one operation, and returns its outcome.
#[track_caller]
fn stemcell(job: &Job, image: &[u8], operation: Value) -> Value {
    let path = job.path("image");
    files::write(&path, image);
    let response = job.call("create_stemcell", json!([path, {"probe": [operation]}])).run();
    probe::outcomes(response.result()).remove(0)
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// Returns the digest of the digests of these blocks.
fn digest_of_digests<'a>(blocks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let digests: Vec<u8> = blocks.into_iter().flat_map(sha256).collect();
    STANDARD.encode(sha256(&digests))
}

#[test]
fn every_block_arrives_with_its_number_its_digest_and_its_length() {
    let disk = content(5 * BLOCK + 1000);
    let archive = tar(&[("first", b"hello"), ("root.img", &disk)]);
    for (image, more, first) in [
        (disk.clone(), json!({}), 0),
        (disk.clone(), json!({"first_index": 1}), 1),
        (archive.clone(), json!({"image_member": "root.img"}), 0),
        (gzip(&archive), json!({"image_member": "root.img"}), 0),
    ] {
        let server = Server::start(|seen| Answer::ok("").header("ETag", &format!("\"{}\"", seen.target())));
        let headers = json!({"headers": {"x-checksum": "{sha256-base64}", "x-length": "{length}", "x-other": "a"}});
        let job = job(json!([grant(&server)]))
            .limits(json!({"http_request_mib": 1, "http_total_mib": 1, "http_requests": 1}));
        let outcome = stemcell(&job, &image, with(upload(&server, headers), more));
        let blocks: Vec<&[u8]> = disk.chunks(BLOCK).collect();
        let target = |number: usize| format!("/blocks/{0}?part={0}", number + first);
        let etags: Vec<String> = (0..blocks.len()).map(|number| format!("\"{}\"", target(number))).collect();
        let expected = json!({
            "sent": blocks.len(), "skipped": 0, "etags": etags, "sha256_of_digests": digest_of_digests(blocks.clone()),
        });
        assert_eq!(outcome["ok"], expected, "{outcome}");
        let seen: HashMap<String, ReceivedRequest> =
            server.requests().into_iter().map(|seen| (seen.target().to_owned(), seen)).collect();
        assert_eq!(seen.len(), blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            let request = &seen[&target(number)];
            assert_eq!((request.method(), request.body.as_slice()), ("PUT", *block), "block {number}");
            assert_eq!(request.header("x-checksum"), Some(STANDARD.encode(sha256(block)).as_str()));
            assert_eq!(request.header("x-length"), Some(block.len().to_string().as_str()));
            assert_eq!(request.header("x-other"), Some("a"));
        }
    }
}

#[test]
fn blocks_of_zeros_are_left_out_on_request() {
    let mut disk = vec![0; 4 * BLOCK];
    disk[BLOCK] = 1;
    disk[4 * BLOCK - 1] = 1;
    for (skip, expected) in
        [(true, vec!["/blocks/1", "/blocks/3"]), (false, vec!["/blocks/0", "/blocks/1", "/blocks/2", "/blocks/3"])]
    {
        let server = Server::answering(Answer::ok(""));
        let more = json!({"url": server.url("/blocks/{index}"), "skip_zero_blocks": skip});
        let outcome = stemcell(&job(json!([grant(&server)])), &disk, upload(&server, more));
        let mut seen: Vec<String> = server.requests().iter().map(|seen| seen.target().to_owned()).collect();
        seen.sort();
        assert_eq!(seen, expected);
        assert_eq!(
            (&outcome["ok"]["sent"], &outcome["ok"]["skipped"]),
            (&json!(expected.len()), &json!(4 - expected.len()))
        );
        let sent = disk.chunks(BLOCK).filter(|block| !skip || block.iter().any(|byte| *byte != 0));
        assert_eq!(outcome["ok"]["sha256_of_digests"], digest_of_digests(sent));
    }
    // Nothing to send is a success.
    let server = Server::answering(Answer::ok(""));
    let outcome = stemcell(&job(json!([grant(&server)])), b"", upload(&server, json!({})));
    assert_eq!((&outcome["ok"]["sent"], server.connections()), (&json!(0), 0), "{outcome}");
}

#[test]
fn sixteen_blocks_are_in_progress_at_once_unless_they_are_large() {
    for (limits, block, at_once) in [
        (json!({}), BLOCK, 16),
        (json!({"http_blocks_mib": 1}), BLOCK, 14),
        (json!({"http_blocks_mib": 1}), 4 * BLOCK, 2),
    ] {
        let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let server = Server::start(move |_| {
            seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(30));
            now.fetch_sub(1, Ordering::SeqCst);
            Answer::ok("")
        });
        let job = job(json!([grant(&server)])).limits(limits);
        // Without a slash, no block begins like a request, whose connection would be closed.
        let disk: Vec<u8> =
            content(48 * block).into_iter().map(|byte| if byte == b'/' { b'.' } else { byte }).collect();
        let outcome = stemcell(&job, &disk, upload(&server, json!({"block_bytes": block})));
        assert_eq!(outcome["ok"]["sent"], 48, "{outcome}");
        assert_eq!((most.load(Ordering::SeqCst), server.connections()), (at_once, at_once));
    }
}

/// Answers the first `times` requests for block 2 with the first answer, and everything else with 200.
fn failing(times: usize, answer: Answer) -> Server {
    let left = Mutex::new(times);
    Server::start(move |seen| {
        let mut left = left.lock().unwrap();
        if *left == 0 || !seen.target().starts_with("/blocks/2") {
            return Answer::ok("");
        }
        *left -= 1;
        answer.clone()
    })
}

#[test]
fn a_block_that_fails_is_sent_up_to_three_times() {
    let refused = |status: u16| Answer::new(status, "the reason");
    for (name, answer) in [
        ("500", refused(500)),
        ("503", refused(503)),
        ("429", refused(429)),
        ("reset", Answer::bytes("")),
        ("truncated", Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")),
        ("stalled", Answer::stall("")),
    ] {
        let stalls = json!({"first_byte_seconds": 1});
        let server = failing(2, answer.clone());
        let succeeded = stemcell(
            &job(json!([grant(&server)])).limits(stalls.clone()),
            &content(4 * BLOCK),
            upload(&server, json!({})),
        );
        assert_eq!(succeeded["ok"]["sent"], 4, "{name}: {succeeded}");
        assert_eq!(server.requests().len(), 6, "{name}");

        let server = failing(usize::MAX, answer);
        let failed =
            stemcell(&job(json!([grant(&server)])).limits(stalls), &content(4 * BLOCK), upload(&server, json!({})));
        let tries = server.requests().iter().filter(|seen| seen.target().starts_with("/blocks/2")).count();
        assert_eq!(tries, 3, "{name}: {failed}");
        match name.parse::<u16>() {
            Ok(status) => {
                let error = &failed["error"];
                assert_eq!((error["kind"].as_str(), &error["response"]["status"]), (Some("refused"), &json!(status)));
                assert_eq!(error["response"]["body"], "the reason");
            }
            Err(_) => assert_eq!(failed["error"]["sent"], true, "{name}: {failed}"),
        }
    }
    // The server says that a repetition would not help.
    let server = failing(usize::MAX, refused(403));
    let failed = stemcell(&job(json!([grant(&server)])), &content(4 * BLOCK), upload(&server, json!({})));
    assert_eq!(failed["error"]["response"]["status"], 403, "{failed}");
    assert_eq!(server.requests().iter().filter(|seen| seen.target().starts_with("/blocks/2")).count(), 1);
}

#[test]
fn a_token_that_expires_during_the_upload_is_renewed_once() {
    let logins = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&logins);
    let server = Server::start(move |seen| match seen.target() {
        "/login" => {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            Answer::json(200, &json!({"token": format!("a-token-of-login-{number}")}))
        }
        _ if seen.header("x-token") == Some("a-token-of-login-2") => Answer::ok(""),
        _ => Answer::new(401, ""),
    });
    let login = json!({
        "to": server.origin(), "path": "/login", "method": "POST", "addresses": ["127.0.0.0/8"], "plain_http": true,
        "body": {"password": "${password}"}, "token": "json:/token", "send": {"header": "X-Token"},
    });
    let grant = with(grant(&server), json!({"auth": {"login": "main"}, "plain_http": true}));
    let policy = json!({"http": [grant], "logins": {"main": login}});
    let job = with_policy(policy).properties(json!({"password": "a password of a login"}));
    let outcome = stemcell(&job, &content(20 * BLOCK), upload(&server, json!({})));
    assert_eq!((&outcome["ok"]["sent"], logins.load(Ordering::SeqCst)), (&json!(20), 2), "{outcome}");
}

#[test]
fn blocks_are_sent_only_where_a_grant_says_so() {
    let server = Server::answering(Answer::ok(""));
    let plain = with(server.grant("api"), json!({"paths": ["/plain/**"]}));
    let narrow = with(grant(&server), json!({"paths": ["/blocks/0", "/blocks/1"]}));
    let job = job(json!([plain, narrow]));
    let disk = content(3 * BLOCK);
    let to = |path: &str| upload(&server, json!({"url": server.url(path)}));
    denied(&stemcell(&job, &disk, to("/plain/{index}")), "operation", &["grant `api`", "blocks"]);
    denied(&stemcell(&job, &disk, to("/elsewhere/{index}")), "path", &[]);
    assert_eq!(server.connections(), 0);
    // Every URL is judged, not only the first one.
    let outcome = stemcell(&job, &disk, to("/blocks/{index}"));
    assert_eq!(
        (&outcome["error"]["kind"], &outcome["error"]["reason"]),
        (&json!("denied"), &json!("path")),
        "{outcome}"
    );
    assert!(server.requests().iter().all(|seen| seen.target() != "/blocks/2"));
    // A header that the grant does not list is not computed.
    let unlisted = with(
        upload(&server, json!({"headers": {"x-digest": "{sha256-base64}"}})),
        json!({"url": server.url("/blocks/{index}")}),
    );
    denied(&stemcell(&job, &disk, unlisted), "header", &["`x-digest`", "`block_headers`"]);
    for (wrong, text) in [
        (json!({"url": server.url("/blocks/1")}), "`{index}`"),
        (json!({"url": server.url("/blocks/1#{index}")}), "`{index}`"),
        (json!({"url": format!("http://127.0.0.1:4114{{index}}/x")}), "`{index}`"),
        (json!({"block_bytes": 0}), "size of a block"),
        (json!({"image_member": "none"}), "not a tar or tar.gz archive"),
    ] {
        failed(&stemcell(&job, &disk, upload(&server, wrong)), "invalid-request", false, &[text]);
    }
    let numbers = upload(&server, json!({"first_index": u32::MAX}));
    let outcome = stemcell(&tests::cloud::job(json!([grant(&server)])), &disk, numbers);
    failed(&outcome, "invalid-request", false, &["have no number of 32 bits"]);
}

#[test]
fn the_number_and_the_size_of_blocks_are_limited() {
    let server = Server::answering(Answer::ok(""));
    let disk = content(4 * BLOCK);
    let of = |limits: Value| job(json!([grant(&server)])).limits(limits);
    check_reached(&stemcell(&of(json!({"http_blocks": 3})), &disk, upload(&server, json!({}))), "http_blocks", false);
    let large = upload(&server, json!({"block_bytes": (1 << 20) + 1}));
    check_reached(&stemcell(&of(json!({"http_blocks_mib": 1})), &disk, large), "http_blocks_mib", false);
    assert_eq!(server.connections(), 0);
    let outcome = stemcell(&of(json!({"http_blocks": 4})), &disk, upload(&server, json!({})));
    assert_eq!(outcome["ok"]["sent"], 4, "{outcome}");
}

#[test]
fn a_signal_ends_an_upload_in_blocks_at_once() {
    let server = Server::answering(Answer::stall(""));
    let job = audited(job(json!([grant(&server)])));
    let path = job.path("image");
    files::write(&path, &content(20 * BLOCK));
    let requests = server.clone();
    let call = job.call("create_stemcell", json!([path, {"probe": [upload(&server, json!({}))]}]));
    let response = call.signal_when(move || requests.requests().len() == 16, Signal::TERM).run();
    let outcome = probe::outcomes(response.result()).remove(0);
    failed(&outcome, "cancelled", true, &["the call is ending"]);
    let line = &about(&job, "http")[0];
    assert_eq!((&line["grant"], &line["sent"]), (&json!("blocks"), &json!(true)), "{line}");
    // The next try to send a block would be after `first_byte_seconds`.
    assert!(line["ms"].as_u64().unwrap() < 20_000, "{line}");
}

#[test]
fn the_time_of_a_request_ends_one_try_of_a_block_and_that_of_the_call_ends_the_upload() {
    let server = Server::answering(Answer::stall(""));
    let outcome = stemcell(&job(json!([grant(&server)])), &content(BLOCK), upload(&server, json!({"timeout_ms": 300})));
    failed(&outcome, "timeout", true, &["within the time of the request"]);
    assert_eq!(server.requests().len(), 3);

    let job = audited(job(json!([grant(&server)]))).limits(json!({"create_stemcell_wall_seconds": 1}));
    let outcome = stemcell(&job, &content(20 * BLOCK), upload(&server, json!({})));
    failed(&outcome, "cancelled", true, &["the call is ending"]);
    let line = &about(&job, "http")[0];
    assert_eq!((&line["error"], &line["sent"]), (&json!("cancelled"), &json!(true)), "{line}");
    // The next try to send a block would be after `first_byte_seconds`.
    assert!(line["ms"].as_u64().unwrap() < 20_000, "{line}");
}

#[test]
fn an_upload_says_whether_any_block_was_sent() {
    let slow = Server::start(|_| {
        std::thread::sleep(Duration::from_millis(300));
        Answer::ok("")
    });
    let narrow = with(grant(&slow), json!({"paths": ["/blocks/0", "/blocks/1"]}));
    let job_of = |grant: Value| audited(job(json!([grant])));
    // The third block is denied while the first ones are being sent.
    let denied_later = job_of(narrow);
    let url = json!({"url": slow.url("/blocks/{index}")});
    let outcome = stemcell(&denied_later, &content(3 * BLOCK), upload(&slow, url));
    assert_eq!((&outcome["error"]["reason"], &outcome["error"]["sent"]), (&json!("path"), &json!(true)), "{outcome}");
    assert_eq!(about(&denied_later, "http")[0]["sent"], true);
    let (closed, _reserved) = Server::closed_port(0).unwrap();
    let nowhere = with(grant(&slow), json!({"to": format!("http://{closed}")}));
    let refused = job_of(nowhere);
    let url = json!({"url": format!("http://{closed}/blocks/{{index}}")});
    let outcome = stemcell(&refused, &content(BLOCK), upload(&slow, url));
    failed(&outcome, "connect", false, &[]);
    assert_eq!(about(&refused, "http")[0]["sent"], false);
    // Nothing is sent of an image of zeros.
    let skipping = json!({"skip_zero_blocks": true});
    let server = Server::answering(Answer::ok(""));
    let zeros = job_of(grant(&server));
    assert_eq!(stemcell(&zeros, &[0; BLOCK], upload(&server, skipping))["ok"]["skipped"], 1);
    let line = &about(&zeros, "http")[0];
    assert_eq!((&line["sent"], &line["status"], server.connections()), (&json!(false), &Value::Null, 0), "{line}");
}

#[test]
fn a_server_that_accepts_a_block_before_it_has_it_did_not_accept_it() {
    let server = Server::with_handler("http", |mut stream| {
        use std::io::{Read, Write};
        let mut head = [0; 100];
        let _ = stream.read(&mut head);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        std::thread::sleep(Duration::from_secs(2));
    });
    let job = job(json!([grant(&server)]));
    // More than the buffers of the kernel hold.
    let image = content(32 << 20);
    let large = upload(&server, json!({"block_bytes": 16 << 20}));
    failed(&stemcell(&job, &image, large), "protocol", true, &["before it had received all of it"]);
}

#[test]
fn a_pause_that_the_server_asks_for_is_kept() {
    let server = failing(1, Answer::new(429, "").header("Retry-After", "2"));
    let job = audited(job(json!([grant(&server)])));
    assert_eq!(stemcell(&job, &content(4 * BLOCK), upload(&server, json!({})))["ok"]["sent"], 4);
    assert!(about(&job, "http")[0]["ms"].as_u64().unwrap() >= 2000);
}

#[test]
fn the_audit_log_has_one_line_for_all_blocks() {
    let server = failing(1, Answer::new(500, ""));
    let job = audited(job(json!([grant(&server)])));
    let mut disk = content(6 * BLOCK);
    disk[5 * BLOCK..].fill(0);
    stemcell(&job, &disk, upload(&server, json!({"skip_zero_blocks": true})));
    let lines = about(&job, "http");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    let numbers = ["blocks", "blocks_skipped", "blocks_repeated", "sent_bytes"].map(|name| line[name].as_u64());
    assert_eq!(numbers, [Some(5), Some(1), Some(1), Some(6 * BLOCK as u64)], "{line}");
    assert!(line["target"].as_str().unwrap().ends_with("/blocks/{index}"), "{line}");
}

#[test]
fn a_body_of_several_parts_arrives_in_one_piece() {
    let disk = content(1 << 20);
    let archive = tar(&[("first", b"hello"), ("root.img", &disk)]);
    let server = Server::answering(Answer::ok(""));
    let job = job(json!([server.grant("api")]));
    let parts = |parts: Value| {
        let headers = json!({"Content-Type": "multipart/form-data; boundary=b"});
        json!({"op": "http", "method": "POST", "url": server.url("/form"), "headers": headers, "parts": parts})
    };
    let (before, after) = ("--b\r\nContent-Disposition: form-data; name=f\r\n\r\n", "\r\n--b--\r\n");
    for (image, list, middle) in [
        (disk.clone(), json!([before, {"image": true}, after]), disk.clone()),
        (gzip(&archive), json!([before, {"image_member": "root.img"}, after]), disk.clone()),
        (disk.clone(), json!([before, after]), vec![]),
    ] {
        answered(&stemcell(&job, &image, parts(list)), 200);
        let seen = server.requests().pop().unwrap();
        let expected = [before.as_bytes(), &middle, after.as_bytes()].concat();
        assert_eq!((seen.length, seen.body == expected), (expected.len() as u64, true));
        assert_eq!(seen.header("content-length"), Some(expected.len().to_string().as_str()));
    }
    let twice = parts(json!([{"image": true}, {"image": true}]));
    failed(&stemcell(&job, &disk, twice), "invalid-request", false, &["at most one part"]);
}
