//! `cargo xtask bench`: the built runtime beside native programs, in one run.
//!
//! Builds what it needs, the peers in Rust and Go among it, and starts the
//! program `bench` of the tests crate, which measures. Table, JSON and chart end
//! up in `target/bench`.

use crate::arguments::{Bench, Job};
use crate::build;
use crate::command;
use crate::files;
use crate::job::{self, Given};
use crate::repo::Repo;
use crate::setup;
use crate::steps::Steps;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// What the peers are built and run with, by the package that has it.
const TOOLS: [(&str, &str); 3] = [("go", "golang-go"), ("ruby", "ruby"), ("curl", "curl")];

/// Peers in Rust, by the name of their program.
const NATIVE: [&str; 2] = ["peer-echo", "peer-https"];

pub(crate) fn run(repo: &Repo, how: Bench) -> Result<()> {
    let out = repo.root.join("target/bench");
    let (peers, laid_out) = (out.join("peers"), out.join("job"));
    let mut steps = Steps::new();
    build::everything(repo, &mut steps)?;
    steps.need("tools", || setup::tools(&TOOLS))?;
    steps.need("build the peers", || build_peers(repo, &peers))?;
    let job = Job { out: laid_out.clone(), no_build: true, ..Job::default() };
    steps.need("lay out a job", || job::lay_out(repo, &job, &Given::new(repo, &job)?))?;
    let program = steps.need("build the measuring program", || built(repo))?;
    steps.check("measure", || {
        let mut bench = command::new(program);
        bench.args((how == Bench::Quick).then_some("--quick")).args([&laid_out, &peers, &out]);
        command::run(bench.env(build::DIST, repo.dist()))
    });
    eprintln!("\nthe figures as JSON and as a chart: {}", out.display());
    steps.finish()
}

fn build_peers(repo: &Repo, peers: &Path) -> Result<()> {
    let sources = repo.root.join("tests/bench/peers");
    files::directory(peers, 0o755)?;
    for program in NATIVE {
        // As the hot binary is.
        let mut cargo = repo.cargo_static("rustc");
        cargo.args(["--release", "--package", "peers", "--bin", program]);
        command::run(cargo.args(build::WHOLE))?;
        files::copy(&repo.built(program), &peers.join(program), 0o755)?;
    }
    files::copy(&sources.join("ruby/cpi.rb"), &peers.join("cpi.rb"), 0o644)?;
    let mut go = command::new("go");
    // As small and as quick to start as Go makes it.
    go.args(["build", "-trimpath", "-ldflags=-s -w", "-o"]).arg(peers.join("peer-go")).arg("main.go");
    command::run(go.current_dir(sources.join("go")).env("GOFLAGS", "-mod=mod").env("GO111MODULE", "off"))
}

fn built(repo: &Repo) -> Result<PathBuf> {
    command::run(repo.cargo_static("build").args(["--release", "--package", "tests", "--bin", "bench"]))?;
    Ok(repo.built("bench"))
}
