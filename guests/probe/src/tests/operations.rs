use wasm_cpi_sdk::agent::Encoding;
use wasm_cpi_sdk::bindings::bosh::cpi::agent as wire_agent;
use wasm_cpi_sdk::bindings::bosh::cpi::http::{Body, Denial, ErrorKind, ImagePart};
use wasm_cpi_sdk::fake::{AgentEvent, Answer, Fake};
use wasm_cpi_sdk::{DiskHint, log};

use super::*;

const URL: &str = "https://cloud.example/x";

#[test]
fn requests_are_sent_as_written_and_responses_returned_as_received() {
    let answer = Answer::json(201, json!({"id": "s1"})).header("set", "a").header("set", "b");
    let host = Fake::new().on("POST", URL, answer).on("GET", URL, Answer::text(200, "0123456789")).install();
    let seen = run(json!([
        {"op": "http", "method": "POST", "url": URL, "headers": {"x": "1"}, "body": {"a": [1]}, "timeout_ms": 5},
        {"op": "http", "url": URL, "headers": [["x", "1"], ["x", "2"]], "body": "raw {{0.ok.body.id}}", "keep": 4},
        {"op": "http", "url": URL, "body_base64": "/w==", "keep": 0},
        {"op": "http", "url": URL, "image": true, "keep": 0},
        {"op": "http", "url": URL, "image_member": "root.img", "keep": 0},
    ]))
    .unwrap();
    let headers = json!({"content-type": "application/json", "set": "a, b"});
    assert_eq!(seen[0]["ok"], json!({"status": 201, "headers": headers, "bytes": 11, "body": r#"{"id":"s1"}"#}));
    assert_eq!(seen[1]["ok"], json!({"status": 200, "headers": {}, "bytes": 10, "body": "0123"}));
    let sent = host.requests();
    assert_eq!(sent[0].timeout_ms, Some(5));
    assert_eq!(sent[1].headers, [("x".into(), "1".into()), ("x".into(), "2".into())]);
    let bodies: Vec<Body> = sent.into_iter().map(|request| request.body).collect();
    assert_eq!(
        bodies,
        [
            Body::Bytes(br#"{"a":[1]}"#.to_vec()),
            Body::Bytes(b"raw s1".to_vec()),
            Body::Bytes(vec![0xff]),
            Body::Image(ImagePart::Whole),
            Body::Image(ImagePart::Member("root.img".into())),
        ]
    );
}

#[test]
fn failed_requests_have_kind_reason_and_sent() {
    for (kind, expected) in [
        (ErrorKind::Denied(Denial::Slot), json!({"kind": "denied", "reason": "slot"})),
        (ErrorKind::Limit("http_requests".into()), json!({"kind": "limit", "limit": "http_requests"})),
        (ErrorKind::InvalidRequest, json!({"kind": "invalid-request"})),
        (ErrorKind::Truncated, json!({"kind": "truncated"})),
    ] {
        let _host = Fake::new().on("GET", URL, Answer::fail(kind, "m", true)).install();
        let mut expected = expected;
        expected["message"] = "m".into();
        expected["sent"] = true.into();
        assert_eq!(run(json!([{"op": "http", "url": URL}])).unwrap(), json!([{"op": "http", "error": expected}]));
    }
}

#[test]
fn every_host_function_has_its_operation() {
    let host = Fake::new()
        .properties(json!({"region": "r"}))
        .session("main", json!({"catalog": []}))
        .registry_entry("vm-1", json!({"disks": {}}))
        .image("abc")
        .image_member("m", [0xff])
        .install();
    let seen = run(json!([
        {"op": "config"},
        {"op": "call"},
        {"op": "session", "name": "main"},
        {"op": "session", "name": "none"},
        {"op": "registry.get", "id": "vm-1"},
        {"op": "registry.put", "id": "vm-2", "settings": {"a": 1}},
        {"op": "registry.delete", "id": "vm-1"},
        {"op": "registry.get", "id": "vm-1"},
        {"op": "image.size"},
        {"op": "image.read", "offset": 1, "length": 5},
        {"op": "image.members"},
        {"op": "image.read_member", "name": "m", "length": 5},
        {"op": "image.read_member", "name": "x", "length": 5},
        {"op": "log", "level": "warn", "message": "w {{8.ok}}"},
        {"op": "clock.now"},
        {"op": "clock.sleep", "ms": 7},
        {"op": "clock.monotonic"},
        {"op": "clock.ending"},
        {"op": "random", "count": 0},
    ]))
    .unwrap();
    let ok: Vec<&Value> = seen.as_array().unwrap().iter().map(|outcome| &outcome["ok"]).collect();
    let kind = |at: usize| seen[at]["error"]["kind"].as_str();
    assert_eq!(*ok[0], json!({"region": "r"}));
    assert_eq!(ok[1]["api_version"], 2);
    assert_eq!(*ok[2], json!({"catalog": []}));
    assert_eq!(kind(3), Some("denied"));
    assert_eq!(*ok[4], json!({"disks": {}}));
    assert_eq!(host.registry_settings("vm-2"), Some(json!({"a": 1})));
    assert_eq!(kind(7), Some("not-found"));
    assert_eq!(*ok[8], 3);
    assert_eq!(*ok[9], json!({"bytes": 2, "text": "bc"}));
    assert_eq!(*ok[10], json!([{"name": "m", "size": 1}]));
    assert_eq!(*ok[11], json!({"bytes": 1, "base64": "/w=="}));
    assert_eq!(kind(12), Some("invalid"));
    assert_eq!(host.logs(), [(log::Level::Warn, "w 3".into())]);
    assert!(ok[14].is_u64());
    assert_eq!(*ok[16], 7_000_000);
    assert_eq!((ok[17], &seen[17]["error"]), (&Value::Null, &Value::Null));
    assert_eq!(*ok[18], json!({"bytes": 0, "text": ""}));
}

#[test]
fn agent_operations_accept_all_fields_of_the_interface() {
    let host = Fake::new().install();
    let seen = run(json!([
        {"op": "agent.bootstrap", "vm_name": "n", "system_disk": "/dev/sda", "ephemeral_disk": {"path": "/dev/sdb"},
         "raw_ephemeral_disks": ["/dev/sdc"], "encodings": ["json-string", "base64", "base64url"],
         "networks": [{"name": "default", "mac": "02:00", "routes": [{"destination": "d"}], "use_dhcp": true}]},
        {"op": "agent.created", "vm": "vm-1", "key": "k"},
        {"op": "agent.attached", "key": "k", "disk": "d", "hint": {"lun": 0}},
        {"op": "agent.detached", "key": "k", "disk": "d"},
        {"op": "agent.deleted", "key": "k"},
        {"op": "agent.bootstrap"},
    ]))
    .unwrap();
    assert_eq!(seen[0]["ok"], "sealed-user-data-1");
    let events = host.agent_events();
    let AgentEvent::Bootstrap(settings) = &events[0] else { panic!("{events:?}") };
    assert_eq!(settings.encodings, [Encoding::JsonString, Encoding::Base64, Encoding::Base64url]);
    assert_eq!(settings.ephemeral_disk, Some(DiskHint::Fields(vec![("path".into(), "/dev/sdb".into())])));
    assert_eq!(settings.networks[0].routes.as_deref(), Some(r#"[{"destination":"d"}]"#));
    let hint = DiskHint::Fields(vec![("lun".into(), "0".into())]);
    assert_eq!(events[2], AgentEvent::Attached { registry_key: "k".into(), disk: "d".into(), hint });
    assert_eq!(events.len(), 6);

    let _host = Fake::new().fail_agent(wire_agent::Error::Refused("no".into())).install();
    let error = json!({"kind": "refused", "message": "no"});
    assert_eq!(run(json!([{"op": "agent.deleted", "key": "k"}])).unwrap()[0]["error"], error);
}

#[test]
fn operations_of_the_system_return_a_value_or_an_error() {
    let _host = Fake::new().install();
    let seen = run(json!([
        {"op": "fs", "path": "/no/such/file"},
        {"op": "fs", "path": "/no/such/dir", "list": true},
        {"op": "fs", "path": "/no/such/dir/file", "write": "x"},
        {"op": "args"},
        {"op": "env"},
        {"op": "wasi.now"},
        {"op": "wasi.sleep", "ms": 1},
        {"op": "wasi.random"},
        {"op": "spin_ms", "ms": 0},
        {"op": "grow", "mib": 1},
        {"op": "find", "reversed": "terces"},
    ]))
    .unwrap();
    for at in 0..3 {
        assert_eq!(seen[at]["error"]["kind"], "io");
    }
    assert!(seen[3]["ok"].is_array() && seen[4]["ok"].is_object() && seen[5]["ok"].is_u64() && seen[7]["ok"].is_u64());
    assert_eq!(seen[9]["ok"], 1);
    assert_eq!(seen[10]["error"]["kind"], "unsupported");
}

#[test]
fn operations_repeat_until_they_fail() {
    let host = Fake::new()
        .on("GET", URL, Answer::text(200, ""))
        .on("GET", URL, Answer::text(200, ""))
        .on("GET", URL, Answer::fail(ErrorKind::Limit("http_requests".into()), "", false))
        .install();
    let seen = run(json!([
        {"op": "log", "message": "x", "repeat": 5},
        {"op": "http", "url": URL, "repeat": 10},
        {"op": "clock.now", "repeat": 0},
    ]))
    .unwrap();
    assert_eq!(host.logs().len(), 5);
    assert_eq!(seen[0], json!({"op": "log", "ok": null, "times": 5}));
    assert_eq!((&seen[1]["times"], &seen[1]["error"]["limit"]), (&json!(3), &json!("http_requests")));
    assert_eq!(seen[2], json!({"op": "clock.now", "ok": null, "times": 0}));
}
