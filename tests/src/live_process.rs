//! A running process, observed through `/proc`.

use crate::{Call, Job};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running process; dropping this kills it.
pub struct LiveProcess(Child);

impl LiveProcess {
    /// Starts a call of `waiting` or `waiting_after` and returns once its guest sleeps.
    pub fn call(call: &Call<'_>) -> LiveProcess {
        let mut command = call.command();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = LiveProcess::start(&mut command);
        let written = process.0.stdin.take().map(|mut stdin| stdin.write_all(call.request().as_bytes()));
        assert!(written.is_some_and(|written| written.is_ok()), "the request was not read");
        let stderr = process.0.stderr.take().map(BufReader::new);
        let waits =
            stderr.into_iter().flat_map(BufRead::lines).map_while(Result::ok).any(|line| line.contains("waiting"));
        assert!(waits, "the guest did not run");
        process
    }

    pub fn start(command: &mut Command) -> LiveProcess {
        LiveProcess(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Returns the path `/proc/PID/NAME`.
    pub fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.0.id().to_string()).join(name)
    }

    pub fn text(&self, name: &str) -> String {
        let path = self.proc(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the targets of its open file descriptors.
    pub fn open(&self) -> Vec<PathBuf> {
        let entries =
            std::fs::read_dir(self.proc("fd")).unwrap_or_else(|error| panic!("cannot list the descriptors: {error}"));
        entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
    }

    /// Returns `/proc/PID/task/*/status` of each thread.
    pub fn threads(&self) -> Vec<String> {
        let entries =
            std::fs::read_dir(self.proc("task")).unwrap_or_else(|error| panic!("cannot list the threads: {error}"));
        entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok()).collect()
    }
}

impl Drop for LiveProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a call whose guest sleeps for a minute.
pub fn waiting(job: &Job) -> Call<'_> {
    waiting_after(job, &[])
}

/// Returns a call whose guest runs these operations and then sleeps for a minute.
pub fn waiting_after<'a>(job: &'a Job, operations: &[Value]) -> Call<'a> {
    let wait = [json!({"op": "log", "message": "waiting"}), json!({"op": "clock.sleep", "ms": 60_000})];
    job.script(operations.iter().cloned().chain(wait).collect())
}

/// Returns a command that sleeps: a process without the runtime, for comparison.
pub fn sleeping() -> Command {
    let mut command = Command::new("sleep");
    command.arg("300");
    command
}

/// Returns the value of one line of `/proc/PID/status` or `/proc/PID/limits`.
#[track_caller]
pub fn value(status: &str, key: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_else(|| panic!("`{key}` is missing in: {status}")).split_whitespace().collect::<Vec<_>>().join(" ")
}
