//! What an operator hears of the walls: from `check`, from a call that demands
//! them where they cannot stand, and from the audit log.

use super::at_level;
use serde_json::{Value, json};
use std::process::Command;
use tests::cloud::{answered, get, job};
use tests::process::Finished;
use tests::servers::{Answer, Authority, Server, Validity, with};
use tests::{CPI_ERROR, Call, Job, dist, lacking, probe};

const WALLS: [(&[i64], &str); 2] = [(lacking::LANDLOCK, "landlock"), (lacking::SECCOMP, "seccomp")];

fn response(finished: &Finished) -> Value {
    let said = String::from_utf8_lossy(&finished.stderr);
    serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn without(calls: &[i64], call: &Call<'_>) -> Value {
    response(&lacking::run(calls, &mut call.command(), call.request().as_bytes()))
}

fn checked(calls: &[i64], job: &Job) -> (bool, String) {
    let mut command = Command::new(dist::tool());
    let finished = lacking::run(calls, command.arg("check").arg("--config").arg(job.config_file()), b"");
    (finished.status.success(), String::from_utf8_lossy(&finished.stdout).into_owned())
}

#[test]
fn a_call_that_demands_a_wall_which_cannot_stand_fails_before_the_guest_runs() {
    for (calls, wall) in WALLS {
        let server = Server::answering(Answer::ok(""));
        let job = at_level(job(json!([server.grant("api")])), "required");
        let response = without(calls, &job.script(json!([get(&server.url("/"))])));
        assert_eq!(response["error"]["type"], CPI_ERROR, "{response}");
        let message = response["error"]["message"].as_str().unwrap_or_default();
        for said in ["config: `hardening` is `required`", &format!("no {wall} ("), "run a kernel", "`best-effort`"] {
            assert!(message.contains(said), "no `{said}` in: {message}");
        }
        assert!(server.requests().is_empty());
        let goes_on = at_level(job, "best-effort");
        let response = without(calls, &goes_on.script(json!([get(&server.url("/"))])));
        answered(&probe::outcomes(&response["result"])[0], 200);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_guest_is_not_described_where_the_walls_that_are_demanded_cannot_stand() {
    for (calls, wall) in WALLS {
        let response = without(calls, &at_level(Job::new(), "required").call("info", json!([])));
        let message = response["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("`hardening` is `required`") && message.contains(&format!("no {wall} (")),
            "{message}"
        );
        assert!(without(calls, &at_level(Job::new(), "best-effort").call("info", json!([])))["error"].is_null());
    }
}

#[test]
fn check_says_what_this_machine_gives_and_whether_it_is_enough() {
    for level in super::LEVELS {
        let (good, text) = checked(&[], &at_level(Job::default(), level));
        assert!(good, "{text}");
        let line = format!("ok: hardening is `{level}`; this machine gives no-new-privs, landlock fs (ABI ");
        assert!(text.contains(&line) && text.contains("seccomp; UDP is never held; `required` would hold"), "{text}");
        assert_eq!(text.contains("warning: `hardening` is `off`"), level == "off", "{text}");
    }
    for (calls, wall) in WALLS {
        for (level, word) in [("required", "problem"), ("best-effort", "warning")] {
            let (good, text) = checked(calls, &at_level(Job::default(), level));
            assert_eq!(good, word == "warning", "{text}");
            assert!(text.contains(&format!("{word}: hardening: no {wall} (")), "{text}");
            assert!(text.contains("`required` would not hold"), "{text}");
        }
    }
}

#[test]
fn another_word_is_a_config_error() {
    for value in [json!("on"), json!("Required"), json!(true), json!(["off"])] {
        let job = Job::default().configure(|config| config["hardening"] = value.clone());
        job.call("has_vm", json!(["vm-1"])).run().fails(CPI_ERROR, &["config: ", "`hardening` is not right"]);
    }
}

#[test]
fn the_audit_log_says_what_was_achieved() {
    let server = Server::answering(Answer::ok(""));
    let ports = format!("landlock tcp ports [53, {}]", server.port());
    for (level, grants, expected) in [
        ("required", json!([server.grant("api")]), vec!["no-new-privs, landlock fs (ABI ", &ports, "UDP is not held"]),
        ("required", json!([]), vec!["landlock tcp ports [], seccomp; no sockets"]),
        ("off", json!([]), vec!["off"]),
    ] {
        let job = at_level(job(grants), level).configure(|config| config["audit"] = json!({"path": "../audit.log"}));
        job.call("has_vm", json!(["vm-1"])).run().result();
        let text = std::fs::read_to_string(job.path("audit.log")).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let line = lines.iter().find(|line| line["hardening"].is_string());
        let said = line.unwrap_or_else(|| panic!("no line about it: {text}"))["hardening"].as_str().unwrap_or_default();
        assert!(expected.iter().all(|part| said.contains(part)), "{expected:?} in: {said}");
    }
}

#[test]
fn a_locked_down_call_still_reads_the_certificates_of_its_grants() {
    let authority = Authority::new();
    let server = Server::tls(authority.issue(&["127.0.0.1"], Validity::Now).server(None), |_| Answer::ok("found"));
    let job = at_level(job(json!([with(server.grant("api"), json!({"tls": {"ca": "authority.pem"}}))])), "required");
    tests::job::write(&job.path("config/authority.pem"), authority.pem().as_bytes());
    let outcomes = job.probe(json!([get(&server.url("/"))]));
    assert_eq!(answered(&outcomes[0], 200)["body"], "found");
}
