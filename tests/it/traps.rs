//! Guests that misbehave: the response says what happened and what to do, and the log
//! names the functions of the guest.

use serde_json::{Value, json};
use tests::{CLOUD_ERROR, Job, Response, hostile, probe};

fn script(operations: Value) -> Response {
    Job::default().script(operations).run()
}

#[test]
fn an_endless_loop_is_stopped_and_the_log_names_its_function() {
    let job = Job::default().limits(json!({"cpu_seconds": 1, "cleanup_seconds": 1}));
    let response = job.script(json!([{"op": "loop"}])).run();
    response.reaches("cpu_seconds");
    assert!(response.log().contains("probe") && response.log().contains("forever"), "{}", response.log());
}

#[test]
fn the_log_of_a_panic_has_its_message_its_location_and_a_backtrace() {
    let response = script(json!([{"op": "panic", "message": "the cloud fell down"}]));
    response.fails(CLOUD_ERROR, &["guest: trapped in create_disk: ", "unreachable", "a bug in the guest, see the log"]);
    for expected in ["guest panicked at ", ".rs:", ": the cloud fell down", "wasm backtrace:", "probe", "create_disk"] {
        assert!(response.log().contains(expected), "{expected} in {}", response.log());
    }
    assert!(response.stderr.contains("cpi-123456 probe error: guest panicked at "), "{}", response.stderr);
}

#[test]
fn each_kind_of_trap_has_its_own_message() {
    for (operation, expected) in [
        (json!({"op": "trap"}), "guest: trapped in create_disk: wasm `unreachable` instruction executed"),
        (json!({"op": "grow", "mib": 1000}), "limit: the guest reached `memory_mib` (256)"),
        (json!({"op": "recurse", "frames": "small"}), "limit: the guest's recursion reached `stack_kib` (1024)"),
        (json!({"op": "recurse", "frames": "large"}), "guest: trapped in create_disk: out of bounds memory access"),
    ] {
        let response = script(json!([operation]));
        response.fails(CLOUD_ERROR, &[expected]);
        assert_eq!(response.error()["ok_to_retry"], false);
    }
}

#[test]
fn an_exit_is_reported_as_a_bug_in_the_guest() {
    for code in [0, 1] {
        let response = script(json!([{"op": "exit", "code": code}]));
        let expected = format!("called exit({code})");
        response.fails(
            CLOUD_ERROR,
            &["guest: ", "create_disk", &expected, "instead of returning a result", "a bug in the guest"],
        );
    }
}

#[test]
fn the_backtrace_of_a_trap_names_the_functions_of_the_guest() {
    for operation in [json!({"op": "trap"}), json!({"op": "recurse"}), json!({"op": "grow", "mib": 1000})] {
        let response = script(json!([operation]));
        assert!(
            response.log().contains("wasm backtrace:") && response.log().contains("]::ops::"),
            "{}",
            response.log()
        );
        assert!(response.log().len() < 20_000, "{} bytes of log", response.log().len());
    }
}

