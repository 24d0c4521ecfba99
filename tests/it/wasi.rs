//! What a guest sees of the system through WASI, which its standard library imports:
//! clocks, randomness and printing work; everything else is empty or refused.

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tests::Job;

#[test]
fn environment_arguments_and_stdin_are_empty() {
    // A call of the CLI inherits an environment.
    let call = Job::default().script(json!([{"op": "env"}, {"op": "args"}, {"op": "stdin"}])).cli().run();
    let outcomes = tests::probe::outcomes(call.result());
    assert_eq!(outcomes[0]["ok"], json!({}));
    assert_eq!(outcomes[1]["ok"], json!([]));
    let stdin = &outcomes[2];
    assert!(stdin["ok"]["bytes"] == 0 || stdin["error"]["kind"] == "io", "{stdin}");
}

#[test]
fn no_file_can_be_read_listed_or_written() {
    let job = Job::default();
    let (config, new) = (job.config_file(), job.path("written-by-the-guest"));
    let paths = ["/etc/passwd", "/etc/hostname", "/proc/self/environ", "/dev/null", ".", "/", "", "../../etc/passwd"];
    let mut operations: Vec<Value> = paths.iter().map(|path| json!({"op": "fs", "path": path})).collect();
    operations.push(json!({"op": "fs", "path": config}));
    for path in ["/", ".", "/proc/self/fd", "/tmp"] {
        operations.push(json!({"op": "fs", "path": path, "list": true}));
    }
    operations.push(json!({"op": "fs", "path": new, "write": "x"}));
    operations.push(json!({"op": "fs", "path": "written-by-the-guest", "write": "x"}));
    for outcome in job.probe(json!(operations)) {
        assert_eq!(outcome["error"]["kind"], "io", "{outcome}");
    }
    assert!(!new.exists());
}

#[test]
fn clocks_and_randomness_work() {
    let outcomes = Job::default().probe(json!([
        {"op": "wasi.now"}, {"op": "clock.now"}, {"op": "clock.monotonic"}, {"op": "wasi.sleep", "ms": 30},
        {"op": "clock.sleep", "ms": 30}, {"op": "clock.monotonic"}, {"op": "wasi.random"}, {"op": "wasi.random"},
        {"op": "random", "count": 16}, {"op": "random", "count": 16}, {"op": "random", "count": 4_000_000}, {"op": "clock.ending"},
    ]));
    let ok = |index: usize| &outcomes[index]["ok"];
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    for index in [0, 1] {
        assert!(now.abs_diff(ok(index).as_u64().unwrap()) < 60_000, "{}", ok(index));
    }
    let slept = ok(5).as_u64().unwrap() - ok(2).as_u64().unwrap();
    assert!(slept >= 60_000_000, "{slept} ns");
    assert_ne!(ok(6), ok(7));
    assert_ne!(ok(8), ok(9));
    assert_eq!(ok(10)["bytes"], 65_536);
    assert_eq!(*ok(11), Value::Null);
}

#[test]
fn capabilities_that_a_call_does_not_have_are_refused() {
    let outcomes = Job::default().probe(json!([
        {"op": "image.size"}, {"op": "image.sha256"}, {"op": "image.read", "offset": 0, "length": 1},
        {"op": "image.members"}, {"op": "image.read_member", "name": "x", "length": 1},
        {"op": "registry.get", "id": "vm-1"}, {"op": "registry.put", "id": "vm-1", "settings": {}}, {"op": "registry.delete", "id": "vm-1"},
        {"op": "agent.bootstrap"}, {"op": "http", "url": "https://example.org/"}, {"op": "session", "name": "x"},
    ]));
    for outcome in &outcomes {
        let kind = outcome["error"]["kind"].as_str().unwrap_or_default();
        assert!(["denied", "refused", "unavailable", "invalid-request"].contains(&kind), "{outcome}");
    }
}
