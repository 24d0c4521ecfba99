//! A call while its guest runs, as the kernel shows it to others.

use crate::{Call, Job};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process that waits; ends with this.
pub struct Living(Child);

impl Living {
    /// A call whose guest sleeps by now.
    pub fn call(call: &Call<'_>) -> Living {
        let mut command = call.command();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut living = Living::start(&mut command);
        let fed = living.0.stdin.take().map(|mut stdin| stdin.write_all(call.request().as_bytes()));
        assert!(fed.is_some_and(|fed| fed.is_ok()), "the request was not taken");
        let stderr = living.0.stderr.take().map(BufReader::new);
        let waits =
            stderr.into_iter().flat_map(BufRead::lines).map_while(Result::ok).any(|line| line.contains("waiting"));
        assert!(waits, "the guest did not run");
        living
    }

    pub fn start(command: &mut Command) -> Living {
        Living(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.0.id().to_string()).join(name)
    }

    pub fn text(&self, name: &str) -> String {
        let path = self.proc(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What its descriptors are.
    pub fn open(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.proc("fd")).unwrap_or_else(|error| panic!("its descriptors: {error}"));
        entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
    }

    pub fn threads(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.proc("task")).unwrap_or_else(|error| panic!("its threads: {error}"));
        entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok()).collect()
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A call that gets no further than its guest.
pub fn waiting(job: &Job) -> Call<'_> {
    waiting_after(job, &[])
}

/// The same, after these operations.
pub fn waiting_after<'a>(job: &'a Job, operations: &[Value]) -> Call<'a> {
    let wait = [json!({"op": "log", "message": "waiting"}), json!({"op": "clock.sleep", "ms": 60_000})];
    job.script(operations.iter().cloned().chain(wait).collect())
}

/// Another process, to compare with.
pub fn sleeping() -> Command {
    let mut command = Command::new("sleep");
    command.arg("300");
    command
}

/// What a line of `/proc/PID/status` or `limits` says.
#[track_caller]
pub fn value(status: &str, key: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_else(|| panic!("no {key} in {status}")).split_whitespace().collect::<Vec<_>>().join(" ")
}
