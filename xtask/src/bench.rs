//! `cargo xtask bench`: measures the built runtime and native programs in one run.
//!
//! It builds everything that is needed, including the peers in Rust and Go, and starts
//! the program `bench` of the tests crate, which measures. The figures are written to
//! `target/bench` as JSON and as a chart. With `--wire`, the program lays out its jobs
//! itself, because they contain the addresses of its cloud. If the real OpenStack is up,
//! it is measured, too.

use crate::arguments::{Bench, Cloud, Job};
use crate::build;
use crate::cloud::{self, openstack};
use crate::command;
use crate::files;
use crate::job::{self, JobInputs};
use crate::repo::Repo;
use crate::setup;
use crate::steps::Steps;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The programs that build and run the peers, each with its Debian package.
const TOOLS: [(&str, &str); 3] = [("go", "golang-go"), ("ruby", "ruby"), ("curl", "curl")];

/// The programs of the peers in Rust.
const NATIVE: [&str; 2] = ["peer-echo", "peer-https"];

pub(crate) fn run(repo: &Repo, bench: Bench) -> Result<()> {
    let out = repo.root.join("target/bench");
    let peers = out.join("peers");
    let mut steps = Steps::new();
    build::build_everything(repo, &mut steps)?;
    steps.need("install tools", || setup::install_missing_tools(&TOOLS))?;
    steps.need("build the peers", || {
        files::directory(&peers, 0o755)?;
        if bench.wire { build_go_peer(repo, "go-wire", &peers) } else { build_peers(repo, &peers) }
    })?;
    if !bench.wire {
        let job = Job { out: out.join("job"), no_build: true, ..Job::default() };
        steps.need("lay out a job", || job::lay_out(repo, &job, &JobInputs::new(repo, &job)?))?;
    }
    let program = steps.need("build the benchmark program", || build_benchmark(repo))?;
    let openstack =
        if bench.wire { steps.need("look for the real OpenStack", || running_openstack(repo))? } else { None };
    steps.check("measure", || {
        let mut program = command::new(program);
        program.args(bench.wire.then_some("--wire")).args(bench.quick.then_some("--quick")).arg(&out);
        program.envs(openstack.map(|cloud| (openstack::VARIABLE, cloud)));
        command::run(program.env(build::DIST, repo.dist()))
    });
    eprintln!("\nThe figures as JSON and as a chart are in {}", out.display());
    steps.finish()
}

fn build_peers(repo: &Repo, peers: &Path) -> Result<()> {
    for program in NATIVE {
        // Built like the hot program, so that the comparison is fair.
        let mut cargo = repo.cargo_static("rustc");
        cargo.args(["--release", "--package", "peers", "--bin", program]);
        command::run(cargo.args(build::LTO_ARGUMENTS))?;
        files::copy(&repo.built(program), &peers.join(program), 0o755)?;
    }
    files::copy(&sources(repo).join("ruby/cpi.rb"), &peers.join("cpi.rb"), 0o644)?;
    build_go_peer(repo, "go", peers)
}

/// Builds the Go program in this directory of the peers as `peer-DIRECTORY`.
fn build_go_peer(repo: &Repo, directory: &str, peers: &Path) -> Result<()> {
    let program = peers.join(format!("peer-{directory}"));
    let mut go = command::new("go");
    // Without debug information, as Go programs are usually shipped.
    go.args(["build", "-trimpath", "-ldflags=-s -w", "-o"]).arg(program).arg("main.go");
    command::run(go.current_dir(sources(repo).join(directory)).env("GOFLAGS", "-mod=mod").env("GO111MODULE", "off"))
}

/// Returns the `cloud.json` of the real OpenStack if it is up. It is not started for the benchmark, because that takes
/// minutes.
fn running_openstack(repo: &Repo) -> Result<Option<PathBuf>> {
    Ok(if openstack::is_up(repo)? { Some(cloud::file(repo, Cloud::Openstack)?) } else { None })
}

fn sources(repo: &Repo) -> PathBuf {
    repo.root.join("tests/bench/peers")
}

fn build_benchmark(repo: &Repo) -> Result<PathBuf> {
    command::run(repo.cargo_static("build").args(["--release", "--package", "tests", "--bin", "bench"]))?;
    Ok(repo.built("bench"))
}
