//! `cargo xtask demo`: a VM's life in CPI calls, run as the Director runs them.
//!
//! A job is laid out and its `bin/cpi` started once per call: no arguments, an
//! environment with PATH alone, one JSON document without a newline on stdin.
//! Each request, response and time is shown, and each response is checked.

mod answer;
mod script;

use crate::arguments::Job;
use crate::build;
use crate::files;
use crate::job;
use crate::repo::Repo;
use crate::steps::Steps;
use anyhow::{Context, Result, bail};
use script::{Call, Known};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What the Director leaves of its environment.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mut steps = Steps::new();
    build::everything(repo, &mut steps)?;
    let demo = repo.root.join("target/demo");
    steps.need("lay out a job with the probe guest", || {
        if demo.exists() {
            fs::remove_dir_all(&demo).with_context(|| format!("{} could not be emptied", demo.display()))?;
        }
        job::lay_out(repo, &Job { out: demo.join("job"), ..Job::default() })?;
        files::write(&demo.join("image"), "the image of a stemcell, for show\n", 0o644)
    })?;
    steps.check("calls, as the Director makes them", || calls(&demo));
    steps.finish()?;
    println!("\nEvery response was as a Director expects it. The job stays in {}", demo.join("job").display());
    Ok(())
}

fn calls(demo: &Path) -> Result<()> {
    let cpi = demo.join("job/bin/cpi");
    let mut known = Known::new(&demo.join("image"));
    let mut wrong = Vec::new();
    for (number, call) in (1..).zip(&script::CALLS) {
        let request = call.request(number, &known);
        println!("\n{number}. {}\n   request   {request}", call.title);
        let begun = Instant::now();
        let output = start(&cpi, &request)?;
        show(&output, begun.elapsed());
        if let Err(problem) = judge(call, &output, &mut known) {
            println!("   WRONG     {problem:#}");
            wrong.push(call.title);
        }
    }
    if !wrong.is_empty() {
        bail!("not answered as expected: {}", wrong.join(", "));
    }
    Ok(())
}

fn start(cpi: &Path, request: &Value) -> Result<Output> {
    let mut child = Command::new(cpi)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} could not be started", cpi.display()))?;
    let mut stdin = child.stdin.take().context("the child has no stdin")?;
    // A CPI that ends without reading is judged by what it answers, not by the broken pipe.
    drop(stdin.write_all(request.to_string().as_bytes()));
    drop(stdin);
    child.wait_with_output().context("the call's output could not be read")
}

fn show(output: &Output, took: Duration) {
    println!("   response  {}", String::from_utf8_lossy(&output.stdout).trim_end());
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        println!("   log       {line}");
    }
    println!("   time      {:.1} ms", took.as_secs_f64() * 1000.0);
}

fn judge(call: &Call, output: &Output, known: &mut Known) -> Result<()> {
    if !output.status.success() {
        bail!("it ended with {}: the CLI takes that for a failure", output.status);
    }
    let response = answer::parse(&output.stdout)?;
    call.expect.check(&response, known)
}
