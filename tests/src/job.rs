//! A CPI job in a temporary directory: `config/cpi.json`, `config/policy.json`
//! and a cache. Every change is written immediately, so that a test can tamper with
//! the files between a change and a call.

use crate::call::Call;
use crate::codes;
use crate::dist;
use crate::probe;
use crate::release::{self, Installation};
use crate::response::CANARY;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub struct Job {
    dir: TempDir,
    config: Value,
    policy: Value,
    program: PathBuf,
}

impl Default for Job {
    fn default() -> Self {
        Job::new().shared_cache()
    }
}

impl Job {
    /// Returns a job that runs the probe with an empty cache of its own.
    /// `Job::default()` uses the shared cache, in which the probe is prepared.
    pub fn new() -> Job {
        let dir = tempfile::Builder::new().prefix("wasm-cpi-job-").tempdir();
        let dir = dir.unwrap_or_else(|error| panic!("no temporary directory: {error}"));
        make_dir(&dir.path().join("config"));
        let config = json!({
            "version": 1,
            "guest": {"path": dist::probe(), "sha256": dist::probe_sha256()},
            "properties": {"region": "here", "password": format!("{CANARY}-property")},
            "agent": {"mbus": format!("nats://nats:{CANARY}-mbus@10.0.0.6:4222"), "ntp": ["10.0.0.7"]},
            "cache": "../cache",
        });
        let policy = json!({"version": 1, "http": []});
        let job = Job { dir, config, policy, program: dist::hot() };
        job.save();
        job
    }

    /// Uses the shared cache, for calls that do not change the cache.
    #[must_use]
    pub fn shared_cache(self) -> Job {
        self.cache(dist::shared_cache())
    }

    /// Uses a cache of its own, in which the probe is prepared as in the shared one.
    #[must_use]
    pub fn own_cache(self) -> Job {
        make_dir(&self.cache_dir());
        copy_prepared(&self.cache_dir());
        self.configure(|config| config["cache"] = json!("../cache"))
    }

    #[must_use]
    pub fn cache(self, dir: &Path) -> Job {
        self.configure(|config| config["cache"] = json!(dir))
    }

    #[must_use]
    pub fn limits(self, limits: Value) -> Job {
        self.configure(|config| config["limits"] = limits)
    }

