//! The whole life of a VM with a disk on a cloud that takes time: each change completes
//! after one more read, so calls poll and pause as on a real cloud.
//!
//! The peer does not poll, so it cannot be compared here. Instead, passes take turns with
//! passes of the same programs on the same cloud that cannot keep anything: every
//! response closes its connection, and every call logs in.

use super::cpi::{Cpi, Site};
use super::script;
use crate::Bench;
use crate::report::{Report, Table, Target};
use crate::rounds::{quantile, ratio};
use serde_json::json;
use std::time::Duration;
use tests::openstack::RealCloud;

/// The sums over the calls of one pass.
#[derive(Clone, Copy, Default)]
struct Pass {
    wall: Duration,
    requests: usize,
    connections: usize,
    logins: usize,
}

/// Measures the lives on the simulator, and on the real services if there are some.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    measure_on(bench, &Site::simulated(1), "the simulator", Target::AtMost(0.8), report)?;
    match RealCloud::from_environment() {
        // Most of the time is that of the services, which differs from machine to machine.
        Some(cloud) => measure_on(bench, &Site::new(cloud), "real services", Target::None, report),
        None => Ok(()),
    }
}

fn measure_on(bench: &Bench, site: &Site, place: &str, target: Target, report: &mut Report) -> Result<(), String> {
    let variants = [
        ("kept connections and tokens", Cpi::openstack(site, true)?, false),
        ("a connection per request, a login per call", Cpi::openstack(site, false)?, true),
    ];
    let mut passes = variants.each_ref().map(|_| Vec::new());
    for _ in 0..if bench.quick { 1 } else { 5 } {
        for ((_, cpi, closes), passes) in variants.iter().zip(&mut passes) {
            site.recorder.close_connections(*closes);
            passes.push(run_pass(bench, cpi, site)?);
        }
    }
    let times = passes.each_ref().map(|passes| quantile(passes.iter().map(|pass| pass.wall).collect(), 50));
    let name = format!("life of a VM with a disk on {place} ({} calls)", script::METHODS.len());
    report.figure(name.as_str(), times[0].as_secs_f64(), "s", Target::None);
    report.figure(format!("{name} vs. nothing kept"), ratio(times[0], times[1]), "x", target);
    let rows = variants.iter().zip(&passes).zip(times).map(|(((name, ..), passes), time)| {
        let last = passes.last().copied().unwrap_or_default();
        let seconds = (time.as_secs_f64() * 100.0).round() / 100.0;
        vec![json!(name), json!(last.requests), json!(last.connections), json!(last.logins), json!(seconds)]
    });
    report.table(Table {
        name: format!("life of a VM with a disk on {place}, with cloud-side waiting"),
        columns: vec!["runtime with", "requests", "connections", "logins", "s"],
        rows: rows.collect(),
    });
    Ok(())
}

fn run_pass(bench: &Bench, cpi: &Cpi, site: &Site) -> Result<Pass, String> {
    let mut pass = Pass::default();
    script::run(bench, cpi, site, |_, call| {
        pass.wall += call.wall;
        pass.requests += call.exchanges.len();
        pass.connections += call.connections;
        pass.logins += call.logins();
        Ok(())
    })?;
    Ok(pass)
}
