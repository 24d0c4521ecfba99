//! The cost of one call with its process start: `info` and a method of the guest,
//! compared with programs in Rust, Go and Ruby that parse and answer the same requests.

use crate::Bench;
use crate::program::Program;
use crate::report::{Report, Target};
use crate::rounds::run_interleaved;
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
    let script = Program::new("job", &[&bench.job().join("bin/cpi")], &info);
    let native_script = Program::new("Rust in the same job", &[&peer_job(bench, &echo)?.join("bin/cpi")], &info);
    let ruby = Program::new("Ruby", &[Path::new("/usr/bin/ruby"), &ruby, Path::new("--config"), &config], &vm);
    let all = run_interleaved(
        &[
            script,
            native_script,
            ours("info", &usual, &info),
            call("Rust info", &echo, &config, &info),
            ours("create_vm", &usual, &vm),
            call("Rust", &echo, &config, &vm),
            call("Go", &go, &config, &vm),
            ours("create_vm without both", &plain, &vm),
            ours("create_vm with hardening and audit", &hard, &vm),
            ruby,
        ],
        bench.rounds(),
    )?;
    report.ratio("info through the job's bin/cpi", &all[0], &all[1], Target::AtMost(1.5));
    report.ratio("info", &all[2], &all[3], Target::AtMost(1.35));
    report.ratio("create_vm of the probe", &all[4], &all[5], Target::AtMost(3.0));
    report.ratio("create_vm of the probe", &all[4], &all[6], Target::AtMost(1.8));
    report.ratio("create_vm of the probe", &all[4], &all[9], Target::AtMost(0.04));
    report.figure("create_vm of the probe, peak memory", megabytes(all[4].memory), "MB", Target::AtMost(12.0));
    report.ratio("create_vm with hardening and audit", &all[8], &all[7], Target::AtMost(1.3));
    report.runs("start", &all);
    measure_first_call(report, &vm)?;
    report_sizes(report)
}

/// Measures the first call of a guest that was not prepared, and `wasm-cpi prepare`.
fn measure_first_call(report: &mut Report, vm: &Path) -> Result<(), String> {
    let job = Job::new();
    let sample = call("first call", &dist::hot(), &job.config_file(), vm).run()?;
    report.figure("first call with an unprepared guest", sample.wall.as_secs_f64() * 1e3, "ms", Target::None);
    let job = Job::new();
    let start = Instant::now();
    let done = Command::new(dist::tool()).args(["prepare", "--config"]).arg(job.config_file()).output();
    if !done.is_ok_and(|output| output.status.success()) {
        return Err("`wasm-cpi prepare` failed".to_owned());
    }
    report.figure("prepare", start.elapsed().as_secs_f64() * 1e3, "ms", Target::None);
    Ok(())
}

/// Reports the sizes of the programs, which must be static.
fn report_sizes(report: &mut Report) -> Result<(), String> {
    for program in [dist::hot(), dist::tool()] {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(&program).map_err(|error| format!("{name}: {error}"))?;
        report.figure(format!("size of {name}"), bytes.len() as f64 / f64::from(1 << 20), "MiB", Target::None);
        if tests::elf::needs_loader(&bytes) {
            return Err(format!("{name} must be a static program, but needs a dynamic loader"));
        }
        report.figure(format!("dynamic libraries of {name}"), 0.0, "", Target::None);
    }
    Ok(())
}

/// Converts KiB to MB.
pub(crate) fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}

pub(crate) fn call(name: &str, program: &Path, config: &Path, request: &Path) -> Program {
    Program::new(name, &[program, Path::new("--config"), config], request)
}

/// Returns a request as a Director sends it.
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

/// Copies the job and replaces the runtime by a native program, which the same script
/// starts.
fn peer_job(bench: &Bench, echo: &Path) -> Result<PathBuf, String> {
    let copy = bench.files.path().join("job");
    let copied = Command::new("cp").arg("--recursive").arg(bench.job()).arg(&copy).status();
    let found = Command::new("find").arg(&copy).args(["-name", "wasm-cpi-run"]).output();
    let program = found.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let replaced = Command::new("cp").arg(echo).arg(program.trim()).status();
    match (copied, replaced) {
        (Ok(copied), Ok(replaced)) if copied.success() && replaced.success() => Ok(copy),
        _ => Err(format!("the job in {} cannot be copied", bench.job().display())),
    }
}
