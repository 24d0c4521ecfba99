//! Many concurrent calls, as during a deployment.

use crate::Bench;
use crate::program::Program;
use crate::report::{Report, Target};
use crate::startup::{call, create_vm};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tests::{Job, dist};

const CALLS: usize = 500;
const AT_A_TIME: usize = 8;
const TURNS: usize = 3;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let job = Job::default();
    let vm = bench.write("throughput.json", create_vm(json!({})).to_string());
    let ours = call("create_vm", &dist::hot(), &job.config_file(), &vm);
    let go = call("Go", &bench.peer("peer-go"), &job.config_file(), &vm);
    let mut turns = Vec::new();
    for _ in 0..if bench.quick { 1 } else { TURNS } {
        turns.push((per_second(&ours)?, per_second(&go)?));
    }
    turns.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let (ours, go) = turns[turns.len() / 2];
    let name = format!("{CALLS} calls, {AT_A_TIME} at a time");
    report.figure(format!("{name}: calls per second"), ours, "/s", Target::None);
    report.figure(format!("{name}: throughput vs. Go"), ours / go, "x", Target::AtLeast(0.8));
    Ok(())
}

fn per_second(program: &Program) -> Result<f64, String> {
    let (left, start) = (AtomicUsize::new(CALLS), Instant::now());
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    std::thread::scope(|threads| {
        let worker = || -> Result<(), String> {
            while take() {
                program.run()?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| threads.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    Ok(CALLS as f64 / start.elapsed().as_secs_f64())
}
