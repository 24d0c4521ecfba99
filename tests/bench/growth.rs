//! How a call's time grows with what grows: its request, its module, the cache.

use crate::Bench;
use crate::program::Program;
use crate::report::{Bar, Report};
use crate::rounds::{interleaved, ratio};
use crate::starts::{call, create_vm};
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;
use tests::{Job, dist, hostile};

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    requests(bench, report)?;
    modules(bench, report)?;
    caches(bench, report)
}

/// Measures all of them in turns: their sizes, with their times.
fn curve(bench: &Bench, of: &'static str, programs: &[Program], report: &mut Report) -> Result<Vec<Duration>, String> {
    let all = interleaved(programs, bench.rounds() / 2)?;
    let medians: Vec<Duration> = all.iter().map(|series| series.median()).collect();
    report.curve(of, all.iter().zip(&medians).map(|(series, median)| (series.name.clone(), *median)).collect());
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
    // Eight times as large: no more than that.
    report.figure("request of 8 MiB, by one of 1 MiB", ratio(times[3], times[2]), "x", Bar::AtMost(8.0));
    Ok(())
}

fn modules(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let vm = bench.write("modules.json", create_vm(json!({})).to_string());
    let probe = std::fs::read(dist::probe()).map_err(|error| format!("the probe: {error}"))?;
    let jobs = [0, 4, 20].map(|mib| Job::new().guest_bytes(&hostile::with_module(probe.clone(), &functions(mib))));
    let size = |job: &Job| std::fs::metadata(job.path("guest.wasm")).map_or(0, |file| file.len() >> 10);
    let programs: Vec<Program> =
        jobs.iter().map(|job| call(&format!("{} KiB", size(job)), &dist::hot(), &job.config_file(), &vm)).collect();
    let times = curve(bench, "module", &programs, report)?;
    report.figure("module of 20 MiB, by one of 4 MiB", ratio(times[2], times[1]), "x", Bar::AtMost(5.0));
    Ok(())
}

/// A module of about so many MiB of code that nobody calls.
fn functions(mib: usize) -> String {
    // Each is a store, which no compiler leaves out.
    let body = "(global.set 0 (i32.add (global.get 0) (i32.const 123456789)))".repeat(80);
    let mut text = String::from("(module (global (mut i32) (i32.const 0))");
    for _ in 0..mib * 1024 * 1024 / 890 {
        let _ = write!(text, "(func {body})");
    }
    text + ")"
}

/// The same guest beside others that were prepared, too.
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
                std::fs::copy(file, file.with_file_name(name)).map_err(|error| format!("the cache: {error}"))?;
            }
        }
        programs.push(program);
    }
    let times = curve(bench, "cache", &programs, report)?;
    report.figure("cache with 200 guests, by one with 1", ratio(times[2], times[0]), "x", Bar::AtMost(1.1));
    Ok(())
}
