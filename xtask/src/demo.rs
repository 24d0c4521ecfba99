//! `cargo xtask demo`: plays a deployment on a simulated OpenStack, call by call.
//!
//! It lays out a job with the guest `openstack`, and starts its `bin/cpi` once per call
//! as the Director does: no arguments, an environment with only PATH, one JSON document
//! without a newline on stdin. Each response is checked, and printed in one line with its
//! time. At the end, the API of the cloud must report that nothing is left.

mod cloud;
mod response;
mod script;

use crate::arguments::Job;
use crate::build;
use crate::cloud::sim;
use crate::command;
use crate::files;
use crate::job::{self, JobInputs};
use crate::repo::Repo;
use crate::steps::Steps;
use anyhow::{Context, Result, bail};
use cloud::Cloud;
use script::{Call, DemoState};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// The guest of the demo.
const GUEST: &str = "openstack";

/// The only variable that the Director passes to a CPI.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mut steps = Steps::new();
    build::build_all(repo, &mut steps, &[GUEST], |_| ())?;
    let program = steps.need("build the simulator", || sim::build(repo))?;
    let demo = repo.root.join("target/demo");
    let cloud = steps.need("start a simulated OpenStack", || {
        if demo.exists() {
            fs::remove_dir_all(&demo).with_context(|| format!("{} cannot be removed", demo.display()))?;
        }
        files::directory(&demo, 0o755)?;
        Cloud::start(&program, &demo.join("cloud"))
    })?;
    steps.need("lay out a job with the openstack guest", || {
        let job = Job { out: demo.join("job"), guest: Some(GUEST.into()), replace: true, ..Job::default() };
        job::lay_out(repo, &job, &JobInputs::for_cloud(repo, cloud.file())?)?;
        write_stemcell(&demo)
    })?;
    steps.check("play a deployment, as the Director makes it", || play_deployment(&demo, &cloud));
    steps.check("check that the cloud is empty again", || {
        let left = cloud.contents()?;
        println!("    in the cloud: {left}");
        left.ensure_empty()
    });
    drop(cloud);
    steps.finish()?;
    println!("\nEvery response was as a Director expects it, and nothing is left in the cloud.");
    println!("To try it by hand: cargo xtask cloud up sim && cargo xtask job OUT --guest openstack --cloud sim");
    Ok(())
}

/// Writes the stemcell image in the form that a Director passes to a CPI: an archive of the root disk.
fn write_stemcell(demo: &Path) -> Result<()> {
    files::write(&demo.join("root.img"), "the root disk of the demo's stemcell\n", 0o644)?;
    command::read(command::new("tar").current_dir(demo).args(["-czf", "image", "root.img"])).map(drop)
}

fn play_deployment(demo: &Path, cloud: &Cloud) -> Result<()> {
    let cpi = demo.join("job/bin/cpi");
    let mut state = DemoState::new(&demo.join("image"), cloud.description()?);
    run_calls(&cpi, 1, &script::CREATION, &mut state)?;
    println!("        in the cloud: {}", cloud.contents()?);
    run_calls(&cpi, 1 + script::CREATION.len(), &script::DELETION, &mut state)
}

/// Stops at the first unexpected response, because later calls depend on it.
fn run_calls(cpi: &Path, first: usize, calls: &[Call], state: &mut DemoState) -> Result<()> {
    for (number, call) in (first..).zip(calls) {
        let start = Instant::now();
        let output = run_cpi(cpi, &call.request(number, state))?;
        let took = start.elapsed().as_secs_f64() * 1000.0;
        let (method, about) = (call.method, call.about);
        match check_response(call, &output, state) {
            Ok(result) => println!("    {number:>2}  {method:<18} {about:<14} {result:<50} {took:>7.1} ms"),
            Err(problem) => {
                let log = String::from_utf8_lossy(&output.stderr).into_owned();
                bail!("call {number}, {method} {about}: {problem:#}\n{log}");
            }
        }
    }
    Ok(())
}

fn run_cpi(cpi: &Path, request: &Value) -> Result<Output> {
    let mut child = Command::new(cpi)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} could not be started", cpi.display()))?;
    let mut stdin = child.stdin.take().context("the CPI has no stdin")?;
    // If the CPI ends without reading its request, its response decides, not the broken pipe.
    drop(stdin.write_all(request.to_string().as_bytes()));
    drop(stdin);
    child.wait_with_output().context("the output of the CPI could not be read")
}

fn check_response(call: &Call, output: &Output, state: &mut DemoState) -> Result<String> {
    if !output.status.success() {
        bail!("the CPI ended with {}, and a Director expects exit status 0", output.status);
    }
    call.expect.check(&response::parse(&output.stdout)?, state)
}
