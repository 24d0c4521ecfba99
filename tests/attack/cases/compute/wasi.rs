//! WASI as an escape route, which offers nothing. The kernel reports every file that is
//! opened, so that the case can check that there is none.

use super::{CLASS, call, job};
use crate::case::Case;
use crate::watch::DirectoryWatch;
use serde_json::{Value, json};
use tests::job::{make_dir, write};
use tests::{CLOUD_ERROR, Job, probe};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "environment, arguments and stdin", &["wasi-environment", "wasi-arguments"], || {
            // A call of the CLI inherits its whole environment.
            let call = Job::default().script(json!([{"op": "env"}, {"op": "args"}, {"op": "stdin"}])).cli().run();
            let outcomes = probe::outcomes(call.result());
            assert_eq!((&outcomes[0]["ok"], &outcomes[1]["ok"]), (&json!({}), &json!([])));
            assert!(outcomes[2]["ok"]["bytes"] == 0 || outcomes[2]["error"]["kind"] == "io", "{}", outcomes[2]);
        }),
        Case::offline(CLASS, "files, by any path", &["wasi-filesystem"], || {
            // Without the lock-down, which would also keep the runtime from opening them.
            let job = Job::default().configure(|config| config["hardening"] = json!("off"));
            make_dir(&job.path("files"));
            let (canary, new) = (job.path("files/canary"), job.path("files/new"));
            write(&canary, b"a canary");
            let watch = DirectoryWatch::new(&job.path("files"));
            let mut script = Vec::new();
            let paths = [
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
                paths.map(Into::into).iter().chain([&canary, &job.config_file(), &job.path("files/../files/canary")])
            {
                script.push(json!({"op": "fs", "path": path}));
                script.push(json!({"op": "fs", "path": path, "list": true}));
            }
            script.push(json!({"op": "fs", "path": new, "write": "x"}));
            script.push(json!({"op": "fs", "path": canary, "write": "x"}));
            for outcome in job.probe(json!(script)) {
                assert_eq!(outcome["error"]["kind"], "io", "{outcome}");
            }
            watch.assert_no_events();
        }),
        Case::offline(CLASS, "a function that WASI's file system does not have", &[], || {
            assert_eq!(*call(&job("unknown-wasi-function"), "has_vm").result(), true);
        }),
        Case::offline(CLASS, "sockets of WASI", &[], || {
            assert_eq!(*call(&job("sockets"), "has_vm").result(), true);
            call(&job("sockets-network"), "has_vm").fails(CLOUD_ERROR, &["guests have no files and no sockets"]);
        }),
        Case::offline(CLASS, "a guest keeps no state from an earlier call", &[], || {
            let job = job("keeps-state");
            for _ in 0..3 {
                assert_eq!(*call(&job, "has_vm").result(), Value::Bool(true));
            }
        }),
    ]
}
