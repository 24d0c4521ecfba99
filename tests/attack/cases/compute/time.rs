//! Guests that use time without end: loops in every place where code runs, and waits in
//! every place where the host waits.

use super::{CLASS, call, job};
use crate::case::{API, Case};
use crate::row;
use crate::world::Served;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;
use tests::{CLOUD_ERROR, Job, job as files, probe};

/// Longer than any of these cases takes. Without its limit, a case would never end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Limits a job so that CPU time runs out before wall time, even on a busy machine.
fn with_cpu_limit(job: Job) -> Job {
    job.limits(json!({"cpu_seconds": 1, "wall_seconds": 40, "cleanup_seconds": 1}))
}

/// Returns a job of the probe with one second of wall time, and one more to clean up.
fn short_job() -> Job {
    Job::default().limits(json!({"wall_seconds": 1, "create_stemcell_wall_seconds": 1, "cleanup_seconds": 1}))
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "a loop without end", &["limit-cpu_seconds"], || {
            let response = with_cpu_limit(Job::default()).script(json!([{"op": "loop"}])).guard(PATIENCE).run();
            response.reaches("cpu_seconds");
            assert!(response.log().contains("forever"), "the log does not say where: {}", response.log());
        }),
        Case::offline(CLASS, "work in small parts between host calls", &["limit-cpu_seconds"], || {
            let script = json!([{"op": "spin_ms", "ms": 20, "repeat": 1000}]);
            with_cpu_limit(Job::default()).script(script).guard(PATIENCE).run().reaches("cpu_seconds");
        }),
        Case::offline(
            CLASS,
            "loops in an allocator, a destructor and a post-return function",
            &["limit-cpu_seconds"],
            || {
                in_parallel(&["allocator-loops", "destructor-loops", "post-return-loops"], |name| {
                    call(&with_cpu_limit(job(name)), "has_vm").reaches("cpu_seconds");
                });
            },
        ),
        Case::offline(CLASS, "loops before and in `describe`", &["limit-compile_seconds"], || {
            in_parallel(&["start-loops", "describe-loops"], |name| {
                let job = job(name).limits(json!({"compile_seconds": 2}));
                call(&job, "has_vm").reaches("compile_seconds");
                assert!(job.cached("").is_empty(), "{name} was stored");
            });
        }),
        Case::offline(CLASS, "traps before and in `describe`", &[], || {
            for name in ["start-traps", "describe-traps"] {
                call(&job(name), "has_vm").fails(CLOUD_ERROR, &["trapped in describe: ", "`unreachable` instruction"]);
            }
        }),
        Case::offline(CLASS, "a million host calls", &["limit-host_calls"], || {
            Job::default().script(json!([{"op": "clock.now", "repeat": 1_000_000}])).run().reaches("host_calls");
        }),
        Case::offline(CLASS, "a sleep of 500 million years", &["limit-wall_seconds"], || {
            let script = json!([{"op": "clock.sleep", "ms": u64::MAX, "on_cancel": []}]);
            short_job().script(script).guard(PATIENCE).run().reaches("wall_seconds");
        }),
        Case::offline(
            CLASS,
            "a sleep that cannot be cancelled",
            &["limit-wall_seconds", "limit-cleanup_seconds"],
            || {
                let job = job("sleeps-forever").limits(json!({"wall_seconds": 1, "cleanup_seconds": 1}));
                let response = job.call("has_vm", json!(["vm-1"])).guard(PATIENCE).run();
                response.reaches("wall_seconds").fails(CLOUD_ERROR, &["did not end within `cleanup_seconds` (1)"]);
            },
        ),
        Case::offline(CLASS, "a guest that continues after its deadline", &["limit-cleanup_seconds"], || {
            let script =
                json!([{"op": "clock.sleep", "ms": 60_000}, {"op": "clock.sleep", "ms": 60_000}, {"op": "loop"}]);
            let response = short_job().script(script).guard(PATIENCE).run();
            response.reaches("wall_seconds").fails(CLOUD_ERROR, &["did not end within `cleanup_seconds` (1)"]);
        }),
        Case::offline(CLASS, "a guest that continues after SIGTERM", &["limit-cleanup_seconds"], || {
            let job = Job::default().limits(json!({"cleanup_seconds": 1}));
            let script =
                json!([{"op": "log", "message": "ready"}, {"op": "clock.sleep", "ms": 60_000}, {"op": "loop"}]);
            let response = job.script(script).signal_at("ready", Signal::TERM).guard(PATIENCE).run();
            response.fails(CLOUD_ERROR, &["SIGTERM ended the call", "within `cleanup_seconds` (1)"]);
        }),
        Case::offline(CLASS, "an image that takes hours to read", &["limit-create_stemcell_wall_seconds"], || {
            let job = short_job();
            let image = job.path("image");
            files::write(&image, b"");
            let file = std::fs::File::options().write(true).open(&image);
            file.and_then(|file| file.set_len(8 << 40))
                .unwrap_or_else(|error| panic!("cannot create a sparse file: {error}"));
            let properties = json!({"probe": [{"op": "image.sha256", "on_cancel": []}]});
            let response = job.call("create_stemcell", json!([image, properties])).guard(PATIENCE).run();
            response.reaches("create_stemcell_wall_seconds");
        }),
        Case::new(CLASS, "a request that is never answered", &["limit-wall_seconds"], |world| {
            let row = json!({"config": {"limits": {"wall_seconds": 10, "cleanup_seconds": 2}}});
            let job = row::job(world, &row);
            world.reset(row::names(&Value::Null), Served::new(&json!({"api.iaas.test": {"stall": ""}})))?;
            let script = json!([{"op": "http", "url": "https://api.iaas.test/v1/x", "on_cancel": []}]);
            let response = job.call("has_vm", json!([probe::cid(&script)])).guard(PATIENCE).run();
            response.reaches("wall_seconds");
            match world.requests().len() {
                1 => Ok(()),
                count => Err(format!("{count} requests arrived")),
            }
        })
        .may_contact(API),
    ]
}

/// Runs the attempts in parallel. A panic of one of them fails the case.
fn in_parallel(names: &[&'static str], attempt: impl Fn(&'static str) + Sync) {
    let attempt = &attempt;
    std::thread::scope(|scope| {
        let running: Vec<_> = names.iter().map(|name| scope.spawn(move || attempt(name))).collect();
        for thread in running {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}
