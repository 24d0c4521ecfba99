//! `cargo xtask build`: builds both programs and all guests into `target/dist`.
//!
//! Cargo unifies the features of one build, so the tool (with the compiler) and the hot
//! program (without it) are two builds. Demo, job, release and tests use the results in
//! `target/dist`, and never build their own.

use crate::command;
use crate::files;
use crate::guest;
use crate::repo::Repo;
use crate::setup::{self, Toolchain};
use crate::steps::{Steps, joined};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::thread;

/// The guests in the guests' workspace; each is built as `target/dist/<name>.wasm`.
pub(crate) const GUESTS: &[&str] = &["probe", "openstack", "aws"];

/// The tool, with the compiler: the name of the program and of its package.
pub(crate) const TOOL: &str = "wasm-cpi";

/// The hot program, which runs a call, without the compiler: the name of the program and of its package.
pub(crate) const HOT: &str = "wasm-cpi-run";

/// The arguments for link-time optimisation, for a program that is smaller and starts faster: each call is a new process.
pub(crate) const LTO_ARGUMENTS: [&str; 5] = ["--", "-C", "lto=fat", "-C", "codegen-units=1"];

/// The features with which every named check of both programs can be turned off.
pub(crate) const MUTANTS_FEATURES: &str = "wasm-cpi/mutation-testing,wasm-cpi-run/mutation-testing";

/// Options for programs that only tests use: dependencies are built as they ship, our own
/// code is optimised little.
const QUICK_TO_BUILD: [&str; 4] = [
    "--config",
    "profile.release.package.wasm-cpi.opt-level=1",
    "--config",
    "profile.release.package.wasm-cpi-policy.opt-level=1",
];

/// The variable that names the directory of programs and guests for tests.
pub(crate) const DIST: &str = "WASM_CPI_DIST";

/// The variable that names the directory of programs for mutation tests.
pub(crate) const MUTANTS: &str = "WASM_CPI_MUTANTS_DIST";

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mut steps = Steps::new();
    build_everything(repo, &mut steps)?;
    eprintln!("\nPrograms and guests are in {}", repo.dist().display());
    steps.finish()
}

/// Sets up, and builds both programs and all guests.
pub(crate) fn build_everything(repo: &Repo, steps: &mut Steps) -> Result<()> {
    build_all(repo, steps, GUESTS, |_| ())
}

/// Sets up, and builds both programs and the guests `wanted`. Link-time optimisation of the hot program takes minutes on
/// one core, so the guests are built at the same time, followed by the steps of `meanwhile`. Those
/// must not use the directory that the programs are built in, which cargo locks.
pub(crate) fn build_all(
    repo: &Repo,
    steps: &mut Steps,
    wanted: &[&str],
    meanwhile: impl FnOnce(&mut Steps),
) -> Result<()> {
    let toolchain = steps.need("set-up", || setup::run(repo))?;
    steps.need("build the tool", || tool(repo))?;
    thread::scope(|threads| {
        let hot = threads.spawn(|| hot(repo));
        let guests = steps.need("build the guests", || guests(repo, &toolchain, wanted, &repo.dist()));
        meanwhile(steps);
        steps.need("build the hot program, the rest of it", || joined(hot)).and(guests)
    })
}

fn tool(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--package", TOOL]))?;
    publish(&repo.dist(), &repo.built(TOOL), TOOL, 0o755)
}

fn hot(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("rustc");
    cargo.args(["--release", "--package", HOT]).args(LTO_ARGUMENTS);
    command::run(&mut cargo)?;
    publish(&repo.dist(), &repo.built(HOT), HOT, 0o755)
}

/// Builds both programs so that every named check can be turned off, for mutation tests.
pub(crate) fn mutants(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("build");
    cargo.args(["--release", "--package", TOOL, "--package", HOT, "--features", MUTANTS_FEATURES, "--bins"]);
    command::run(cargo.args(QUICK_TO_BUILD))?;
    for program in [TOOL, HOT] {
        set_aside(repo, program, &repo.mutants())?;
    }
    for guest in GUESTS {
        let file = format!("{guest}.wasm");
        files::copy(&repo.dist().join(&file), &repo.mutants().join(&file), 0o644)?;
    }
    Ok(())
}

/// Builds both programs and all guests for `cargo xtask test --quick`.
pub(crate) fn quick(repo: &Repo, steps: &mut Steps) -> Result<()> {
    let toolchain = steps.need("set-up", || setup::run(repo))?;
    for program in [TOOL, HOT] {
        steps.need(&format!("build {program} with little optimisation"), || {
            let mut cargo = repo.cargo_static("build");
            command::run(cargo.args(["--release", "--package", program]).args(QUICK_TO_BUILD))?;
            set_aside(repo, program, &repo.quick())
        })?;
    }
    steps.need("build the guests", || guests(repo, &toolchain, GUESTS, &repo.quick()))
}

fn guests(repo: &Repo, toolchain: &Toolchain, wanted: &[&str], to: &Path) -> Result<()> {
    let mut cargo = guest::cargo_build(toolchain, &repo.guests())?;
    command::run(cargo.args(wanted.iter().flat_map(|guest| ["--package", guest])))?;
    for guest in wanted {
        // Cargo names a library after its package, with underscores.
        let library = guest.replace('-', "_");
        publish(to, &guest::component(&repo.guests().join("target"), &library), &format!("{guest}.wasm"), 0o644)?;
    }
    Ok(())
}

/// Moves a program that does not ship out of cargo's directory, where it has the name of one that ships.
fn set_aside(repo: &Repo, program: &str, to: &Path) -> Result<()> {
    let built = repo.built(program);
    publish(to, &built, program, 0o755)?;
    fs::remove_file(&built).with_context(|| format!("{} cannot be removed", built.display()))
}

fn publish(dist: &Path, built: &Path, name: &str, mode: u32) -> Result<()> {
    files::directory(dist, 0o755)?;
    files::copy(built, &dist.join(name), mode)
}
