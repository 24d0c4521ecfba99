//! What one call costs from nothing: `info`, and a method of the guest, beside
//! programs in Rust, Go and Ruby that parse and answer the same.

use crate::Bench;
use crate::program::Program;
use crate::report::{Bar, Report};
use crate::rounds::interleaved;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tests::{Job, cloud, dist};

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let info = bench.write("info.json", request("info", json!([])).to_string());
    let vm = bench.write("create_vm.json", create_vm(json!({})).to_string());
    let (echo, go, ruby) = (bench.peer("peer-echo"), bench.peer("peer-go"), bench.peer("cpi.rb"));
    let plain = Job::default().configure(|config| config["hardening"] = json!("off"));
    let usual = Job::default();
    let hard = Job::default().configure(|config| {
        config["hardening"] = json!("required");
        config["audit"] = json!({"path": "../audit.log"});
    });
    let config = usual.config_file();
    let ours = |name: &str, job: &Job, request: &Path| call(name, &dist::hot(), &job.config_file(), request);
    let script = Program::new("job", &[&bench.job.join("bin/cpi")], &info);
    let native_script = Program::new("Rust in the same job", &[&peer_job(bench, &echo)?.join("bin/cpi")], &info);
    let ruby = Program::new("Ruby", &[Path::new("/usr/bin/ruby"), &ruby, Path::new("--config"), &config], &vm);
    let all = interleaved(
        &[
            script,
            native_script,
            ours("info", &usual, &info),
            call("Rust, info", &echo, &config, &info),
            ours("create_vm", &usual, &vm),
            call("Rust", &echo, &config, &vm),
            call("Go", &go, &config, &vm),
            ours("create_vm without hardening and audit", &plain, &vm),
            ours("create_vm, hardening required, audit on", &hard, &vm),
            ruby,
        ],
        bench.rounds(),
    )?;
    report.ratio("info through the job's bin/cpi", &all[0], &all[1], Bar::AtMost(1.5));
    report.ratio("info", &all[2], &all[3], Bar::AtMost(1.35));
    report.ratio("create_vm of the probe", &all[4], &all[5], Bar::AtMost(3.0));
    report.ratio("create_vm of the probe", &all[4], &all[6], Bar::AtMost(1.8));
    report.ratio("create_vm of the probe", &all[4], &all[9], Bar::AtMost(0.04));
    report.figure("create_vm of the probe, peak memory", megabytes(all[4].memory), "MB", Bar::AtMost(12.0));
    report.ratio("create_vm, hardening required, audit on", &all[8], &all[7], Bar::AtMost(1.3));
    report.runs("start", &all);
    first(report, &vm)?;
    sizes(report)
}

/// A guest that was never prepared, and preparing one.
fn first(report: &mut Report, vm: &Path) -> Result<(), String> {
    let job = Job::new();
    let sample = call("first call", &dist::hot(), &job.config_file(), vm).run()?;
    report.figure("first call with an unprepared guest", sample.wall.as_secs_f64() * 1e3, "ms", Bar::None);
    let job = Job::new();
    let begun = Instant::now();
    let done = Command::new(dist::tool()).args(["prepare", "--config"]).arg(job.config_file()).output();
    if !done.is_ok_and(|output| output.status.success()) {
        return Err("`wasm-cpi prepare` failed".to_owned());
    }
    report.figure("prepare", begun.elapsed().as_secs_f64() * 1e3, "ms", Bar::None);
    Ok(())
}

/// Of programs without a single dynamic library.
fn sizes(report: &mut Report) -> Result<(), String> {
    for program in [dist::hot(), dist::tool()] {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(&program).map_err(|error| format!("{name}: {error}"))?;
        report.figure(format!("size of {name}"), bytes.len() as f64 / f64::from(1 << 20), "MiB", Bar::None);
        if tests::elf::wants_a_loader(&bytes) {
            return Err(format!("{name} is not static, and meant to be"));
        }
        report.figure(format!("dynamic libraries of {name}"), 0.0, "", Bar::None);
    }
    Ok(())
}

/// Of KiB, as the kernel counts.
pub(crate) fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}

pub(crate) fn call(name: &str, program: &Path, config: &Path, request: &Path) -> Program {
    Program::new(name, &[program, Path::new("--config"), config], request)
}

/// As a Director asks.
pub(crate) fn request(method: &str, arguments: Value) -> Value {
    json!({
        "method": method, "arguments": arguments, "api_version": 2,
        "context": {"director_uuid": "b4c1f7c3-6a57-4b54-b0ac-5cfa8d1f4ab1", "request_id": "cpi-104711",
            "vm": {"stemcell": {"api_version": 3}}},
    })
}

pub(crate) fn create_vm(cloud_properties: Value) -> Value {
    let agent = "6d6c1e5e-5f04-4a1c-8d0f-1f6b8e1d9c3a";
    request("create_vm", json!([agent, "stemcell-0f3b", cloud_properties, cloud::networks(), [], cloud::env()]))
}

/// The job once more, with the native program where ours was: the same script starts it.
fn peer_job(bench: &Bench, echo: &Path) -> Result<PathBuf, String> {
    let copy = bench.files.path().join("job");
    let copied = Command::new("cp").arg("--recursive").arg(&bench.job).arg(&copy).status();
    let found = Command::new("find").arg(&copy).args(["-name", "wasm-cpi-run"]).output();
    let program = found.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let replaced = Command::new("cp").arg(echo).arg(program.trim()).status();
    match (copied, replaced) {
        (Ok(copied), Ok(replaced)) if copied.success() && replaced.success() => Ok(copy),
        _ => Err(format!("the job in {} cannot be copied", bench.job.display())),
    }
}
