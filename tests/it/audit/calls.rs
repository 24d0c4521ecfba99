//! Every call has a line in the audit log, however it ends.

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::audit::{about, audited, last_call, path, uses, whole_lines_of};
use tests::cloud::{call, with_policy};
use tests::job::write;
use tests::servers::{Answer, Server};
use tests::{CLOUD_ERROR, CPI_ERROR, Job, NOT_IMPLEMENTED, NOT_SUPPORTED, dist, process};

/// Checks that the last call failed with this error before a guest ran.
#[track_caller]
fn check_failed_early(job: &Job, error: &str, who: &str) {
    let end = last_call(job);
    assert_eq!((&end["outcome"], &end["error"], &end["who"]), (&json!("error"), &json!(error), &json!(who)), "{end}");
    assert_eq!(end.get("cpu_ms"), None, "{end}");
}

#[test]
fn calls_that_fail_before_the_guest_runs_are_audited() {
    let job = audited(Job::default());
    for (stdin, method) in [("", None), ("[1", None), (r#"{"method": "info"}"#, None)] {
        job.raw(stdin).run().fails(CPI_ERROR, &[]);
        check_failed_early(&job, CPI_ERROR, "request");
        assert_eq!(last_call(&job).get("method").and_then(Value::as_str), method);
        assert_eq!(last_call(&job)["guest_sha256"], dist::probe_sha256());
    }
    job.call("has_vm", json!([])).run().fails(CPI_ERROR, &[]);
    check_failed_early(&job, CPI_ERROR, "request");
    job.call("ping\n\u{202e}", json!([])).run().fails(NOT_IMPLEMENTED, &[]);
    check_failed_early(&job, NOT_IMPLEMENTED, "request");
    assert_eq!(last_call(&job)["method"], "ping\\n\\u{202e}");
    assert_eq!(last_call(&job)["guest_sha256"], dist::probe_sha256());
    job.call("configure_networks", json!([])).run().fails(NOT_SUPPORTED, &[]);
    check_failed_early(&job, NOT_SUPPORTED, "request");
    job.call("create_stemcell", json!(["/nowhere", {}])).run().fails(CPI_ERROR, &[]);
    check_failed_early(&job, CPI_ERROR, "request");
    write(&job.policy_file(), b"{}");
    job.call("has_vm", json!(["vm-1"])).run().fails(CPI_ERROR, &["policy.json"]);
    check_failed_early(&job, CPI_ERROR, "config");
    let job = job.configure(|config| config["guest"]["sha256"] = json!("0".repeat(64)));
    job.call("has_vm", json!(["vm-1"])).run().fails(CPI_ERROR, &["`guest.sha256` pins"]);
    check_failed_early(&job, CPI_ERROR, "config");
    assert_eq!(last_call(&job)["guest_sha256"], "0".repeat(64));
}

#[test]
fn a_call_with_an_invalid_config_is_audited_if_the_audit_section_is_valid() {
    let job = audited(Job::default()).configure(|config| config["limits"] = json!({"memory_mib": "a lot"}));
    job.call("info", json!([])).run().fails(CPI_ERROR, &["`limits` is invalid"]);
    check_failed_early(&job, CPI_ERROR, "config");
    let end = last_call(&job);
    assert_eq!((&end["method"], &end["guest_sha256"]), (&json!("info"), &json!(dist::probe_sha256())));
    // Nothing is written if the audit section itself is invalid, or if the config is writable by others.
    for section in [json!({"path": ""}), json!({"path": "../audit.log", "max_bytes": 1}), json!("../audit.log")] {
        let job = job_with(section);
        job.call("info", json!([])).run().fails(CPI_ERROR, &["`audit"]);
        assert!(!path(&job).exists());
    }
    let job = audited(Job::default());
    tests::job::set_mode(&job.config_file(), 0o666);
    job.call("info", json!([])).run().fails(CPI_ERROR, &["is writable by group or others"]);
    assert!(!path(&job).exists());
}

fn job_with(section: Value) -> Job {
    Job::default().configure(|config| config["audit"] = section)
}

#[test]
fn info_and_methods_that_the_guest_does_not_implement_are_audited() {
    let job = audited(Job::default());
    job.call("info", json!([])).run().result();
    let end = last_call(&job);
    assert_eq!((&end["outcome"], &end["method"], &end["guest_name"]), (&json!("ok"), &json!("info"), &json!("probe")));
    assert_eq!(end.get("cpu_ms"), None);
    // The CLI sends no request ID.
    job.call("info", json!([])).cli().run().result();
    assert_eq!(last_call(&job).get("request_id"), None);
    let job = audited(Job::new().guest_bytes(&tests::hostile::guest("small")));
    job.call("delete_vm", json!(["vm-1"])).run().fails(NOT_IMPLEMENTED, &[]);
    check_failed_early(&job, NOT_IMPLEMENTED, "guest");
}

#[test]
fn the_call_line_reports_the_resources_used_however_the_guest_ends() {
    for (script, limits, error, who) in [
        (
            json!([{"op": "error", "kind": "vm-not-found", "message": "gone"}]),
            json!({}),
            "Bosh::Clouds::VMNotFound",
            "guest",
        ),
        (json!([{"op": "trap"}]), json!({}), CLOUD_ERROR, "guest"),
        (json!([{"op": "panic", "message": "p"}]), json!({}), CLOUD_ERROR, "guest"),
        (json!([{"op": "exit", "code": 0}]), json!({}), CLOUD_ERROR, "guest"),
        (json!([{"op": "grow", "mib": 500}]), json!({"memory_mib": 64}), CLOUD_ERROR, "limit"),
        (json!([{"op": "loop"}]), json!({"wall_seconds": 1, "cleanup_seconds": 1}), CLOUD_ERROR, "limit"),
    ] {
        let job = audited(Job::default()).limits(limits);
        call(&job, &script).fails(error, &[]);
        let end = last_call(&job);
        assert_eq!((&end["error"], &end["who"]), (&json!(error), &json!(who)), "{script}: {end}");
        for used in ["wall_ms", "cpu_ms", "memory_bytes", "host_calls", "requests", "sent_bytes", "received_bytes"] {
            assert!(end[used].is_u64(), "{used}: {end}");
        }
    }
}

#[test]
fn an_error_of_the_guest_is_logged_on_stderr() {
    let response =
        call(&Job::default(), &json!([{"op": "error", "kind": "vm-not-found", "message": "vm-7 is gone\n"}]));
    let expected = "wasm-cpi info: guest: Bosh::Clouds::VMNotFound: vm-7 is gone\\n\n";
    assert!(response.stderr.contains(expected), "{}", response.stderr);
    assert_eq!(response.log(), "");
}

#[test]
fn a_call_that_a_signal_ends_is_audited_together_with_its_pending_request() {
    let server = Server::answering(Answer::stall(""));
    let limits = json!({"cleanup_seconds": 2});
    let job = audited(with_policy(json!({"http": [server.grant("api")]}))).limits(limits);
    // The trace shows when the request is sent.
    let job = job.configure(|config| config["http_trace"] = json!("headers"));
    let post = json!({"op": "http", "method": "POST", "url": server.url("/vms")});
    let script = json!([post, {"op": "error", "kind": "cloud", "message": "cancelled"}]);
    let response = job.script(script).signal_at("> POST", Signal::TERM).run();
    response.fails(CLOUD_ERROR, &["SIGTERM ended the call", "POST", "/vms without a response"]);
    let request = &about(&job, "http")[0];
    assert_eq!((&request["kind"], &request["error"]), (&json!("use"), &json!("cancelled")), "{request}");
    assert_eq!((&request["sent"], &request["target"]), (&json!(true), &json!(server.url("/vms"))), "{request}");
    let end = last_call(&job);
    assert_eq!((&end["outcome"], &end["who"]), (&json!("error"), &json!("runtime")), "{end}");
}

#[test]
fn a_killed_call_leaves_complete_lines_for_everything_it_used() {
    let server = Server::answering(Answer::ok(""));
    let job = audited(with_policy(json!({"http": [server.grant("api")]})));
    let script = json!([
        {"op": "http", "url": server.url("/a"), "repeat": 20},
        uses("vm-1", 50),
        {"op": "log", "message": "waiting"},
        uses("vm-2", 90_000),
        {"op": "clock.sleep", "ms": 60_000},
    ]);
    let call = job.script(script).stemcell_api_version(2);
    let kill = process::SignalAt { text: "waiting".into(), signal: Signal::KILL };
    let finished =
        process::run_with_signals(&mut call.command(), call.request().as_bytes(), process::GUARD, vec![kill], None);
    assert!(!finished.status.success());
    let all = whole_lines_of(&path(&job));
    let used = |key: &str, value: &str| all.iter().filter(|line| line[key] == value).count();
    assert_eq!((used("capability", "http"), used("target", "vm-1"), used("kind", "use")), (20, 50, all.len()));
    // The next call appends its line.
    job.call("info", json!([])).run().result();
    let after = whole_lines_of(&path(&job));
    assert_eq!((after.len(), &after[all.len()]["method"]), (all.len() + 1, &json!("info")));
}

#[test]
fn check_validates_the_audit_keys_and_warns_about_http_trace() {
    let job = audited(Job::default()).configure(|config| config["http_trace"] = json!("bodies"));
    let check = |job: &Job| {
        let mut command = std::process::Command::new(dist::tool());
        let finished = process::run(command.args(["check", "--config"]).arg(job.config_file()), b"", process::GUARD);
        String::from_utf8_lossy(&finished.stdout).into_owned()
    };
    let output = check(&job);
    let warning = "warning: `http_trace` writes URLs, headers and bodies of all requests to stderr";
    assert!(output.contains(warning), "{output}");
    assert!(output.contains("\n0 problems"), "{output}");
    assert!(!path(&job).exists(), "`check` must not write to the audit log");
    for (place, expected) in
        [("no/such/audit.log", "cannot be created (No such file"), ("/dev/null", "is not a regular file")]
    {
        let job = Job::default().configure(|config| config["audit"] = json!({"path": place}));
        let output = check(&job);
        assert!(output.contains("warning: audit: ") && output.contains(expected), "{output}");
    }
    let job = job.configure(|config| {
        config["audit"] = json!({"path": "audit.log", "max_bytes": 100, "max": 1});
        config["http_trace"] = json!("all");
    });
    let output = check(&job);
    assert!(output.contains("`audit` is invalid: unknown field `max`"), "{output}");
    assert!(output.contains("`http_trace` is invalid: unknown variant"), "{output}");
    let output = check(&job.configure(|config| {
        config["audit"] = json!({"path": "audit.log", "max_bytes": 100});
        config["http_trace"] = json!(null);
    }));
    assert!(output.contains("`audit.max_bytes` is 100; it must be from 65536 to"), "{output}");
}
