//! Native code where the guest's would begin: an escape from the engine, played
//! by a hook of the programs with holes. With hardening off all of it works,
//! which shows that the tests can fail.

use super::{LEVELS, at_level};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Child, Command};
use tests::cloud::job;
use tests::lacking;
use tests::process::{self, Finished, GUARD};
use tests::servers::{Answer, Server};
use tests::users::is_root;
use tests::{Call, Job, dist};

/// A call with these actions, and what became of each. The call itself must have
/// been answered.
fn attempted(call: &Call<'_>, actions: &[String], run: impl FnOnce(&mut Command, &[u8]) -> Finished) -> Vec<String> {
    let finished = run(call.command().env("WASM_CPI_HOOK", actions.join(";")), call.request().as_bytes());
    let said = String::from_utf8_lossy(&finished.stderr).into_owned();
    let response: Value = serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(response["error"].is_null(), "{response}\n{said}");
    actions.iter().map(|action| outcome(&said, action)).collect()
}

#[track_caller]
fn outcome(said: &str, action: &str) -> String {
    let start = format!("hook: {action}: ");
    let outcome = said.lines().find_map(|line| line.strip_prefix(&start));
    outcome.unwrap_or_else(|| panic!("nothing became of {action}: {said}")).to_owned()
}

fn plainly(command: &mut Command, stdin: &[u8]) -> Finished {
    process::run(command, stdin, GUARD)
}

/// A process to be signalled and traced.
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

/// Where nothing but the policy keeps a call from connecting.
fn other_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no listener: {error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
    (listener, address.to_string())
}

fn probing(job: &Job) -> Call<'_> {
    job.script(json!([{"op": "log", "message": "the guest ran"}]))
}

#[test]
fn native_code_in_a_call_gets_no_file_no_program_no_code_and_no_other_port() {
    let server = Server::answering(Answer::ok(""));
    let (_listener, other) = other_server();
    let victim = Victim::start();
    let root = is_root("tracing another process, and raw sockets");
    for level in LEVELS {
        let job = at_level(job(json!([server.grant("api")])).with_holes(), level);
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
        // Not every kernel knows them, nor lets everybody do them.
        let perhaps = [
            (format!("mptcp:{other}"), "EPERM"),
            (format!("fastopen:{other}"), "EPERM"),
            ("raw".to_owned(), "EPERM"),
            (format!("trace:{}", victim.0.id()), "EPERM"),
        ];
        let granted = format!("connect:127.0.0.1:{}", server.port());
        // What Landlock and seccomp cannot tell from a question to a name server.
        let allowed = [granted, format!("udp:{other}"), "thread".to_owned()];
        let expected: Vec<(&str, &str)> =
            refused.iter().chain(&perhaps).map(|(action, why)| (&**action, *why)).collect();
        let actions: Vec<String> =
            expected.iter().map(|(action, _)| (*action).to_owned()).chain(allowed.clone()).collect();
        let outcomes = attempted(&probing(&job), &actions, plainly);
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
fn a_call_without_a_grant_has_no_sockets() {
    let (_listener, other) = other_server();
    for level in LEVELS {
        let job = at_level(Job::default().with_holes(), level);
        let actions = [format!("connect:{other}"), format!("udp:{other}"), "thread".to_owned()];
        let expected = if level == "off" { "allowed" } else { "EPERM" };
        assert_eq!(attempted(&probing(&job), &actions, plainly), [expected, expected, "allowed"], "{level}");
    }
}

#[test]
fn a_call_becomes_no_other_program() {
    for level in LEVELS {
        let job = at_level(Job::default().with_holes(), level);
        let call = probing(&job);
        let finished = plainly(call.command().env("WASM_CPI_HOOK", "exec"), call.request().as_bytes());
        let said = String::from_utf8_lossy(&finished.stderr);
        let expected = if level == "off" { "allowed" } else { "EPERM" };
        assert_eq!(outcome(&said, "exec"), expected, "{level}");
        // The other program has no answer for the Director.
        assert_eq!(finished.stdout.is_empty(), level == "off", "{level}");
    }
}

#[test]
fn native_code_in_a_guests_describe_gets_nothing() {
    let (_listener, other) = other_server();
    for level in LEVELS {
        let job = at_level(Job::new().with_holes(), level);
        let actions = ["open:/etc/passwd", "stat:/etc/passwd", "spawn:/bin/true", "code", "unix"].map(str::to_owned);
        let sockets = [format!("connect:{other}"), format!("udp:{other}")];
        let actions: Vec<String> = actions.iter().chain(&sockets).map(|action| format!("child:{action}")).collect();
        let expected = if level == "off" { "allowed" } else { "EPERM" };
        assert_eq!(
            attempted(&job.call("info", json!([])), &actions, plainly),
            vec![expected; actions.len()],
            "{level}"
        );
    }
}

#[test]
fn each_wall_stands_without_the_other() {
    let server = Server::answering(Answer::ok(""));
    let (_listener, other) = other_server();
    let job = job(json!([server.grant("api")])).with_holes();
    let actions = ["open:/etc/passwd", "write:/tmp/never", "spawn:/bin/true", "unix"].map(str::to_owned);
    let sockets =
        [format!("connect:{other}"), "listen:127.0.0.1:0".into(), format!("connect:127.0.0.1:{}", server.port())];
    let actions: Vec<String> = actions.into_iter().chain(sockets).collect();
    for (lacking, expected) in [
        (lacking::SECCOMP, ["EACCES", "EACCES", "EACCES", "allowed", "EACCES", "EACCES", "allowed"]),
        // Ports are Landlock's alone.
        (lacking::LANDLOCK, ["EPERM", "EPERM", "EPERM", "EPERM", "allowed", "EPERM", "allowed"]),
    ] {
        let run = |command: &mut Command, stdin: &[u8]| lacking::run(lacking, command, stdin);
        assert_eq!(attempted(&probing(&job), &actions, run), expected);
    }
}

#[test]
fn the_programs_that_ship_have_no_hook() {
    for program in [dist::hot(), dist::tool()] {
        let bytes = std::fs::read(&program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        assert!(!process::contains(&bytes, b"WASM_CPI_HOOK"), "{}", program.display());
    }
    let job = at_level(Job::default(), "off");
    let call = probing(&job);
    let finished = plainly(call.command().env("WASM_CPI_HOOK", "open:/etc/passwd"), call.request().as_bytes());
    assert!(!String::from_utf8_lossy(&finished.stderr).contains("hook"));
}

#[test]
fn no_other_thread_runs_when_a_call_is_locked_down() {
    // Landlock would not hold for it.
    for job in [Job::default(), Job::new()] {
        let job = at_level(job.with_holes(), "off");
        assert_eq!(attempted(&probing(&job), &["alone".to_owned()], plainly), ["allowed"]);
    }
}
