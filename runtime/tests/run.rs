//! Tests of `wasm-cpi run`, started as the Director starts it, for calls that fail before a
//! guest is needed: every outcome is one response with the right error type and exit code 0.
//! The crate `tests` tests calls that reach a guest.

use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const CPI_ERROR: &str = "Bosh::Clouds::CpiError";
const NOT_IMPLEMENTED: &str = "Bosh::Clouds::NotImplemented";
const NOT_SUPPORTED: &str = "Bosh::Clouds::NotSupported";

/// Writes a file that only this user can write, independent of the umask, because the runtime
/// refuses other files.
fn write(path: &Path, config: &Value) {
    std::fs::write(path, config.to_string()).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Runs one call and returns its response.
fn run(config: &Path, request: &str) -> Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wasm-cpi"))
        .args(["run", "--config"])
        .arg(config)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn failures_before_a_guest_is_needed_are_reported_in_the_response() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("cpi.json");
    let good = json!({"version": 1, "guest": {"path": "guest.wasm", "sha256": "0".repeat(64)}});
    let wrong = json!({"version": 2, "guest": {"path": "guest.wasm", "sha256": "0".repeat(64)}});
    let request = |method: &str| json!({"method": method, "arguments": []}).to_string();
    for (config_text, request, kind, message) in [
        (&good, String::new(), CPI_ERROR, "request: stdin is empty"),
        (&good, "{\"method\":".to_owned(), CPI_ERROR, "request: the request is not one JSON document"),
        (&good, request("ping"), NOT_IMPLEMENTED, "Method is not known, got: ping"),
        (&good, request("configure_networks"), NOT_SUPPORTED, "request: `configure_networks` is deprecated"),
        (&good, request("has_vm"), CPI_ERROR, "request: "),
        (&good, request("info"), CPI_ERROR, "config: guest "),
        // A wrong config is reported after a wrong request and an unknown method.
        (&wrong, String::new(), CPI_ERROR, "request: stdin is empty"),
        (&wrong, request("ping"), NOT_IMPLEMENTED, "Method is not known, got: ping"),
        (&wrong, request("info"), CPI_ERROR, "config: "),
    ] {
        write(&config, config_text);
        let response = run(&config, &request);
        assert_eq!(response["result"], Value::Null, "{request}");
        assert_eq!(response["error"]["type"], kind, "{request}: {response}");
        let found = response["error"]["message"].as_str().unwrap();
        assert!(found.starts_with(message), "{request}: {found}");
        assert!(response["log"].is_string(), "{request}");
    }
}

#[test]
fn a_call_that_fails_because_of_its_config_is_audited() {
    let directory = tempfile::tempdir().unwrap();
    let (config, audit) = (directory.path().join("cpi.json"), directory.path().join("audit.log"));
    write(&config, &json!({"version": 1, "polcy": "x", "audit": {"path": "audit.log"}}));
    let context = json!({"request_id": "cpi-1"});
    run(&config, &json!({"method": "has_vm", "arguments": ["vm-1"], "context": context}).to_string());
    let line: Value = serde_json::from_str(&std::fs::read_to_string(&audit).unwrap()).unwrap();
    let expected = json!(["call", "has_vm", "cpi-1", "error", "config"]);
    let found = json!([line["kind"], line["method"], line["request_id"], line["outcome"], line["who"]]);
    assert_eq!(found, expected, "{line}");
}
