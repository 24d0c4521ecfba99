//! The kernel's view of a call while its guest runs, in `/proc`.

use super::at_level;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use tests::Job;
use tests::live_process::{LiveProcess, sleeping, value, waiting};
use tests::users::{NOBODY, give, is_root};

#[test]
fn every_thread_of_a_call_has_a_seccomp_filter_and_no_new_privileges() {
    for (level, filtered, no_new_privs) in [("required", "2", "1"), ("best-effort", "2", "1"), ("off", "0", "0")] {
        let job = at_level(Job::default(), level);
        let call = LiveProcess::call(&waiting(&job).cli());
        let threads = call.threads();
        assert_eq!(threads.len(), 1, "{threads:?}");
        for status in threads {
            let seen = [value(&status, "Seccomp:"), value(&status, "NoNewPrivs:")];
            assert_eq!(seen, [filtered, no_new_privs], "{level}: {status}");
        }
        let at_root = std::fs::read_link(call.proc("cwd")).is_ok_and(|at| at == Path::new("/"));
        assert_eq!(at_root, level != "off", "{level}");
    }
}

#[test]
fn a_call_has_resource_limits_and_writes_no_core_dump() {
    for level in super::LEVELS {
        let job = at_level(Job::default(), level);
        let limits = LiveProcess::call(&waiting(&job)).text("limits");
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
    let owner = |living: &LiveProcess| std::fs::metadata(living.proc("environ")).map(|file| file.uid()).ok();
    for level in super::LEVELS {
        let job = at_level(Job::default(), level);
        give(&job.path(""), NOBODY);
        // The files in `/proc` of a process that is not dumpable belong to root.
        assert_eq!(owner(&LiveProcess::call(&waiting(&job).user(NOBODY))), Some(0), "{level}");
    }
    assert_eq!(owner(&LiveProcess::start(sleeping().uid(NOBODY).gid(NOBODY))), Some(NOBODY));
}

#[test]
fn inherited_descriptors_are_closed() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
    let path = dir.path().join("inherited");
    let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    fcntl_setfd(&file, FdFlags::empty()).unwrap_or_else(|error| panic!("its flags: {error}"));
    assert!(
        LiveProcess::start(&mut sleeping()).open().contains(&path),
        "an ordinary process does not inherit the descriptor, so the test shows nothing"
    );
    for level in super::LEVELS {
        let job = at_level(Job::default(), level);
        let open = LiveProcess::call(&waiting(&job)).open();
        assert!(!open.contains(&path) && !open.is_empty(), "{level}: {open:?}");
        // The other files of the cache and the config are closed as well. A leak can be remembered at any time.
        let files: Vec<&PathBuf> = open.iter().filter(|path| path.is_file()).collect();
        let expected = |path: &&&PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".cwasm") || name.starts_with("leaks-") || path.starts_with("/dev")
        };
        assert!(files.iter().all(|path| expected(&path)), "{level}: {files:?}");
    }
}
