//! What is left to code that got out of the engine: the process as the kernel
//! shows it while a guest runs. What such code is refused, `tests/it/hardening`
//! shows, with native code in the guest's place.

use crate::case::Case;
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::json;
use std::fs::File;
use std::path::Path;
use tests::Job;
use tests::audit::{audited, last_call};
use tests::living::{Living, value, waiting};
use tests::users::is_root;

const CLASS: &str = "lock-down";

fn required() -> Job {
    audited(Job::default()).configure(|config| config["hardening"] = json!("required"))
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::silent(CLASS, "every thread is filtered", &["wall-seccomp"], || {
            for status in Living::call(&waiting(&Job::default())).threads() {
                assert_eq!(value(&status, "Seccomp:"), "2", "{status}");
            }
        }),
        Case::silent(CLASS, "no thread can gain rights", &[], || {
            for status in Living::call(&waiting(&Job::default())).threads() {
                assert_eq!(value(&status, "NoNewPrivs:"), "1", "{status}");
            }
        }),
        Case::silent(CLASS, "a call does without a wall only if it may", &["wall-landlock", "wall-privileges"], || {
            let job = required();
            assert_eq!(job.call("has_vm", json!(["vm-1"])).run().result(), &json!(true));
            let level = last_call(&job)["hardening"].clone();
            let level = level.as_str().unwrap_or_default();
            for wall in ["no-new-privs", "seccomp", "landlock"] {
                assert!(level.contains(wall), "no {wall} in {level}");
            }
        }),
        Case::silent(CLASS, "no dump of its memory, and no tracing", &["wall-dumps"], || {
            let call = Living::call(&waiting(&Job::default()));
            assert_eq!(value(&call.text("limits"), "Max core file size"), "0 0 bytes");
        }),
        Case::silent(CLASS, "descriptors of whoever started it", &["wall-descriptors"], || {
            if !is_root("the descriptors of a process that shows them to nobody") {
                return;
            }
            let job = Job::default();
            let path = job.path("inherited");
            let file = File::create(&path).unwrap_or_else(|error| panic!("{error}"));
            fcntl_setfd(&file, FdFlags::empty()).unwrap_or_else(|error| panic!("{error}"));
            let open = Living::call(&waiting(&job)).open();
            assert!(!open.contains(&path) && !open.is_empty(), "{open:?}");
        }),
        Case::silent(CLASS, "a call stands in no directory of whoever started it", &[], || {
            let call = Living::call(&waiting(&Job::default()).cli());
            assert!(std::fs::read_link(call.proc("cwd")).is_ok_and(|at| at == Path::new("/")));
        }),
    ]
}
