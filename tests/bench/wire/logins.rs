//! How often calls log in, starting without a kept token: one after the other, and all
//! at once.

use super::cpi::{Cpi, Site};
use crate::Bench;
use crate::report::{Report, Target};
use serde_json::json;

const IN_SEQUENCE: usize = 20;
const IN_PARALLEL: usize = 50;

/// A disk that does not exist, which is an answer and no error.
const DISK: &str = "6e8b2f0e-0000-4000-a000-000000000000";

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let site = Site::simulated(0);
    // Each job has a directory of its own for tokens.
    let jobs = [Cpi::openstack(&site, true)?, Cpi::openstack(&site, true)?];
    let [one, many] = jobs.each_ref().map(|cpi| cpi.program(bench, "has_disk", json!([DISK])).0);
    for _ in 0..IN_SEQUENCE {
        one.run()?;
    }
    let name = format!("logins of {IN_SEQUENCE} calls in sequence");
    report.figure(name, logins(&site), "", Target::AtMost(1.0));

    std::thread::scope(|threads| {
        let calls: Vec<_> = (0..IN_PARALLEL).map(|_| threads.spawn(|| many.run())).collect();
        let join = |call: std::thread::ScopedJoinHandle<'_, Result<_, String>>| {
            call.join().map_err(|_| "a thread panicked".to_owned())?.map(drop)
        };
        calls.into_iter().try_for_each(join)
    })?;
    let name = format!("logins of {IN_PARALLEL} calls in parallel");
    report.figure(name, logins(&site), "", Target::AtMost(8.0));
    Ok(())
}

/// Returns the number of logins since the last time.
fn logins(site: &Site) -> f64 {
    site.recorder.take().iter().filter(|exchange| exchange.is_login()).count() as f64
}
