//! `cargo xtask demo`: a deployment on a simulated OpenStack, call by call.
//!
//! A job with the guest `openstack` is laid out, and its `bin/cpi` started once per
//! call as the Director does: no arguments, an environment with PATH alone, one JSON
//! document without a newline on stdin. Each answer is checked and shown in a line
//! with its time. In the end the cloud itself is asked whether it is as before.

mod answer;
mod cloud;
mod script;

use crate::arguments::Job;
use crate::build;
use crate::cloud::sim;
use crate::command;
use crate::files;
use crate::job::{self, Given};
use crate::repo::Repo;
use crate::steps::Steps;
use anyhow::{Context, Result, bail};
use cloud::Cloud;
use script::{Call, Known};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// The one guest that is built for it.
const GUEST: &str = "openstack";

/// What the Director leaves of its environment.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mut steps = Steps::new();
    build::programs_and(repo, &mut steps, &[GUEST])?;
    let program = steps.need("build the simulator", || sim::build(repo))?;
    let demo = repo.root.join("target/demo");
    let cloud = steps.need("start a simulated OpenStack", || {
        if demo.exists() {
            fs::remove_dir_all(&demo).with_context(|| format!("{} could not be emptied", demo.display()))?;
        }
        files::directory(&demo, 0o755)?;
        Cloud::start(&program, &demo.join("cloud"))
    })?;
    steps.need("lay out a job with the openstack guest", || {
        let job = Job { out: demo.join("job"), guest: Some(GUEST.into()), ..Job::default() };
        job::lay_out(repo, &job, &Given::for_cloud(repo, cloud.file())?)?;
        stemcell(&demo)
    })?;
    steps.check("a deployment, as the Director makes it", || deployment(&demo, &cloud));
    steps.check("the cloud is empty again", || {
        let left = cloud.contents()?;
        println!("    in the cloud: {left}");
        left.none()
    });
    drop(cloud);
    steps.finish()?;
    println!("\nEvery answer was as a Director expects it, and nothing is left in the cloud.");
    println!("By hand: cargo xtask cloud up sim && cargo xtask job OUT --guest openstack --cloud sim");
    Ok(())
}

/// What the Director hands over of a stemcell: an archive with the root disk.
fn stemcell(demo: &Path) -> Result<()> {
    files::write(&demo.join("root.img"), "the root disk of a stemcell, for show\n", 0o644)?;
    command::read(command::new("tar").current_dir(demo).args(["-czf", "image", "root.img"])).map(drop)
}

fn deployment(demo: &Path, cloud: &Cloud) -> Result<()> {
    let cpi = demo.join("job/bin/cpi");
    let mut known = Known::new(&demo.join("image"), cloud.told()?);
    calls(&cpi, 1, &script::COMING, &mut known)?;
    println!("        in the cloud: {}", cloud.contents()?);
    calls(&cpi, 1 + script::COMING.len(), &script::GOING, &mut known)
}

/// Ends at the first that is not answered as expected: the others build on it.
fn calls(cpi: &Path, first: usize, calls: &[Call], known: &mut Known) -> Result<()> {
    for (number, call) in (first..).zip(calls) {
        let begun = Instant::now();
        let output = start(cpi, &call.request(number, known))?;
        let took = begun.elapsed().as_secs_f64() * 1000.0;
        let (method, about) = (call.method, call.about);
        match judge(call, &output, known) {
            Ok(result) => println!("    {number:>2}  {method:<18} {about:<14} {result:<50} {took:>7.1} ms"),
            Err(problem) => {
                let log = String::from_utf8_lossy(&output.stderr).into_owned();
                bail!("{number}. {method} {about}: {problem:#}\n{log}");
            }
        }
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

fn judge(call: &Call, output: &Output, known: &mut Known) -> Result<String> {
    if !output.status.success() {
        bail!("it ended with {}: the CLI takes that for a failure", output.status);
    }
    call.expect.check(&answer::parse(&output.stdout)?, known)
}
