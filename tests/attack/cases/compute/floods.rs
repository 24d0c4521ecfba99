//! Guests that flood their host, and final messages with terminal escapes.

use super::{CLASS, call, job};
use crate::case::Case;
use crate::row;
use crate::world::Served;
use serde_json::{Value, json};
use tests::live_process::{LiveProcess, value, waiting_after};
use tests::response::is_invisible;
use tests::{CLOUD_ERROR, Job, Response, probe};

fn script(operations: Value) -> Response {
    Job::default().script(operations).run()
}

/// Asserts that the call succeeds, and that one line names the limit that cut the log.
fn assert_log_is_cut(response: &Response, limit: &str) {
    response.result();
    let dropped = response.stderr.lines().filter(|line| line.contains(" were dropped, because ")).count();
    let named = response.stderr.contains(&format!(" were dropped, because `limits.{limit}` is reached"));
    assert!(dropped == 1 && named, "{dropped} lines report dropped ones in {} bytes", response.stderr.len());
    let (lines, bytes) = (response.stderr.lines().count(), response.stderr.len());
    assert!(lines <= 2001 && bytes < 600 * 1024, "{lines} lines, {bytes} bytes");
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "a million lines for the log", &["limit-log_lines"], || {
            assert_log_is_cut(&script(json!([{"op": "log", "message": "x", "repeat": 50_000}])), "log_lines");
            let lines = "line\n".repeat(200_000);
            let print = json!([{"op": "print", "stream": "stderr", "text": lines, "repeat": 5}]);
            assert_log_is_cut(&script(print), "log_lines");
        }),
        Case::offline(CLASS, "megabytes for the log", &["limit-log_kib"], || {
            assert_log_is_cut(
                &script(json!([{"op": "log", "level": "error", "message": "x".repeat(100_000), "repeat": 500}])),
                "log_kib",
            );
        }),
        Case::offline(CLASS, "an endless line does not fill the host's memory", &["stdio-line"], || {
            let job = Job::default().limits(json!({"host_calls": 1_000_000}));
            let print = json!({"op": "print", "text": "x".repeat(1 << 20), "repeat": 512});
            let call = LiveProcess::call(&waiting_after(&job, &[print]));
            let most = value(&call.text("status"), "VmHWM:");
            let kib: u64 = most.trim_end_matches(" kB").parse().unwrap_or(u64::MAX);
            assert!(kib < 256 * 1024, "{most}");
        }),
        Case::offline(CLASS, "an endless line", &["limit-line_bytes", "limit-log_kib"], || {
            // Only the start of a printed line is kept.
            for operation in [
                json!({"op": "print", "text": "x".repeat(1 << 20), "repeat": 64}),
                json!({"op": "print", "stream": "stderr", "text": "\u{1b}".repeat(1 << 20)}),
                json!({"op": "log", "message": "x".repeat(10 << 20)}),
            ] {
                let response = script(json!([operation]));
                response.result();
                let (lines, bytes) = (response.stderr.lines().count(), response.stderr.len());
                let is_reported = response.stderr.contains("more bytes; limits.line_bytes");
                assert!(lines == 1 && bytes < 8 * 1024 && is_reported, "{lines} lines, {bytes} bytes");
            }
        }),
        Case::offline(CLASS, "`describe` that prints without end", &["limit-host_calls"], || {
            call(&job("describe-prints"), "has_vm")
                .fails(CLOUD_ERROR, &["`describe` failed: ", "`host_calls` (100000)"]);
        }),
        Case::offline(CLASS, "gigabytes of random bytes", &["random-size"], || {
            let outcomes =
                Job::default().probe(json!([{"op": "random", "count": 1 << 30}, {"op": "random", "count": u32::MAX}]));
            assert!(outcomes.iter().all(|outcome| outcome["ok"]["bytes"] == 65_536), "{outcomes:?}");
            call(&job("random-gigabyte"), "has_vm").fails(CLOUD_ERROR, &["guest: failed in has_vm: "]);
        }),
        Case::new(CLASS, "hundreds of requests that are refused", &["limit-http_requests"], |world| {
            let job = row::job(world, &json!({"config": {"limits": {"http_requests": 300}}}));
            world.reset(row::names(&Value::Null), Served::default())?;
            // A failure ends a `repeat`, so that the script lists each request.
            let url = "https://evil.test/v1/x";
            let script: Vec<Value> = (0..400).map(|_| json!({"op": "http", "url": url})).collect();
            let response = job.script(json!(script)).run();
            let outcomes = probe::outcomes(response.result());
            let limited = outcomes.iter().filter(|outcome| outcome["error"]["limit"] == "http_requests").count();
            match (limited, world.take_contacts()?.len(), response.stderr.lines().count()) {
                (100, 0, 0..=2001) => Ok(()),
                (limited, contacts, lines) => Err(format!("{limited} limited, {contacts} contacts, {lines} lines")),
            }
        }),
        Case::offline(CLASS, "every import that this call does not offer", &[], || {
            let mut operations = Vec::new();
            for _ in 0..200 {
                operations.extend([
                    json!({"op": "registry.get", "id": "vm-1"}),
                    json!({"op": "registry.put", "id": "vm-1", "settings": {}}),
                    json!({"op": "registry.delete", "id": "vm-1"}),
                    json!({"op": "image.members"}),
                    json!({"op": "agent.bootstrap"}),
                    json!({"op": "session", "name": "x"}),
                    json!({"op": "http", "url": "https://example.org/"}),
                ]);
            }
            for outcome in Job::default().probe(json!(operations)) {
                let kind = outcome["error"]["kind"].as_str().unwrap_or_default();
                assert!(["denied", "refused", "unavailable", "invalid-request"].contains(&kind), "{outcome}");
            }
        }),
        Case::offline(CLASS, "`exit` instead of an answer, as success or as failure", &["exit-is-failure"], || {
            for code in [0, 1] {
                let said = format!(
                    "guest: called exit({code}) in create_disk instead of returning a result; this is a bug in the guest"
                );
                script(json!([{"op": "exit", "code": code}])).fails(CLOUD_ERROR, &[&said]);
            }
        }),
        Case::offline(CLASS, "a panic with terminal escapes in its message", &["escape-log"], || {
            let message = "\u{1b}[2J\u{1b}]0;x\u{7}\r\u{202e}\u{200b}\u{feff}\u{2028}\u{0}\u{85}\u{2066}\u{ad}\u{9b}31m\u{e0041}\ncpi-123456 wasm-cpi error: forged";
            let response = script(json!([{"op": "panic", "message": message}]));
            response.fails(CLOUD_ERROR, &["guest: trapped in create_disk: ", "its last error was: guest panicked at "]);
            for text in [response.message(), response.log()] {
                assert!(!text.contains(|c: char| c != '\n' && (c.is_control() || is_invisible(c))), "{text:?}");
                assert!(!text.lines().any(|line| line.starts_with("cpi-123456")), "{text}");
            }
            assert!(!response.stderr.lines().any(|line| line.starts_with("cpi-123456 wasm-cpi error: forged")));
            assert!(
                response.log().contains("wasm backtrace:") && response.log().contains("]::ops::"),
                "{}",
                response.log()
            );
        }),
        Case::offline(CLASS, "final messages of megabytes", &["message-size", "response-log-size"], || {
            for operation in [
                json!({"op": "panic", "message": "x".repeat(4 << 20)}),
                json!({"op": "garbage", "kind": "huge", "mib": 4, "in_error": true}),
            ] {
                let response = script(json!([operation]));
                assert!(
                    response.message().len() < 100_000 && response.log().len() < 100_000,
                    "{}",
                    response.json.to_string().len()
                );
                response.fails(CLOUD_ERROR, &["xxxx"]);
            }
        }),
    ]
}
