//! Every call has its line, however it ends.

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::audit::{about, audited, last_call, path, uses, whole_lines_of};
use tests::cloud::{call, with_policy};
use tests::job::write;
use tests::servers::{Answer, Server};
use tests::{CLOUD_ERROR, CPI_ERROR, Job, NOT_IMPLEMENTED, NOT_SUPPORTED, dist, process};

/// The last call failed like this, and no guest ran.
#[track_caller]
fn failed_early(job: &Job, error: &str, who: &str) {
    let end = last_call(job);
    assert_eq!((&end["outcome"], &end["error"], &end["who"]), (&json!("error"), &json!(error), &json!(who)), "{end}");
    assert_eq!(end.get("cpu_ms"), None, "{end}");
}

#[test]
fn calls_that_fail_before_a_guest_runs_have_a_line() {
    let job = audited(Job::default());
    for (stdin, method) in [("", None), ("[1", None), (r#"{"method": "info"}"#, None)] {
        job.raw(stdin).run().fails(CPI_ERROR, &[]);
        failed_early(&job, CPI_ERROR, "request");
        assert_eq!(last_call(&job).get("method").and_then(Value::as_str), method);
        assert_eq!(last_call(&job)["guest_sha256"], dist::probe_sha256());
    }
    job.call("has_vm", json!([])).run().fails(CPI_ERROR, &[]);
    failed_early(&job, CPI_ERROR, "request");
    job.call("ping\n\u{202e}", json!([])).run().fails(NOT_IMPLEMENTED, &[]);
    failed_early(&job, NOT_IMPLEMENTED, "request");
    assert_eq!(last_call(&job)["method"], "ping\\n\\u{202e}");
    assert_eq!(last_call(&job)["guest_sha256"], dist::probe_sha256());
    job.call("configure_networks", json!([])).run().fails(NOT_SUPPORTED, &[]);
    failed_early(&job, NOT_SUPPORTED, "request");
    job.call("create_stemcell", json!(["/nowhere", {}])).run().fails(CPI_ERROR, &[]);
    failed_early(&job, CPI_ERROR, "request");
    write(&job.policy_file(), b"{}");
    job.call("has_vm", json!(["vm-1"])).run().fails(CPI_ERROR, &["policy.json"]);
    failed_early(&job, CPI_ERROR, "config");
    let job = job.configure(|config| config["guest"]["sha256"] = json!("0".repeat(64)));
    job.call("has_vm", json!(["vm-1"])).run().fails(CPI_ERROR, &["`guest.sha256` pins"]);
    failed_early(&job, CPI_ERROR, "config");
    assert_eq!(last_call(&job)["guest_sha256"], "0".repeat(64));
}

#[test]
fn a_config_that_cannot_be_used_is_audited_where_it_says_where() {
    let job = audited(Job::default()).configure(|config| config["limits"] = json!({"memory_mib": "a lot"}));
    job.call("info", json!([])).run().fails(CPI_ERROR, &["`limits` is not right"]);
    failed_early(&job, CPI_ERROR, "config");
    let end = last_call(&job);
    assert_eq!((&end["method"], &end["guest_sha256"]), (&json!("info"), &json!(dist::probe_sha256())));
    // Not if the audit log itself is what is wrong, or the file is not to be trusted.
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
fn info_and_methods_that_the_guest_has_not_have_a_line() {
    let job = audited(Job::default());
    job.call("info", json!([])).run().result();
    let end = last_call(&job);
    assert_eq!((&end["outcome"], &end["method"], &end["guest_name"]), (&json!("ok"), &json!("info"), &json!("probe")));
    assert_eq!(end.get("cpu_ms"), None);
    // The CLI sends no request id.
    job.call("info", json!([])).cli().run().result();
    assert_eq!(last_call(&job).get("request_id"), None);
    let job = audited(Job::new().guest_bytes(&tests::hostile::guest("small")));
    job.call("delete_vm", json!(["vm-1"])).run().fails(NOT_IMPLEMENTED, &[]);
    failed_early(&job, NOT_IMPLEMENTED, "guest");
}

#[test]
fn every_end_of_a_guest_has_a_line_with_what_was_used() {
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
fn a_guests_own_error_is_a_line_on_stderr() {
    let response =
        call(&Job::default(), &json!([{"op": "error", "kind": "vm-not-found", "message": "vm-7 is gone\n"}]));
    let said = "wasm-cpi info: guest: Bosh::Clouds::VMNotFound: vm-7 is gone\\n\n";
    assert!(response.stderr.contains(said), "{}", response.stderr);
    assert_eq!(response.log(), "");
}

#[test]
fn a_call_that_a_signal_ended_has_a_line_and_so_has_what_was_on_its_way() {
    let server = Server::answering(Answer::stall(""));
    let limits = json!({"cleanup_seconds": 2});
    let job = audited(with_policy(json!({"http": [server.grant("api")]}))).limits(limits);
    // The trace says when the request is sent.
    let job = job.configure(|config| config["http_trace"] = json!("headers"));
    let post = json!({"op": "http", "method": "POST", "url": server.url("/vms")});
    let script = json!([post, {"op": "error", "kind": "cloud", "message": "cancelled"}]);
    let response = job.script(script).signal_at("> POST", Signal::TERM).run();
    response.fails(CLOUD_ERROR, &["SIGTERM ended the call", "POST", "/vms without an answer"]);
    let request = &about(&job, "http")[0];
    assert_eq!((&request["kind"], &request["error"]), (&json!("use"), &json!("cancelled")), "{request}");
    assert_eq!((&request["sent"], &request["target"]), (&json!(true), &json!(server.url("/vms"))), "{request}");
    let end = last_call(&job);
    assert_eq!((&end["outcome"], &end["who"]), (&json!("error"), &json!("runtime")), "{end}");
}

#[test]
fn a_kill_leaves_whole_lines_of_all_that_was_used() {
    let server = Server::answering(Answer::ok(""));
    let job = audited(with_policy(json!({"http": [server.grant("api")]})));
    let script = json!([
        {"op": "http", "url": server.url("/a"), "repeat": 20},
        uses("vm-1", 50),
        {"op": "log", "message": "waiting"},
        uses("vm-2", 90_000),
        {"op": "clock.sleep", "ms": 60_000},
    ]);
    let call = job.script(script).stemcell(2);
    let kill = process::SignalAt { text: "waiting".into(), signal: Signal::KILL };
    let finished =
        process::run_with_signals(&mut call.command(), call.request().as_bytes(), process::GUARD, vec![kill], None);
    assert!(!finished.status.success());
    let all = whole_lines_of(&path(&job));
    let used = |key: &str, value: &str| all.iter().filter(|line| line[key] == value).count();
    assert_eq!((used("capability", "http"), used("target", "vm-1"), used("kind", "use")), (20, 50, all.len()));
    // The next call goes on behind it.
    job.call("info", json!([])).run().result();
    let after = whole_lines_of(&path(&job));
    assert_eq!((after.len(), &after[all.len()]["method"]), (all.len() + 1, &json!("info")));
}

#[test]
fn check_knows_the_keys_and_warns_of_traces() {
    let job = audited(Job::default()).configure(|config| config["http_trace"] = json!("bodies"));
    let check = |job: &Job| {
        let mut command = std::process::Command::new(dist::tool());
        let finished = process::run(command.args(["check", "--config"]).arg(job.config_file()), b"", process::GUARD);
        String::from_utf8_lossy(&finished.stdout).into_owned()
    };
    let said = check(&job);
    assert!(said.contains("warning: `http_trace` writes URLs, headers and bodies of all requests to stderr"), "{said}");
    assert!(said.contains("\n0 problems"), "{said}");
    assert!(!path(&job).exists(), "checking is no call");
    for (place, said) in [("no/such/audit.log", "cannot be made (No such file"), ("/dev/null", "is not a regular file")]
    {
        let job = Job::default().configure(|config| config["audit"] = json!({"path": place}));
        let checked = check(&job);
        assert!(checked.contains("warning: audit: ") && checked.contains(said), "{checked}");
    }
    let job = job.configure(|config| {
        config["audit"] = json!({"path": "audit.log", "max_bytes": 100, "max": 1});
        config["http_trace"] = json!("all");
    });
    let said = check(&job);
    assert!(said.contains("`audit` is not right: unknown field `max`"), "{said}");
    assert!(said.contains("`http_trace` is not right: unknown variant"), "{said}");
    let said = check(&job.configure(|config| {
        config["audit"] = json!({"path": "audit.log", "max_bytes": 100});
        config["http_trace"] = json!(null);
    }));
    assert!(said.contains("`audit.max_bytes` is 100; it must be from 65536 to"), "{said}");
}