/// Every method that returns text must refuse invalid text.
#[test]
fn invalid_results_are_reported_as_errors_of_the_guest() {
    let returned = |what: &str| format!("guest: returned {what}");
    let not_utf8 = "guest: failed in ".to_owned();
    for (kind, cid, json, hint) in [
        ("bad-json", None, Some(returned("cloud_properties that is not JSON")), None),
        ("deep-json", None, Some(returned("cloud_properties that is not JSON")), None),
        ("duplicate-keys", None, Some(returned("cloud_properties that is not JSON")), Some(returned("a disk hint"))),
        (
            "not-an-object",
            None,
            Some(returned("cloud_properties that is JSON but not an object")),
            Some(returned("a disk hint")),
        ),
        (
            "empty",
            Some(returned("an empty cloud ID")),
            Some(returned("cloud_properties that is not JSON")),
            Some(returned("a disk hint")),
        ),
        (
            "empty-fields",
            Some(returned("an empty cloud ID")),
            Some(returned("cloud_properties that is not JSON")),
            Some(returned("a disk hint")),
        ),
        (
            "nul",
            Some(returned("a cloud ID with control characters")),
            Some(returned("cloud_properties that is not JSON")),
            Some(returned("a disk hint")),
        ),
        ("invalid-utf8", Some(not_utf8.clone()), Some(not_utf8.clone()), Some(not_utf8)),
    ] {
        let operations = json!([{"op": "garbage", "kind": kind}]);
        let as_cid = probe::cid(&operations);
        for (method, arguments, expected) in [
            ("create_disk", json!([1, {"probe": operations}, null]), &cid),
            ("snapshot_disk", json!(["disk-1", {"probe": operations.to_string()}]), &cid),
            ("get_disks", json!([as_cid]), &cid),
            ("update_disk", json!([as_cid, 1, {}]), &cid),
            ("attach_disk", json!([as_cid, "disk-1"]), &hint),
            ("calculate_vm_cloud_properties", json!([{"ram": 1, "cpu": 1, "ephemeral_disk_size": 1}]), &json),
            (
                "create_network",
                json!([{"cloud_properties": {"probe": operations}}]),
                if cid.is_some() { &cid } else { &json },
            ),
        ] {
            let job = Job::default()
                .properties(json!({"probe": operations}))
                .policy(json!({"version": 1, "http": [], "expose": ["probe"]}));
            let response = job.call(method, arguments).run();
            match expected {
                Some(expected) => {
                    assert!(response.error().is_object(), "{method} with {kind}: {}", response.json);
                    assert!(
                        response.message().contains(expected.as_str()),
                        "{method} with {kind}: {}",
                        response.message()
                    );
                    response.fails(CLOUD_ERROR, &["guest: "]);
                }
                None => assert!(response.json["error"].is_null(), "{method} with {kind}: {}", response.json),
            }
        }
    }
}

#[test]
fn invalid_networks_of_a_new_vm_are_errors_of_the_guest() {
    let networks = json!({"n": {"type": "dynamic", "cloud_properties": {}, "later": 1}});
    let create = |kind: &str| {
        let properties = json!({"probe": [{"op": "garbage", "kind": kind}]});
        Job::default().call("create_vm", json!(["a", "stemcell-1", properties, networks, [], {}])).run()
    };
    for kind in ["bad-json", "deep-json", "duplicate-keys"] {
        create(kind).fails(CLOUD_ERROR, &["guest: returned a network's cloud_properties that is not JSON"]);
    }
    create("not-an-object")
        .fails(CLOUD_ERROR, &["guest: returned a network's cloud_properties that is JSON but not an object"]);
    create("empty").fails(CLOUD_ERROR, &["guest: returned an empty cloud ID"]);
    create("duplicate-network").fails(CLOUD_ERROR, &["guest: returned the network `n` twice"]);
    assert_eq!(*create("no-networks").result(), json!(["vm-garbage", {}]));
    // Additional keys cannot override the typed fields.
    assert_eq!(create("shadowed-network").result()[1]["n"]["type"], "dynamic");
    assert_eq!(create("shadowed-network").result()[1]["n"]["cloud_properties"], json!({}));
}

#[test]
fn a_huge_result_reaches_its_limit() {
    script(json!([{"op": "garbage", "kind": "huge", "mib": 2}])).reaches("result_kib");
    script(json!([{"op": "garbage", "kind": "huge", "mib": 50}])).reaches("hostcall_mib");
}

#[test]
fn the_message_of_an_error_is_bounded_and_has_no_control_characters() {
    let huge = script(json!([{"op": "garbage", "kind": "huge", "mib": 4, "in_error": true}]));
    assert!(huge.message().len() < 100_000, "{} bytes", huge.message().len());
    huge.fails(CLOUD_ERROR, &["xxxx", "more bytes"]);
    let odd = script(json!([{"op": "garbage", "kind": "nul", "in_error": true}]));
    assert!(!odd.message().contains(['\0', '\u{1b}', '\r', '\u{202e}', '\u{feff}']), "{:?}", odd.message());
    odd.fails(CLOUD_ERROR, &["vm-"]);
    script(json!([{"op": "garbage", "kind": "invalid-utf8", "in_error": true}]))
        .fails(CLOUD_ERROR, &["guest: failed in create_disk"]);
}

#[test]
fn output_of_a_guest_becomes_log_lines() {
    let response = script(json!([
        {"op": "print", "text": "one\ntwo\n{\"result\":1}\n"},
        {"op": "print", "stream": "stderr", "text": "three\nno end"},
    ]));
    response.result();
    for line in ["info: one\n", "info: two\n", "info: {\"result\":1}\n", "warn: three\n", "warn: no end\n"] {
        assert!(response.stderr.contains(&format!("cpi-123456 probe {line}")), "{line} in {}", response.stderr);
    }
    assert_eq!(response.log(), "");
}

