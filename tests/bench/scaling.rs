//! How the time of a call grows with the size of its request, its module and the cache.

use crate::Bench;
use crate::program::Program;
use crate::report::{Report, Target};
use crate::rounds::{ratio, run_interleaved};
use crate::startup::{call, create_vm};
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;
use tests::{Job, dist, hostile};

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    requests(bench, report)?;
    modules(bench, report)?;
    caches(bench, report)
}

/// Measures the programs in turns, adds a curve to the report and returns the medians.
fn curve(
    bench: &Bench,
    name: &'static str,
    programs: &[Program],
    report: &mut Report,
) -> Result<Vec<Duration>, String> {
    let all = run_interleaved(programs, bench.rounds() / 2)?;
    let medians: Vec<Duration> = all.iter().map(|series| series.median()).collect();
    report.curve(name, all.iter().zip(&medians).map(|(series, median)| (series.name.clone(), *median)).collect());
    Ok(medians)
}

fn requests(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let job = Job::default();
    let program = |kib: usize| {
        let text = create_vm(json!({"padding": "x".repeat(kib * 1024)})).to_string();
        let request = bench.write(&format!("{kib}.json"), text);
        call(&format!("{kib} KiB"), &dist::hot(), &job.config_file(), &request)
    };
    let times = curve(bench, "request", &[1, 64, 1024, 8192].map(program), report)?;
    // An eight times larger request may take at most eight times as long.
    report.figure("request of 8 MiB vs. 1 MiB", ratio(times[3], times[2]), "x", Target::AtMost(8.0));
    Ok(())
}

fn modules(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let vm = bench.write("modules.json", create_vm(json!({})).to_string());
    let probe = std::fs::read(dist::probe()).map_err(|error| format!("cannot read the probe: {error}"))?;
    let jobs = [0, 4, 20].map(|mib| Job::new().guest_bytes(&hostile::with_module(probe.clone(), &functions(mib))));
    let size = |job: &Job| std::fs::metadata(job.path("guest.wasm")).map_or(0, |file| file.len() >> 10);
    let programs: Vec<Program> =
        jobs.iter().map(|job| call(&format!("{} KiB", size(job)), &dist::hot(), &job.config_file(), &vm)).collect();
    let times = curve(bench, "module", &programs, report)?;
    report.figure("guest of 20 MiB vs. 4 MiB", ratio(times[2], times[1]), "x", Target::AtMost(5.0));
    Ok(())
}

/// Returns the text of a module with about this many MiB of unused code.
fn functions(mib: usize) -> String {
    // Compilers cannot remove a store to a global.
    let body = "(global.set 0 (i32.add (global.get 0) (i32.const 123456789)))".repeat(80);
    let mut text = String::from("(module (global (mut i32) (i32.const 0))");
    for _ in 0..mib * 1024 * 1024 / 890 {
        let _ = write!(text, "(func {body})");
    }
    text + ")"
}

/// Measures the same guest in caches with a growing number of other guests.
fn caches(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let vm = bench.write("caches.json", create_vm(json!({})).to_string());
    let jobs = [1, 20, 200].map(|guests| (guests, Job::new()));
    let mut programs = Vec::new();
    for (guests, job) in &jobs {
        let program = call(&format!("{guests} guests"), &dist::hot(), &job.config_file(), &vm);
        program.run()?;
        let cached = [job.cached(".json"), job.cached(".cwasm")].concat();
        for other in 1..*guests {
            for file in &cached {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                let name = format!("{other:08x}{}", name.get(8..).unwrap_or_default());
                std::fs::copy(file, file.with_file_name(name))
                    .map_err(|error| format!("cannot copy a file in the cache: {error}"))?;
            }
        }
        programs.push(program);
    }
    let times = curve(bench, "cache", &programs, report)?;
    report.figure("cache with 200 guests vs. 1 guest", ratio(times[2], times[0]), "x", Target::AtMost(1.1));
    Ok(())
}
