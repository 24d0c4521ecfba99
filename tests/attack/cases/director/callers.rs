//! Callers that are gone, or never finish their request, and guests that make use of that.

use super::CLASS;
use crate::case::{API, Case};
use crate::row;
use crate::world::Served;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tests::audit::last_call;
use tests::lost_caller::{Leaves, Stdout, run, run_within};
use tests::{CPI_ERROR, Job, probe, process};

/// Longer than any of these cases takes. Without its limit, a case would never end.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "a request without an end", &["limit-wall_seconds"], || {
            let job = Job::default().limits(json!({"wall_seconds": 1}));
            let valid = job.call("has_vm", json!(["vm-1"])).request();
            for part in [&valid, &valid[..valid.len() / 2], ""] {
                let mut command = job.raw(part).command();
                let response = process::run_with_open_stdin(&mut command, part.as_bytes(), Duration::from_secs(20));
                let response = response.unwrap_or_else(|| panic!("the call waited for the end of its request"));
                let error = &response["error"];
                assert_eq!(error["type"], CPI_ERROR, "{response}");
                let message = error["message"].as_str().unwrap_or_default();
                assert!(message.starts_with("request: waiting for the end of the request on stdin"), "{message}");
                assert!(message.contains("`wall_seconds` (1)"), "{message}");
            }
        }),
        Case::offline(CLASS, "a guest that continues when its caller is gone", &["limit-cleanup_seconds"], || {
            let job = tests::audit::audited(Job::default()).limits(json!({"cleanup_seconds": 1}));
            let script =
                json!([{"op": "log", "message": "ready"}, {"op": "clock.sleep", "ms": 60_000}, {"op": "loop"}]);
            let abandoned = run_within(&job.script(script), Stdout::Empty, &Leaves::AtLine("ready"), PATIENCE);
            assert_eq!(abandoned.code, Some(1), "{abandoned:?}");
            assert!(abandoned.stderr.contains("within `cleanup_seconds` (1)"), "{}", abandoned.stderr);
            assert_eq!(last_call(&job)["outcome"], "undelivered");
        }),
        Case::new(CLASS, "a caller that is gone, and a resource that existed before", &["undo-own"], |world| {
            let url = "https://api.iaas.test/v1/disks";
            // The ID of the disk makes the probe's `delete_disk` send a POST.
            let deletion = json!([
                {"op": "http", "method": "POST", "url": format!("{url}/delete")}, {"op": "result", "json": null},
            ]);
            let cid = probe::cid(&deletion);
            let answer = json!({"api.iaas.test/v1/disks": {"status": 200, "body": {"id": cid}}});
            let found = json!({"op": "http", "url": url});
            let created = json!({"op": "http", "method": "POST", "url": url});
            for (before, deleted) in
                [(vec![], false), (vec![&found], false), (vec![&found, &created], false), (vec![&created], true)]
            {
                let job = row::job(world, &Value::Null);
                world.reset(row::names(&Value::Null), Served::new(&answer))?;
                let returned = [json!({"op": "log", "message": "returning"}), json!({"op": "result", "json": cid})];
                let script: Vec<Value> = before.into_iter().cloned().chain(returned).collect();
                let abandoned = run(&job.script(json!(script)), Stdout::Full, &Leaves::AtLine("returning"));
                let arrived: Vec<String> = world.requests().iter().map(|arrived| arrived.summary()).collect();
                if arrived.iter().any(|request| request.ends_with("/delete")) != deleted {
                    return Err(format!("{script:?}: {arrived:?}, {}", abandoned.stderr));
                }
            }
            Ok(())
        })
        .may_contact(API),
        Case::offline(CLASS, "a caller that closes stderr is not gone", &[], || {
            let job = tests::audit::audited(Job::default());
            let call = job.script(json!([
                {"op": "log", "message": "m", "repeat": 10}, {"op": "clock.sleep", "ms": 300},
                {"op": "clock.ending"}, {"op": "log", "message": "m"},
            ]));
            let mut command = call.command();
            command.stderr(Stdio::piped());
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap_or_else(|error| panic!("{command:?}: {error}"));
            drop(child.stderr.take());
            let written = child.stdin.take().map(|mut stdin| {
                use std::io::Write;
                stdin.write_all(call.request().as_bytes())
            });
            assert!(matches!(written, Some(Ok(()))));
            let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
            let response: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            assert_eq!(probe::outcomes(&response["result"])[2]["ok"], Value::Null, "{response}");
            assert_eq!((output.status.code(), &last_call(&job)["outcome"]), (Some(0), &json!("ok")));
        }),
    ]
}