    #[must_use]
    pub fn properties(self, properties: Value) -> Job {
        self.configure(|config| config["properties"] = properties)
    }

    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut Value)) -> Job {
        change(&mut self.config);
        self.save();
        self
    }

    #[must_use]
    pub fn policy(mut self, policy: Value) -> Job {
        self.policy = policy;
        self.save();
        self
    }

    /// Returns the release's job, rendered with these properties and installed in its
    /// own directory.
    #[track_caller]
    pub fn installed(properties: &Value) -> Job {
        let mut job = Job::new();
        let installed = Installation::new(job.dir.path()).job(&release::job_source("wasm_cpi"), properties);
        installed.unwrap_or_else(|error| panic!("{error}"));
        job.program = job.path("jobs/wasm_cpi/bin/cpi");
        job
    }

    /// Installs the same job as the release renders it, from a manifest equivalent to
    /// the job's files.
    #[must_use]
    #[track_caller]
    pub fn installed_from_release(mut self) -> Job {
        let guest = json!({"package": "guest", "file": "guest.wasm", "sha256": self.config["guest"]["sha256"]});
        let properties = release::manifest(&self.config, &self.policy, &guest);
        let installation = Installation::new(self.dir.path());
        let file = PathBuf::from(self.config["guest"]["path"].as_str().unwrap_or_default());
        installation.package("guest", &[("guest.wasm", &file)]);
        let installed = installation.job(&release::job_source("wasm_cpi"), &properties);
        installed.unwrap_or_else(|error| panic!("{error}"));
        self.program = self.path("jobs/wasm_cpi/bin/cpi");
        self
    }

    /// Runs calls with another program of an installed job, such as the script of another job.
    #[must_use]
    pub fn with_program(mut self, path: &str) -> Job {
        self.program = self.path(path);
        self
    }

    /// Sets limits in the config of an installed job.
    #[must_use]
    pub fn installed_limits(self, limits: Value) -> Job {
        self.write_config(&self.config_file(), limits);
        self
    }

    /// Writes the config with these limits to a file.
    pub fn write_config(&self, to: &Path, limits: Value) {
        let text = fs::read(self.config_file()).unwrap_or_else(|error| panic!("{error}"));
        let mut config: Value = serde_json::from_slice(&text).unwrap_or_default();
        config["limits"] = limits;
        write(to, config.to_string().as_bytes());
    }

    /// Returns true if calls run an installed script, which takes no arguments.
    pub fn is_installed(&self) -> bool {
        self.program.starts_with(self.path("jobs")) || self.program.starts_with(self.path("data"))
    }

    /// Uses another guest, pinned to its current digest.
    #[must_use]
    pub fn guest(self, path: &Path) -> Job {
        let sha256 = dist::sha256_of(path);
        self.configure(|config| config["guest"] = json!({"path": path, "sha256": sha256}))
    }

    /// Writes another guest into the job's directory and uses it.
    #[must_use]
    pub fn guest_bytes(self, bytes: &[u8]) -> Job {
        let path = self.path("guest.wasm");
        write(&path, bytes);
        self.guest(&path)
    }

    /// Runs calls with a copy of both programs in the job's directory.
    #[must_use]
    pub fn own_programs(self) -> Job {
        self.with_copies_of(&[dist::hot(), dist::tool()])
    }

    /// Runs calls with a copy of the hot program in the job's directory. Without the tool beside it,
    /// only prepared guests can run.
    #[must_use]
    pub fn own_hot_program(self) -> Job {
        self.with_copies_of(&[dist::hot()])
    }

    /// Runs calls with a copy of the hot program, and with this script in place of the tool beside it.
    #[must_use]
    pub fn with_compiler(self, script: &str) -> Job {
        let job = self.own_hot_program();
        let text = job.path("compiler");
        write(&text, script.as_bytes());
        set_mode(&text, 0o755);
        copy_program(&text, &job.path("bin/wasm-cpi"));
        job
    }

    fn with_copies_of(mut self, programs: &[PathBuf]) -> Job {
        let bin = self.path("bin");
        make_dir(&bin);
        for from in programs {
            copy_program(from, &bin.join(from.file_name().unwrap_or_default()));
        }
        self.program = bin.join("wasm-cpi-run");
        self
    }

    /// Runs calls with this shell command in front of the program and its arguments.
    #[must_use]
    pub fn with_launcher(mut self, command: &str) -> Job {
        let (text, script) = (self.path("start.sh"), self.path("start"));
        write(&text, format!("#!/bin/sh\nexec {command} '{}' \"$@\"\n", self.program.display()).as_bytes());
        set_mode(&text, 0o755);
        copy_program(&text, &script);
        self.program = script;
        self
    }

    /// Runs calls with the tool's `run` instead of `wasm-cpi-run`.
    #[must_use]
    pub fn with_tool(mut self) -> Job {
        self.program = dist::tool();
        self
    }

    /// Runs calls with the programs built for mutation tests.
    #[must_use]
    pub fn with_mutants(mut self) -> Job {
        self.program = dist::mutants().join("wasm-cpi-run");
        self
    }

    pub fn call(&self, method: &str, arguments: Value) -> Call<'_> {
        Call::new(self, method, arguments)
    }

    /// Returns a call with these bytes on stdin.
    pub fn raw(&self, stdin: impl Into<Vec<u8>>) -> Call<'_> {
        Call::raw(self, stdin.into())
    }

    /// Returns a `create_disk` call with a script for the probe.
    pub fn script(&self, operations: Value) -> Call<'_> {
        self.call("create_disk", json!([1024, {"probe": operations}, null]))
    }

    /// Runs a script that must succeed and returns the outcome of each operation.
    #[track_caller]
    pub fn probe(&self, operations: Value) -> Vec<Value> {
        let response = self.script(operations).run();
        probe::outcomes(response.result())
    }

    /// Runs `wasm-cpi check`; returns whether it succeeded and what it printed.
    pub fn check(&self) -> (bool, String) {
        let mut command = Command::new(dist::tool());
        command.args(["check", "--config"]).arg(self.config_file()).env_clear().current_dir("/");
        if rustix::process::geteuid().is_root() {
            // Root would judge as the owner of the job's files, and calls of tests run as root.
            command.args(["--user", "0"]);
        }
        let output = command.output();
        let output = output.unwrap_or_else(|error| panic!("check: {error}"));
        assert!(output.status.code().is_some_and(|code| code < 2), "check: {}", output.status);
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        codes::note(&printed);
        (output.status.success(), printed)
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn config_file(&self) -> PathBuf {
        self.path(if self.is_installed() { "jobs/wasm_cpi/config/cpi.json" } else { "config/cpi.json" })
    }

    pub fn policy_file(&self) -> PathBuf {
        self.path("config/policy.json")
    }

    /// Returns the directory of the job's own cache, even if it uses the shared one.
    pub fn cache_dir(&self) -> PathBuf {
        self.path("cache")
    }

    /// Returns the files of prepared guests in the job's own cache whose names end with this suffix. The
    /// file that remembers leaks is beside them.
    pub fn cached(&self, suffix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache_dir()).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_latch =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("leaks-"));
        entries.filter(|path| path.to_string_lossy().ends_with(suffix) && !is_latch(path)).collect()
    }

    fn save(&self) {
        for (path, value) in [(self.config_file(), &self.config), (self.policy_file(), &self.policy)] {
            write(&path, value.to_string().as_bytes());
            set_mode(&path, 0o600);
        }
    }
}

/// Copies a program with `cp`. With `fs::copy`, a process that another test forks at
/// the same time would inherit the file open for writing, and the kernel refuses to
/// execute such a file.
fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{}: cannot be copied", to.display());
}

/// Copies the prepared guests of the shared cache, but not what other calls remember there.
pub fn copy_prepared(to: &Path) {
    for file in prepared_files() {
        let copied = fs::copy(&file, to.join(file.file_name().unwrap_or_default()));
        copied.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// Returns the size of the prepared guests of the shared cache.
pub fn prepared_bytes() -> u64 {
    prepared_files().filter_map(|file| fs::metadata(file).ok()).map(|found| found.len()).sum()
}

fn prepared_files() -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(dist::shared_cache()).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_prepared = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "cwasm" || kind == "json");
    let is_leak = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("leaks-"));
    files.filter(is_prepared).filter(move |path| !is_leak(path))
}

pub fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

pub fn make_dir(path: &Path) {
    fs::create_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    set_mode(path, 0o755);
}

pub fn set_mode(path: &Path, mode: u32) {
    let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
