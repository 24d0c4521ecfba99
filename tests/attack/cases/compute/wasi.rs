//! WASI as a way out: there is nothing behind it. That no file is touched is read
//! from the kernel, which tells of every one that is opened.

use super::{CLASS, call, job};
use crate::case::Case;
use crate::watch::Watch;
use serde_json::{Value, json};
use tests::job::{make_dir, write};
use tests::{CLOUD_ERROR, Job, probe};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::silent(CLASS, "environment, arguments and stdin", &["wasi-environment", "wasi-arguments"], || {
            // The CLI's call inherits a whole environment.
            let call = Job::default().script(json!([{"op": "env"}, {"op": "args"}, {"op": "stdin"}])).cli().run();
            let outcomes = probe::outcomes(call.result());
            assert_eq!((&outcomes[0]["ok"], &outcomes[1]["ok"]), (&json!({}), &json!([])));
            assert!(outcomes[2]["ok"]["bytes"] == 0 || outcomes[2]["error"]["kind"] == "io", "{}", outcomes[2]);
        }),
        Case::silent(CLASS, "files, by any path", &["wasi-filesystem"], || {
            // Without the lock-down, which would keep the runtime itself from them.
            let job = Job::default().configure(|config| config["hardening"] = json!("off"));
            make_dir(&job.path("files"));
            let (canary, new) = (job.path("files/canary"), job.path("files/new"));
            write(&canary, b"a canary");
            let watch = Watch::new(&job.path("files"));
            let mut script = Vec::new();
            let odd = [
                "/etc/passwd",
                "/proc/self/environ",
                "/proc/self/mem",
                "/dev/stdin",
                "/dev/fd/0",
                ".",
                "/",
                "",
                "../../etc/passwd",
            ];
            for path in
                odd.map(Into::into).iter().chain([&canary, &job.config_file(), &job.path("files/../files/canary")])
            {
                script.push(json!({"op": "fs", "path": path}));
                script.push(json!({"op": "fs", "path": path, "list": true}));
            }
            script.push(json!({"op": "fs", "path": new, "write": "x"}));
            script.push(json!({"op": "fs", "path": canary, "write": "x"}));
            for outcome in job.probe(json!(script)) {
                assert_eq!(outcome["error"]["kind"], "io", "{outcome}");
            }
            watch.is_quiet();
        }),
        Case::silent(CLASS, "a function that no file system of WASI has", &[], || {
            assert_eq!(*call(&job("stub-of-its-own"), "has_vm").result(), true);
        }),
        Case::silent(CLASS, "sockets of WASI", &[], || {
            assert_eq!(*call(&job("sockets"), "has_vm").result(), true);
            call(&job("sockets-network"), "has_vm").fails(CLOUD_ERROR, &["guests have no files and no sockets"]);
        }),
        Case::silent(CLASS, "what a guest remembers of the call before", &[], || {
            let job = job("remembers");
            for _ in 0..3 {
                assert_eq!(*call(&job, "has_vm").result(), Value::Bool(true));
            }
        }),
    ]
}
