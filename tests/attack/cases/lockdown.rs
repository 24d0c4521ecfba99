//! The lock-down, which limits code that escapes from the engine: the process as the
//! kernel shows it while a guest runs. `tests/it/hardening` tests what the kernel
//! refuses, with native code in place of a guest.

use crate::case::Case;
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::json;
use std::fs::File;
use std::path::Path;
use tests::Job;
use tests::audit::{audited, last_call};
use tests::live_process::{LiveProcess, value, waiting};
use tests::users::is_root;

const CLASS: &str = "lock-down";

fn required() -> Job {
    audited(Job::default()).configure(|config| config["hardening"] = json!("required"))
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "every thread has a seccomp filter", &["lock-down-seccomp"], || {
            for status in LiveProcess::call(&waiting(&Job::default())).threads() {
                assert_eq!(value(&status, "Seccomp:"), "2", "{status}");
            }
        }),
        Case::offline(CLASS, "no thread can gain privileges", &[], || {
            for status in LiveProcess::call(&waiting(&Job::default())).threads() {
                assert_eq!(value(&status, "NoNewPrivs:"), "1", "{status}");
            }
        }),
        Case::offline(CLASS, "a call of root has no capabilities", &["lock-down-capabilities"], || {
            if !is_root("capabilities") {
                return;
            }
            for status in LiveProcess::call(&waiting(&Job::default())).threads() {
                for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
                    assert_eq!(value(&status, set), "0000000000000000", "{set} {status}");
                }
            }
        }),
        Case::offline(
            CLASS,
            "a call with required hardening has every layer",
            &["lock-down-landlock", "lock-down-privileges"],
            || {
                let job = required();
                assert_eq!(job.call("has_vm", json!(["vm-1"])).run().result(), &json!(true));
                let level = last_call(&job)["hardening"].clone();
                let level = level.as_str().unwrap_or_default();
                for layer in ["capability drop", "no-new-privs", "seccomp", "landlock"] {
                    assert!(level.contains(layer), "no {layer} in {level}");
                }
            },
        ),
        Case::offline(CLASS, "the process writes no core dump", &["lock-down-core-dumps"], || {
            let call = LiveProcess::call(&waiting(&Job::default()));
            assert_eq!(value(&call.text("limits"), "Max core file size"), "0 0 bytes");
        }),
        Case::offline(CLASS, "inherited file descriptors are closed", &["lock-down-descriptors"], || {
            if !is_root("the descriptors of a process that is not dumpable") {
                return;
            }
            let job = Job::default();
            let path = job.path("inherited");
            let file = File::create(&path).unwrap_or_else(|error| panic!("{error}"));
            fcntl_setfd(&file, FdFlags::empty()).unwrap_or_else(|error| panic!("{error}"));
            let open = LiveProcess::call(&waiting(&job)).open();
            assert!(!open.contains(&path) && !open.is_empty(), "{open:?}");
        }),
        Case::offline(CLASS, "the working directory is the root directory", &[], || {
            let call = LiveProcess::call(&waiting(&Job::default()).cli());
            assert!(std::fs::read_link(call.proc("cwd")).is_ok_and(|at| at == Path::new("/")));
        }),
    ]
}
