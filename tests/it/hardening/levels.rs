//! What operators learn about hardening: from `check`, from a call whose required level
//! is not available, and from the audit log.

use super::at_level;
use serde_json::{Value, json};
use std::process::Command;
use tests::cloud::{answered, get, job};
use tests::process::Finished;
use tests::servers::{Answer, Authority, Server, Validity, with};
use tests::{CPI_ERROR, Call, Job, dist, old_kernel, probe};

/// The system calls that a kernel may lack, and the mechanism that needs them.
const MECHANISMS: [(&[i64], &str); 2] = [(old_kernel::LANDLOCK, "landlock"), (old_kernel::SECCOMP, "seccomp")];

fn response(finished: &Finished) -> Value {
    let stderr = String::from_utf8_lossy(&finished.stderr);
    serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

/// Runs the call on a kernel without these system calls.
fn run_without(calls: &[i64], call: &Call<'_>) -> Value {
    response(&old_kernel::run(calls, &mut call.command(), call.request().as_bytes()))
}

fn check_without(calls: &[i64], job: &Job) -> (bool, String) {
    let mut command = Command::new(dist::tool());
    let finished = old_kernel::run(calls, command.arg("check").arg("--config").arg(job.config_file()), b"");
    (finished.status.success(), String::from_utf8_lossy(&finished.stdout).into_owned())
}

#[test]
fn a_call_whose_required_hardening_is_unavailable_fails_before_the_guest_runs() {
    for (calls, mechanism) in MECHANISMS {
        let server = Server::answering(Answer::ok(""));
        let job = at_level(job(json!([server.grant("api")])), "required");
        let response = run_without(calls, &job.script(json!([get(&server.url("/"))])));
        assert_eq!(response["error"]["type"], CPI_ERROR, "{response}");
        let message = response["error"]["message"].as_str().unwrap_or_default();
        for expected in
            ["config: `hardening` is `required`", &format!("lacks: {mechanism} ("), "run a kernel", "`best-effort`"]
        {
            assert!(message.contains(expected), "no `{expected}` in: {message}");
        }
        assert!(server.requests().is_empty());
        let best_effort = at_level(job, "best-effort");
        let response = run_without(calls, &best_effort.script(json!([get(&server.url("/"))])));
        answered(&probe::outcomes(&response["result"])[0], 200);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_guest_is_not_prepared_if_the_required_hardening_is_unavailable() {
    for (calls, mechanism) in MECHANISMS {
        let response = run_without(calls, &at_level(Job::new(), "required").call("info", json!([])));
        let message = response["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("`hardening` is `required`") && message.contains(&format!("lacks: {mechanism} (")),
            "{message}"
        );
        assert!(run_without(calls, &at_level(Job::new(), "best-effort").call("info", json!([])))["error"].is_null());
    }
}

#[test]
fn check_reports_the_available_hardening_and_whether_it_is_enough() {
    for level in super::LEVELS {
        let (succeeds, text) = check_without(&[], &at_level(Job::default(), level));
        assert!(succeeds, "{text}");
        let line = format!(
            "ok: hardening is `{level}`; this machine supports capability drop, no-new-privs, landlock fs (ABI "
        );
        assert!(
            text.contains(&line) && text.contains("seccomp; UDP is never restricted; `required` would succeed"),
            "{text}"
        );
        assert_eq!(text.contains("warning: `hardening` is `off`"), level == "off", "{text}");
    }
    for (calls, mechanism) in MECHANISMS {
        for (level, severity) in [("required", "problem"), ("best-effort", "warning")] {
            let (succeeds, text) = check_without(calls, &at_level(Job::default(), level));
            assert_eq!(succeeds, severity == "warning", "{text}");
            assert!(text.contains(&format!("{severity}: hardening: this machine lacks {mechanism} (")), "{text}");
            assert!(text.contains("`required` would fail"), "{text}");
        }
    }
}

#[test]
fn an_unknown_hardening_level_is_a_config_error() {
    for value in [json!("on"), json!("Required"), json!(true), json!(["off"])] {
        let job = Job::default().configure(|config| config["hardening"] = value.clone());
        job.call("has_vm", json!(["vm-1"])).run().fails(CPI_ERROR, &["config: ", "`hardening` is invalid"]);
    }
}

#[test]
fn the_audit_log_reports_the_hardening_that_was_reached() {
    let server = Server::answering(Answer::ok(""));
    let ports = format!("landlock tcp ports [53, {}]", server.port());
    for (level, grants, expected) in [
        (
            "required",
            json!([server.grant("api")]),
            vec!["capability drop, no-new-privs, landlock fs (ABI ", &ports, "UDP is not restricted"],
        ),
        ("required", json!([]), vec!["landlock tcp ports [], seccomp; no sockets"]),
        ("off", json!([]), vec!["off"]),
    ] {
        let job = at_level(job(grants), level).configure(|config| config["audit"] = json!({"path": "../audit.log"}));
        job.call("has_vm", json!(["vm-1"])).run().result();
        let text = std::fs::read_to_string(job.path("audit.log")).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let line = lines.iter().find(|line| line["hardening"].is_string());
        let reported =
            line.unwrap_or_else(|| panic!("no line has `hardening`: {text}"))["hardening"].as_str().unwrap_or_default();
        assert!(expected.iter().all(|part| reported.contains(part)), "{expected:?} in: {reported}");
    }
}

#[test]
fn a_locked_down_call_can_use_the_certificates_of_its_grants() {
    let authority = Authority::new();
    let server = Server::tls(authority.issue(&["127.0.0.1"], Validity::Now).server(None), |_| Answer::ok("found"));
    let job = at_level(job(json!([with(server.grant("api"), json!({"tls": {"ca": "authority.pem"}}))])), "required");
    tests::job::write(&job.path("config/authority.pem"), authority.pem().as_bytes());
    let outcomes = job.probe(json!([get(&server.url("/"))]));
    assert_eq!(answered(&outcomes[0], 200)["body"], "found");
}
