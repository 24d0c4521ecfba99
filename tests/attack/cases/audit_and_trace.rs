//! Attacks on the records of a call: the audit log, which no other user may write
//! or redirect, and the HTTP trace, which shows no credentials.

use crate::case::{API, Case};
use crate::row;
use crate::world::World;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use tests::audit::{audited, call_with_uses, last_call, lines, path};
use tests::job::{set_mode, write};
use tests::users::{NOBODY, give, is_root};
use tests::{Job, Response, hostile, probe};

const CLASS: &str = "audit and logs";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "an audit file that is a link", &["audit-link"], || {
            let job = audited(Job::default());
            let theirs = job.path("theirs");
            write(&theirs, b"theirs");
            symlink(&theirs, path(&job)).unwrap_or_else(|error| panic!("{error}"));
            assert_warns(&info(&job), "is a symbolic link, which is not followed");
            assert_eq!(fs::read(&theirs).ok().as_deref(), Some(&b"theirs"[..]));
        }),
        Case::offline(CLASS, "an audit file that others can write", &["audit-trust"], || {
            for mode in [0o620, 0o602, 0o666] {
                let job = audited(Job::default());
                write(&path(&job), b"");
                set_mode(&path(&job), mode);
                assert_warns(&info(&job), &format!("is writable by group or others (mode {mode:o})"));
                assert_eq!(fs::read(path(&job)).ok().as_deref(), Some(&b""[..]));
            }
        }),
        Case::offline(CLASS, "an audit file of another user", &["audit-trust"], || {
            if is_root("giving files away") {
                let job = audited(Job::default());
                write(&path(&job), b"");
                give(&path(&job), NOBODY);
                assert_warns(&info(&job), "belongs to user 65534");
            }
        }),
        Case::offline(CLASS, "a guest that fills the audit log", &["audit-lines"], || {
            let job = audited(Job::default());
            call_with_uses(&job, "vm-1", 10_100).run().result();
            assert_eq!((lines(&job).len(), &last_call(&job)["dropped"]), (10_001, &json!(100)));
        }),
        Case::offline(CLASS, "functions that are named like lines of the runtime", &["guest-lines"], || {
            let job = Job::new().guest_bytes(&hostile::guest("function-names-forge-lines"));
            let response = job.call("has_vm", json!(["vm-1"])).run();
            assert!(response.log().contains("forged by a name"), "{}", response.log());
            let forged = |line: &str| line.trim_start().starts_with("wasm-cpi warn: forged");
            assert!(!response.log().lines().any(forged), "{}", response.log());
        }),
        Case::offline(CLASS, "a guest's error that continues as a line of the runtime", &["guest-lines"], || {
            let error = json!({"op": "error", "kind": "cloud", "message": "x\nconfig: forged by an error"});
            let response = Job::default().call("has_vm", json!([probe::cid(&json!([error]))])).run();
            assert_eq!(response.message(), "x\\nconfig: forged by an error");
        }),
        Case::new(CLASS, "a captured value that would hide the targets of later requests", &["audit-target"], targets)
            .may_contact(API),
        Case::new(CLASS, "credentials in the HTTP trace, known by their names", &["trace-credentials"], credentials)
            .may_contact(API),
        Case::new(CLASS, "a guest that floods the log through the HTTP trace", &["trace-bounds"], flood)
            .may_contact(API),
    ]
}

fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

/// Asserts that the call succeeds, with one warning that says this.
#[track_caller]
fn assert_warns(response: &Response, said: &str) {
    response.result();
    let warnings: Vec<&str> = response.stderr.lines().filter(|line| line.contains("wasm-cpi warn: audit: ")).collect();
    assert!(matches!(warnings[..], [one] if one.contains(said)), "no `{said}`: {}", response.stderr);
}

/// Runs a call with the HTTP trace. Fails if nothing is traced.
fn traced(world: &World, operation: Value) -> Result<Response, String> {
    let row = json!({"config": {"http_trace": "bodies"}});
    row::prepare(world, &row)?;
    let job = row::job(world, &row);
    let response = job.call("has_vm", json!([probe::cid(&json!([operation, {"op": "result", "json": true}]))])).run();
    response.result();
    if response.stderr.contains(" http_trace trace: > ") {
        return Ok(response);
    }
    Err(format!("nothing is traced: {}", response.stderr))
}

/// The server returns the start of the guest's URLs where a value is captured.
fn targets(world: &World) -> Result<(), String> {
    let captures = json!([{"method": "POST", "path": "/v1/login", "place": "json:/token", "as": "token"}]);
    let token = json!({"token": "https://api.iaas.test/v1/"});
    let served = json!({"api.iaas.test/v1/login": {"headers": {"Content-Type": "application/json"}, "body": token}});
    let row = json!({"grant": {"captures": captures}, "serve": served});
    row::prepare(world, &row)?;
    let job = row::job(world, &row);
    let script = json!([
        {"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/login"},
        {"op": "http", "url": "https://api.iaas.test/v1/evil/cAnArY7secret-property"},
        {"op": "result", "json": true},
    ]);
    job.call("has_vm", json!([probe::cid(&script)])).run();
    let targets: Vec<Value> = lines(&job).iter().map(|line| line["target"].clone()).filter(Value::is_string).collect();
    let expected = ["https://api.iaas.test:443/v1/login", "https://api.iaas.test:443/v1/evil/<redacted>"];
    let without_port = |target: &Value| target.as_str().unwrap_or_default().replace(":443", "");
    let shown: Vec<String> = targets.iter().map(without_port).collect();
    let expected: Vec<String> = expected.iter().map(|target| target.replace(":443", "")).collect();
    if shown == expected { Ok(()) } else { Err(format!("the targets are {shown:?}")) }
}

fn credentials(world: &World) -> Result<(), String> {
    let url = "https://api.iaas.test/v1/x?access_token=unseen-1&X-Amz-Signature=unseen-2&sig=unseen-3";
    let headers = json!({"X-Api-Key": "unseen-4", "X-Session": "unseen-5", "X-Its-Secret": "unseen-6"});
    let response = traced(world, json!({"op": "http", "url": url, "headers": headers}))?;
    let shown = response.stderr.lines().find(|line| line.contains("unseen"));
    shown.map_or(Ok(()), |line| Err(format!("a credential is shown: {line}")))
}

fn flood(world: &World) -> Result<(), String> {
    let body = "sent ".repeat(20_000);
    let url = "https://api.iaas.test/v1/x";
    let post = json!({"op": "http", "method": "POST", "url": url, "body": body, "keep": 1, "repeat": 100});
    let response = traced(world, post)?;
    let is_cut = response.stderr.contains("the trace of this call ends here: it reached 256 KiB");
    if is_cut && response.stderr.len() < 300 * 1024 {
        return Ok(());
    }
    Err(format!("{} bytes are shown", response.stderr.len()))
}