#[test]
fn the_log_output_of_a_guest_is_bounded_and_dropped_lines_are_counted() {
    let flood = |operation: Value| {
        let response = script(json!([operation]));
        response.result();
        assert!(response.stderr.contains("were dropped, because `limits.log_"), "{}", response.stderr.len());
    };
    // Only the start of an endless line is kept.
    let endless = script(json!([{"op": "print", "text": "x".repeat(1 << 20), "repeat": 20}]));
    assert!(endless.stderr.len() < 8 * 1024, "{}", endless.stderr.len());
    flood(json!({"op": "print", "stream": "stderr", "text": "line\n".repeat(100_000), "repeat": 3}));
    flood(json!({"op": "log", "level": "error", "message": "x".repeat(100_000), "repeat": 200}));
    flood(json!({"op": "log", "message": "x", "repeat": 50_000}));
}

#[test]
fn a_guest_cannot_forge_log_lines() {
    let response = script(json!([
        {"op": "log", "message": "a\ncpi-000000 wasm-cpi error: forged\r\u{1b}[2J\u{0}\u{202e}\u{200b}\u{feff}\u{2028}b\u{7f}\u{9b}c"},
        {"op": "print", "text": "\u{1b}[31mred\u{202e}\n"},
    ]));
    response.result();
    assert_eq!(response.stderr.lines().count(), 2, "{}", response.stderr);
    assert!(response.stderr.lines().all(|line| line.starts_with("cpi-123456 probe info: ")), "{}", response.stderr);
    assert!(response.stderr.contains("\\u{1b}[31mred\\u{202e}"), "{}", response.stderr);
    let forged = Job::default()
        .script(json!([{"op": "log", "message": "m"}]))
        .context("request_id", json!("x\ny\u{1b}[2J"))
        .run();
    assert_eq!(forged.stderr, "x\\ny\\u{1b}[2J probe info: m\n");
}

#[test]
fn the_log_of_a_failed_call_has_warnings_and_errors_only_and_is_bounded() {
    let response = script(json!([
        {"op": "log", "level": "debug", "message": "not shown"},
        {"op": "log", "level": "info", "message": "not shown"},
        {"op": "log", "level": "warn", "message": "shown"},
        {"op": "log", "level": "error", "message": "shown as well", "repeat": 2000},
        {"op": "error", "kind": "cloud", "message": "failed"},
    ]));
    assert!(response.log().starts_with("probe warn: shown\nprobe error: shown as well\n"), "{}", response.log());
    assert!(!response.log().contains("not shown") && response.log().len() <= 16 * 1024);
}

/// Returns core code that violates the canonical ABI, which compilers never generate.
#[test]
fn code_that_violates_the_abi_fails_the_call() {
    for (name, method, arguments) in [
        ("result-out-of-bounds", "has_vm", json!(["vm-1"])),
        ("result-misaligned", "has_vm", json!(["vm-1"])),
        ("unknown-discriminant", "has_vm", json!(["vm-1"])),
        ("string-out-of-bounds", "create_disk", json!([1, {}, null])),
        ("list-out-of-bounds", "create_vm", json!(["a", "s", {}, {}, [], {}])),
        ("allocator-out-of-bounds", "has_vm", json!(["vm-1"])),
        ("allocator-traps", "has_vm", json!(["vm-1"])),
        ("invalid-bool", "has_vm", json!(["vm-1"])),
    ] {
        let job = Job::new().guest_bytes(&hostile::guest(name)).limits(json!({"hostcall_mib": 4}));
        let response = job.call(method, arguments).run();
        match name {
            // In the canonical ABI, every value except 0 is true.
            "invalid-bool" => assert_eq!(*response.result(), true),
            _ => assert_eq!(response.error_type(), CLOUD_ERROR, "{name}: {}", response.json),
        }
    }
}

#[test]
fn an_allocator_that_never_returns_is_stopped() {
    let job = Job::new()
        .guest_bytes(&hostile::guest("allocator-loops"))
        .limits(json!({"cpu_seconds": 1, "cleanup_seconds": 1}));
    job.call("has_vm", json!(["vm-1"])).run().reaches("cpu_seconds");
}
