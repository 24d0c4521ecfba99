//! Answers of guests. An answer that clients cannot read, or would misread, is
//! refused.

use super::CLASS;
use crate::case::Case;
use serde_json::{Value, json};
use tests::{CLOUD_ERROR, CPI_ERROR, Job, Response, hostile, probe};

fn script(operations: Value) -> Response {
    Job::default().script(operations).run()
}

/// Calls a method that answers with garbage of this kind.
fn garbage(method: &str, kind: &str) -> Response {
    let operations = json!([{"op": "garbage", "kind": kind}]);
    let cid = probe::cid(&operations);
    let arguments = match method {
        "create_disk" => json!([1, {"probe": operations}, null]),
        "attach_disk" => json!([cid, "disk-1"]),
        "get_disks" => json!([cid]),
        "create_network" => json!([{"cloud_properties": {"probe": operations}}]),
        _ => json!(["agent-1", "stemcell-1", {"probe": operations}, {"n": {"type": "dynamic"}}, [], {}]),
    };
    Job::default().call(method, arguments).run()
}

/// Calls a guest that answers this text in place of JSON.
fn answering(text: &str) -> Response {
    let bytes: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let length: String =
        u32::try_from(text.len()).unwrap_or(0).to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let code = format!(
        "(data (i32.const 0x2000) \"\\00\\00\\00\\00\\00\\30\\00\\00{length}\") (data (i32.const 0x3000) \"{bytes}\")
         (func (export \"bosh:cpi/vms@0.1.0#calculate-vm-cloud-properties\") (param i64 i32 i64) (result i32) (i32.const 0x2000))"
    );
    let guest = hostile::implementing(&["calculate_vm_cloud_properties"], &code);
    let size = json!([{"ram": 1, "cpu": 1, "ephemeral_disk_size": 1}]);
    Job::new().guest_bytes(&guest).call("calculate_vm_cloud_properties", size).run()
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "an answer that is not JSON, where JSON is expected", &[], || {
            for text in [
                "",
                "NaN",
                "{\"a\":NaN}",
                "{\"a\":1e400}",
                "{\"a\":-}",
                "{\"a\":01}",
                "{\"a\":\"\\ud800\"}",
                "{\"a\":\"\0\"}",
                "{a:1}",
            ] {
                answering(text).fails(CLOUD_ERROR, &["guest: returned cloud_properties that is not JSON"]);
            }
            answering("[]").fails(CLOUD_ERROR, &["guest: returned cloud_properties that is JSON but not an object"]);
            assert_eq!(*answering("{\"a\":1e308}").result(), json!({"a": 1e308}));
        }),
        Case::offline(
            CLASS,
            "an answer that parsers read differently",
            &["json-duplicate-key", "json-trailing"],
            || {
                for text in ["{\"a\":1,\"a\":2}", "{\"a\":1}{\"a\":2}", "{\"a\":1} x"] {
                    answering(text).fails(CLOUD_ERROR, &["guest: returned cloud_properties that is not JSON"]);
                }
                garbage("create_network", "duplicate-keys").fails(CLOUD_ERROR, &["guest: returned cloud_properties"]);
            },
        ),
        Case::offline(CLASS, "an answer of megabytes", &["limit-result_kib"], || {
            script(json!([{"op": "garbage", "kind": "huge", "mib": 2}])).reaches("result_kib");
        }),
        Case::offline(CLASS, "an answer that is nested too deeply for the Director", &["limit-result_depth"], || {
            let network = |depth: u64| {
                let script = json!([{"op": "garbage", "kind": "deep-json", "depth": depth}]);
                Job::default()
                    .call("create_network", json!([{"type": "manual", "cloud_properties": {"probe": script}}]))
                    .run()
            };
            network(88).result();
            network(89).reaches("result_depth");
            network(10_000).fails(CLOUD_ERROR, &["guest: returned cloud_properties that is not JSON"]);
        }),
        Case::offline(CLASS, "cloud IDs that are empty or have terminal escapes", &["cid-form"], || {
            for (kind, said) in [("empty", "an empty cloud ID"), ("nul", "a cloud ID with control characters")] {
                for method in ["create_disk", "get_disks", "create_network"] {
                    garbage(method, kind).fails(CLOUD_ERROR, &["guest: returned ", said]);
                }
            }
            for id in ["\u{1b}[2J", "a\nb", "\u{202e}dcba", "\u{200b}", "\u{feff}x", "\u{7f}", "\u{9b}2J"] {
                script(json!([{"op": "result", "json": id}]))
                    .fails(CLOUD_ERROR, &["a cloud ID with control characters"]);
            }
        }),
        Case::offline(CLASS, "disk hints that no Agent can use, or with terminal escapes", &["hint-form"], || {
            for kind in ["empty", "empty-fields", "nul", "duplicate-keys"] {
                garbage("attach_disk", kind).fails(CLOUD_ERROR, &["guest: returned a disk hint"]);
            }
            for hint in [
                json!("/dev/\u{1b}[2J"),
                json!("\u{202e}"),
                json!({"path": "/dev/\u{1b}[2J"}),
                json!({"id": "a\u{0}b"}),
                json!({"\u{200b}": "x"}),
            ] {
                let cid = probe::cid(&json!([{"op": "result", "json": hint}]));
                let response = Job::default().call("attach_disk", json!([cid, "disk-1"])).run();
                response.fails(CLOUD_ERROR, &["guest: returned a disk hint with control characters"]);
            }
        }),
        Case::offline(CLASS, "networks that are returned twice", &["network-twice"], || {
            garbage("create_vm", "duplicate-network").fails(CLOUD_ERROR, &["guest: returned the network `n` twice"]);
        }),
        Case::offline(CLASS, "networks whose extra keys do not override the typed ones", &[], || {
            let network = garbage("create_vm", "shadowed-network").result()[1]["n"].clone();
            assert_eq!((&network["type"], &network["cloud_properties"]), (&json!("dynamic"), &json!({})));
        }),
        Case::offline(CLASS, "a guest's error that pretends to be the runtime's", &["guest-error-prefix"], || {
            for prefix in [
                "request",
                "config",
                "policy",
                "limit",
                "iaas",
                "runtime",
                " config",
                "Config",
                "\u{200b}limit",
                "\nruntime",
            ] {
                let message = format!("{prefix}: raise `limits.memory_mib`");
                let response = script(json!([{"op": "error", "kind": "cloud", "message": message}]));
                response.fails(CLOUD_ERROR, &["guest: "]);
                assert!(response.message().starts_with("guest: "), "{}", response.message());
            }
        }),
        Case::offline(CLASS, "a guest's error with terminal escapes", &["escape-log"], || {
            let response = script(json!([{"op": "garbage", "kind": "nul", "in_error": true}]));
            let shown = format!("{}{}", response.message(), response.log());
            assert!(!shown.contains(['\0', '\u{1b}', '\r', '\u{202e}', '\u{feff}']), "{shown:?}");
        }),
        Case::offline(CLASS, "a huge error message, and an empty one", &["message-size"], || {
            let huge = script(json!([{"op": "garbage", "kind": "huge", "mib": 4, "in_error": true}]));
            assert!(huge.message().len() < 100_000, "{} bytes", huge.message().len());
            let empty = script(json!([{"op": "error", "kind": "cpi", "message": ""}]));
            empty.fails(CPI_ERROR, &["guest: create_disk failed without a message"]);
        }),
        Case::offline(CLASS, "log lines that pretend to be the runtime's", &["escape-log"], || {
            let response = script(json!([
                {"op": "log", "message": "a\ncpi-000000 wasm-cpi error: forged\r\u{1b}[2J\u{0}\u{202e}\u{200b}\u{feff}\u{2028}b\u{7f}\u{9b}c"},
                {"op": "print", "text": "\u{1b}[31mred\u{202e}\n"},
            ]));
            response.result();
            let mut lines = response.stderr.lines();
            assert!(lines.all(|line| line.starts_with("cpi-123456 probe info: ")), "{}", response.stderr);
            assert_eq!(response.stderr.lines().count(), 2, "{}", response.stderr);
        }),
        Case::offline(CLASS, "the log in the response is bounded", &["response-log-size"], || {
            let response = script(json!([
                {"op": "log", "level": "error", "message": "e".repeat(1000), "repeat": 1900},
                {"op": "error", "kind": "cloud", "message": "failed"},
            ]));
            assert!(response.log().len() <= 16 * 1024, "{} bytes", response.log().len());
        }),
    ]
}
