//! Native code in the process of a call, as after an escape from the engine. A hook in
//! the programs for mutation tests runs it where the guest would start. With hardening
//! off every action succeeds, which shows that the tests can fail.

use super::{LEVELS, at_level};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Child, Command};
use tests::cloud::job;
use tests::old_kernel;
use tests::process::{self, Finished, GUARD};
use tests::servers::{Answer, Server};
use tests::users::is_root;
use tests::{Call, Job, dist};

/// Runs a call with these actions and returns the outcome of each. The call itself must
/// succeed.
fn attempt(call: &Call<'_>, actions: &[String], run: impl FnOnce(&mut Command, &[u8]) -> Finished) -> Vec<String> {
    let finished = run(call.command().env("WASM_CPI_HOOK", actions.join(";")), call.request().as_bytes());
    let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
    let response: Value = serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert!(response["error"].is_null(), "{response}\n{stderr}");
    actions.iter().map(|action| outcome(&stderr, action)).collect()
}

#[track_caller]
fn outcome(stderr: &str, action: &str) -> String {
    let start = format!("hook: {action}: ");
    let outcome = stderr.lines().find_map(|line| line.strip_prefix(&start));
    outcome.unwrap_or_else(|| panic!("{action} has no outcome: {stderr}")).to_owned()
}

fn run_plain(command: &mut Command, stdin: &[u8]) -> Finished {
    process::run(command, stdin, GUARD)
}

/// A process that the actions try to signal and trace.
struct Victim(Child);

