//! Many calls at once, as while a Director deploys.

use crate::Bench;
use crate::program::Program;
use crate::report::{Bar, Report};
use crate::starts::{call, create_vm};
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
    let what = format!("{CALLS} calls, {AT_A_TIME} at a time");
    report.figure(format!("{what}, calls/s"), ours, "/s", Bar::None);
    report.figure(format!("{what}, throughput by Go"), ours / go, "x", Bar::AtLeast(0.8));
    Ok(())
}

fn per_second(program: &Program) -> Result<f64, String> {
    let (left, begun) = (AtomicUsize::new(CALLS), Instant::now());
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
    Ok(CALLS as f64 / begun.elapsed().as_secs_f64())
}
