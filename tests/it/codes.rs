//! The code of a refusal: operators see it, guests do not.

use serde_json::json;
use tests::audit::{audited, last_call, of_kind};
use tests::cloud::{call, job};
use tests::servers::{Answer, Server};
use tests::{CPI_ERROR, Job, probe};

#[test]
fn a_denial_shows_its_code_to_the_operator_and_not_to_the_guest() {
    let server = Server::answering(Answer::ok(""));
    let job = audited(job(json!([server.grant("api")])));
    let request = json!({"op": "http", "url": server.url("/x"), "headers": {"X-Forwarded-Host": "evil.test"}});
    let response = call(&job, &json!([request]));
    assert!(response.stderr.contains(" denied(header) [header-override] (api;"), "{}", response.stderr);
    assert_eq!(of_kind(&job, "denied")[0]["code"], "header-override");
    let outcome = &probe::outcomes_in(response.message())[0];
    assert_eq!(outcome["error"]["reason"], "header");
    assert!(!outcome.to_string().contains("header-override"), "{outcome}");
}

#[test]
fn a_refused_host_call_has_its_code_in_the_audit_log_only() {
    let job = audited(Job::default());
    let response = call(&job, &json!([{"op": "registry.get", "id": "vm-2"}]));
    let line = &of_kind(&job, "denied")[0];
    assert_eq!((&line["capability"], &line["code"]), (&json!("registry"), &json!("registry-ids")), "{line}");
    let outcome = &probe::outcomes_in(response.message())[0];
    assert!(!outcome.to_string().contains("registry-ids"), "{outcome}");
}

#[test]
fn a_failure_that_is_a_refusal_ends_with_its_code() {
    let job = audited(Job::default());
    let refused = job.call("has_vm", json!(["vm-1", "vm-2"])).run();
    refused.fails(CPI_ERROR, &["request: `has_vm` got 2 arguments"]);
    assert!(refused.message().ends_with(" [arity]"), "{}", refused.message());
    assert!(refused.stderr.contains(" [arity]\n"), "{}", refused.stderr);
    assert_eq!(last_call(&job)["code"], "arity");
    // What is missing is refused by no named check.
    job.call("has_vm", json!([])).run().fails(CPI_ERROR, &["is missing"]);
    assert!(last_call(&job)["code"].is_null());
}

#[test]
fn each_problem_of_a_file_has_its_code() {
    let job = Job::default().configure(|config| {
        config["polcy"] = json!("x");
        config["version"] = json!(2);
    });
    let (content, said) = job.check();
    assert!(!content && said.contains("[unknown-key]\n") && said.contains("[unknown-version]\n"), "{said}");
    let response = job.call("has_vm", json!(["vm-1"])).run();
    assert!(response.message().ends_with(" [unknown-version]"), "{}", response.message());
    assert!(response.log().contains(" [unknown-key]\n"), "{}", response.log());
}
