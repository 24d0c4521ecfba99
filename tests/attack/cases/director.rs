//! The Director's side: malformed requests, closed pipes, and answers of guests that
//! would mislead the Director.

mod answers;
mod callers;
mod vms;

use crate::case::Case;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Stdio;
use tests::{CPI_ERROR, Job};

const CLASS: &str = "Director side";

pub(super) fn cases() -> Vec<Case> {
    [requests(), answers::cases(), vms::cases(), callers::cases()].into_iter().flatten().collect()
}

fn requests() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "bytes that are not UTF-8", &[], || {
            let valid = Job::default().call("has_vm", json!(["vm-1"])).request();
            for bytes in [
                b"{\"method\":\"info\xff\",\"arguments\":[]}".to_vec(),
                b"{\"method\":\"info\",\"arguments\":[\"\xed\xa0\x80\"]}".to_vec(),
                valid.encode_utf16().flat_map(u16::to_le_bytes).collect(),
                [b"\xff\xfe".to_vec(), valid.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat(),
                b"\x1f\x8b\x08\0\0\0\0\0".to_vec(),
            ] {
                Job::default().raw(bytes).run().fails(CPI_ERROR, &["request: "]);
            }
        }),
        Case::offline(CLASS, "a request that is cut off at any place", &[], || {
            let (job, valid) = (Job::default(), Job::default().call("has_vm", json!(["vm-1"])).request());
            for end in (1..valid.len()).step_by(7) {
                job.raw(&valid.as_bytes()[..end]).run().fails(CPI_ERROR, &["request: ", "not one JSON document: EOF"]);
            }
        }),
        Case::offline(CLASS, "deep nesting", &["json-depth"], || {
            for (open, close, count) in [
                ("[", "]", 120),
                ("{\"a\":", "}", 120),
                ("[", "]", 10_000),
                ("[", "", 8 << 20),
                ("{\"a\":", "", 3 << 20),
            ] {
                let nested = format!("{}1{}", open.repeat(count), close.repeat(count));
                let request = format!("{{\"method\":\"create_disk\",\"arguments\":[1,{{\"a\":{nested}}},null]}}");
                Job::default().raw(request).run().fails(CPI_ERROR, &["request: the request is not one JSON document"]);
            }
        }),
        Case::offline(CLASS, "64 MiB on stdin", &["limit-request_mib"], || {
            let request =
                Job::default().call("create_disk", json!([1, {"padding": "x".repeat(64 << 20)}, null])).request();
            Job::default().raw(request).run().fails(CPI_ERROR, &["request: ", "`request_mib` (16)"]);
        }),
        Case::offline(CLASS, "a million keys, and a number of a million digits", &["context-values"], || {
            let keys: Vec<String> = (0..200_000).map(|n| format!("\"k{n}\":{n}")).collect();
            let keys = keys.join(",");
            let request = format!("{{\"method\":\"has_vm\",\"arguments\":[\"vm-1\"],\"context\":{{{keys}}}}}");
            Job::default().raw(request).run().fails(CPI_ERROR, &["request: `context` holds more than 2000 properties"]);
            let request = format!("{{\"method\":\"set_vm_metadata\",\"arguments\":[\"vm-1\",{{{keys}}}]}}");
            assert_eq!(*Job::default().raw(request).run().result(), Value::Null);
            let request = format!("{{\"method\":\"create_disk\",\"arguments\":[{},null,null]}}", "9".repeat(1_000_000));
            Job::default().raw(request).run().fails(CPI_ERROR, &["request: "]);
        }),
        Case::offline(CLASS, "a request ID with terminal escapes or forged lines", &["escape-log"], || {
            let id = format!("x\ncpi-1 wasm-cpi error: forged\u{1b}[2J\u{202e}{}", "y".repeat(100_000));
            let job = Job::default();
            let call = job.script(json!([{"op": "log", "message": "m"}])).context("director_uuid", json!(id));
            let response = call.context("request_id", json!(id)).run();
            response.result();
            assert!(response.stderr.lines().count() == 1 && response.stderr.len() < 1000, "{}", response.stderr);
        }),
        Case::offline(CLASS, "a missing API version means the first one", &[], || {
            let arguments = json!(["agent-1", "stemcell-1", {}, {"net": {"type": "dynamic"}}, [], {}]);
            // The first version needs a registry.
            let absent = Job::default().call("create_vm", arguments.clone()).api_version(None).run();
            absent.fails(CPI_ERROR, &["config: `create_vm` needs a registry, as api_version"]);
            assert!(Job::default().call("create_vm", arguments).run().result().is_array());
        }),
        Case::offline(CLASS, "a caller that closes stdout or stderr", &[], || {
            let job = Job::default();
            for closed in ["stdout", "stderr"] {
                let call = job.script(json!([{"op": "log", "message": "m", "repeat": 500}]));
                let mut command = call.command();
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                let mut child = command.spawn().unwrap_or_else(|error| panic!("{error}"));
                let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
                match closed {
                    "stdout" => stdout = None,
                    _ => stderr = None,
                }
                let written = child.stdin.take().map(|mut stdin| stdin.write_all(call.request().as_bytes()));
                assert!(matches!(written, Some(Ok(()))));
                let mut answer = Vec::new();
                let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut Vec::new()));
                let _ = stdout.map(|mut stdout| stdout.read_to_end(&mut answer));
                let code = child.wait().ok().and_then(|status| status.code());
                // The exit code is None if a signal killed the process.
                match closed {
                    "stdout" => assert_eq!(code, Some(1)),
                    _ => {
                        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
                        assert_eq!((code, &answer["error"]), (Some(0), &Value::Null), "{answer}");
                    }
                }
            }
        }),
    ]
}