impl Victim {
    fn start() -> Victim {
        let started = Command::new("sleep").arg("300").spawn();
        Victim(started.unwrap_or_else(|error| panic!("sleep: {error}")))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that no grant names.
fn other_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no listener: {error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
    (listener, address.to_string())
}

fn probe_call(job: &Job) -> Call<'_> {
    job.script(json!([{"op": "log", "message": "the guest ran"}]))
}

#[test]
fn lock_down_refuses_files_programs_executable_memory_and_other_ports() {
    let server = Server::answering(Answer::ok(""));
    let (_listener, other) = other_server();
    let victim = Victim::start();
    let root = is_root("tracing another process, and raw sockets");
    for level in LEVELS {
        let job = at_level(job(json!([server.grant("api")])).with_mutants(), level);
        tests::job::write(&job.path("old"), b"");
        let (old, new, dir) = (job.path("old"), job.path("new"), job.path("dir"));
        let refused = [
            ("open:/etc/passwd".to_owned(), "EPERM"),
            ("open:/etc/resolv.conf".to_owned(), "EPERM"),
            ("open:/proc/self/mem".to_owned(), "EPERM"),
            (format!("open:{}", job.config_file().display()), "EPERM"),
            (format!("write:{}", new.display()), "EPERM"),
            (format!("mkdir:{}", dir.display()), "EPERM"),
            (format!("unlink:{}", old.display()), "EPERM"),
            ("stat:/etc/passwd".to_owned(), "EPERM"),
            ("list:/".to_owned(), "EPERM"),
            ("spawn:/bin/true".to_owned(), "EPERM"),
            ("code".to_owned(), "EPERM"),
            (format!("connect:{other}"), "EACCES"),
            ("listen:127.0.0.1:0".to_owned(), "EPERM"),
            ("unix".to_owned(), "EPERM"),
            (format!("signal:{}", victim.0.id()), "EPERM"),
            ("setuid".to_owned(), "EPERM"),
            ("limit".to_owned(), "EPERM"),
        ];
        // Some kernels do not have these, or allow them to root only.
        let privileged = [
            (format!("mptcp:{other}"), "EPERM"),
            (format!("fastopen:{other}"), "EPERM"),
            ("raw".to_owned(), "EPERM"),
            (format!("trace:{}", victim.0.id()), "EPERM"),
        ];
        let granted = format!("connect:127.0.0.1:{}", server.port());
        // Landlock and seccomp cannot distinguish these from what a DNS query needs.
        let allowed = [granted, format!("udp:{other}"), "thread".to_owned()];
        let expected: Vec<(&str, &str)> =
            refused.iter().chain(&privileged).map(|(action, why)| (&**action, *why)).collect();
        let actions: Vec<String> =
            expected.iter().map(|(action, _)| (*action).to_owned()).chain(allowed.clone()).collect();
        let outcomes = attempt(&probe_call(&job), &actions, run_plain);
        for (index, (action, outcome)) in actions.iter().zip(&outcomes).enumerate() {
            match (level, expected.get(index)) {
                (_, None) => assert_eq!(outcome, "allowed", "{level}: {action}"),
                ("off", Some(_)) if index < refused.len() => assert_eq!(outcome, "allowed", "{level}: {action}"),
                ("off", Some(_)) => assert!(!root || outcome != "EPERM", "{level}: {action}"),
                (_, Some((_, why))) => assert_eq!(outcome, why, "{level}: {action}"),
            }
        }
        let changed = [new.exists(), dir.exists(), !old.exists()];
        assert_eq!(changed, [level == "off"; 3], "{level}");
    }
}

#[test]
fn a_call_without_grants_cannot_open_sockets() {
    let (_listener, other) = other_server();
    for level in LEVELS {
        let job = at_level(Job::default().with_mutants(), level);
        let actions = [format!("connect:{other}"), format!("udp:{other}"), "thread".to_owned()];
        let expected = if level == "off" { "allowed" } else { "EPERM" };
        assert_eq!(attempt(&probe_call(&job), &actions, run_plain), [expected, expected, "allowed"], "{level}");
    }
}

#[test]
fn lock_down_refuses_exec() {
    for level in LEVELS {
        let job = at_level(Job::default().with_mutants(), level);
        let call = probe_call(&job);
        let finished = run_plain(call.command().env("WASM_CPI_HOOK", "exec"), call.request().as_bytes());
        let stderr = String::from_utf8_lossy(&finished.stderr);
        let expected = if level == "off" { "allowed" } else { "EPERM" };
        assert_eq!(outcome(&stderr, "exec"), expected, "{level}");
        // The other program does not write a response for the Director.
        assert_eq!(finished.stdout.is_empty(), level == "off", "{level}");
    }
}

#[test]
fn lock_down_of_describe_refuses_files_programs_and_sockets() {
    let (_listener, other) = other_server();
    for level in LEVELS {
        let job = at_level(Job::new().with_mutants(), level);
        let actions = ["open:/etc/passwd", "stat:/etc/passwd", "spawn:/bin/true", "code", "unix"].map(str::to_owned);
        let sockets = [format!("connect:{other}"), format!("udp:{other}")];
        let actions: Vec<String> = actions.iter().chain(&sockets).map(|action| format!("child:{action}")).collect();
        let expected = if level == "off" { "allowed" } else { "EPERM" };
        assert_eq!(
            attempt(&job.call("info", json!([])), &actions, run_plain),
            vec![expected; actions.len()],
            "{level}"
        );
    }
}

#[test]
fn landlock_and_seccomp_each_work_without_the_other() {
    let server = Server::answering(Answer::ok(""));
    let (_listener, other) = other_server();
    let job = job(json!([server.grant("api")])).with_mutants();
    let actions = ["open:/etc/passwd", "write:/tmp/never", "spawn:/bin/true", "unix"].map(str::to_owned);
    let sockets =
        [format!("connect:{other}"), "listen:127.0.0.1:0".into(), format!("connect:127.0.0.1:{}", server.port())];
    let actions: Vec<String> = actions.into_iter().chain(sockets).collect();
    for (missing, expected) in [
        (old_kernel::SECCOMP, ["EACCES", "EACCES", "EACCES", "allowed", "EACCES", "EACCES", "allowed"]),
        // Only Landlock restricts ports.
        (old_kernel::LANDLOCK, ["EPERM", "EPERM", "EPERM", "EPERM", "allowed", "EPERM", "allowed"]),
    ] {
        let run = |command: &mut Command, stdin: &[u8]| old_kernel::run(missing, command, stdin);
        assert_eq!(attempt(&probe_call(&job), &actions, run), expected);
    }
}

#[test]
fn shipped_programs_have_no_hook() {
    for program in [dist::hot(), dist::tool()] {
        let bytes = std::fs::read(&program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        assert!(!process::contains(&bytes, b"WASM_CPI_HOOK"), "{}", program.display());
    }
    let job = at_level(Job::default(), "off");
    let call = probe_call(&job);
    let finished = run_plain(call.command().env("WASM_CPI_HOOK", "open:/etc/passwd"), call.request().as_bytes());
    assert!(!String::from_utf8_lossy(&finished.stderr).contains("hook"));
}

#[test]
fn a_call_has_one_thread_when_it_is_locked_down() {
    // Landlock would not restrict a thread that already runs.
    for job in [Job::default(), Job::new()] {
        let job = at_level(job.with_mutants(), "off");
        assert_eq!(attempt(&probe_call(&job), &["alone".to_owned()], run_plain), ["allowed"]);
    }
}
