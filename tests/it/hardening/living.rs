//! A call while its guest runs, as the kernel shows it to others.

use super::at_level;
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tests::users::{NOBODY, give, is_root};
use tests::{Call, Job};

/// A process that waits; ends with this.
struct Living(Child);

impl Living {
    /// A call whose guest sleeps by now.
    fn call(call: &Call<'_>) -> Living {
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

    fn start(command: &mut Command) -> Living {
        Living(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.0.id().to_string()).join(name)
    }

    fn text(&self, name: &str) -> String {
        let path = self.proc(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What its descriptors are.
    fn open(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.proc("fd")).unwrap_or_else(|error| panic!("its descriptors: {error}"));
        entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
    }

    fn threads(&self) -> Vec<String> {
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

fn waiting(job: &Job) -> Call<'_> {
    job.script(json!([{"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 60_000}]))
}

fn sleeping() -> Command {
    let mut command = Command::new("sleep");
    command.arg("300");
    command
}

fn value(status: &str, key: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_else(|| panic!("no {key} in {status}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_thread_of_a_call_is_filtered_and_can_gain_no_rights() {
    for (level, filtered, no_new_privs) in [("required", "2", "1"), ("best-effort", "2", "1"), ("off", "0", "0")] {
        let job = at_level(Job::default(), level);
        let call = Living::call(&waiting(&job).cli());
        let threads = call.threads();
        assert!(threads.len() > 1, "{threads:?}");
        for status in threads {
            let seen = [value(&status, "Seccomp:"), value(&status, "NoNewPrivs:")];
            assert_eq!(seen, [filtered, no_new_privs], "{level}: {status}");
        }
        let at_root = std::fs::read_link(call.proc("cwd")).is_ok_and(|at| at == Path::new("/"));
        assert_eq!(at_root, level != "off", "{level}");
    }
}

#[test]
fn a_call_leaves_no_core_dump_and_has_bounded_resources() {
    for level in super::LEVELS {
        let job = at_level(Job::default(), level);
        let limits = Living::call(&waiting(&job)).text("limits");
        assert_eq!(value(&limits, "Max core file size"), "0 0 bytes", "{level}");
        if level != "off" {
            assert_eq!(value(&limits, "Max open files"), "64 64 files", "{level}");
            assert!(!value(&limits, "Max cpu time").contains("unlimited"), "{level}");
        }
    }
}

#[test]
fn a_call_cannot_be_dumped_or_traced_by_its_own_user() {
    if !is_root("running as another user") {
        return;
    }
    let owner = |living: &Living| std::fs::metadata(living.proc("environ")).map(|file| file.uid()).ok();
    for level in super::LEVELS {
        let job = at_level(Job::default(), level);
        give(&job.path(""), NOBODY);
        // The kernel gives what it shows of such a process to root.
        assert_eq!(owner(&Living::call(&waiting(&job).user(NOBODY))), Some(0), "{level}");
    }
    assert_eq!(owner(&Living::start(sleeping().uid(NOBODY).gid(NOBODY))), Some(NOBODY));
}

#[test]
fn descriptors_of_whoever_started_a_call_are_closed() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
    let path = dir.path().join("inherited");
    let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    fcntl_setfd(&file, FdFlags::empty()).unwrap_or_else(|error| panic!("its flags: {error}"));
    assert!(Living::start(&mut sleeping()).open().contains(&path), "nothing is inherited here");
    for level in super::LEVELS {
        let job = at_level(Job::default(), level);
        let open = Living::call(&waiting(&job)).open();
        assert!(!open.contains(&path) && !open.is_empty(), "{level}: {open:?}");
        // Nor the cache or the config.
        let files: Vec<&PathBuf> = open.iter().filter(|path| path.is_file()).collect();
        let fine = |path: &&PathBuf| path.extension().is_some_and(|end| end == "cwasm") || path.starts_with("/dev");
        assert!(files.iter().all(fine), "{level}: {files:?}");
    }
}
