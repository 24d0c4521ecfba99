//! `cargo xtask build`: both binaries and all guests, into `target/dist`.
//!
//! Cargo unifies features within one invocation, so the tool (with the compiler)
//! and the hot binary (without) are two. What else needs the results, be it
//! demo, job or tests, takes them from `target/dist` and never builds its own.

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

/// Crates of the guests' workspace that are guests; each becomes `target/dist/<name>.wasm`.
pub(crate) const GUESTS: [&str; 2] = ["probe", "openstack"];

/// The tool, with the compiler: a program and its package.
pub(crate) const TOOL: &str = "wasm-cpi";

/// What runs a call, without it: a program and its package.
pub(crate) const HOT: &str = "wasm-cpi-run";

/// Optimised as a whole: a process per call lives on few pages and short paths.
pub(crate) const WHOLE: [&str; 5] = ["--", "-C", "lto=fat", "-C", "codegen-units=1"];

/// Makes every named check switchable in both programs.
pub(crate) const HOLES_FEATURES: &str = "wasm-cpi/holes,wasm-cpi-run/holes";

/// Of programs for tests: dependencies as they ship, and little time spent on
/// optimising our own code.
const QUICK_TO_BUILD: [&str; 4] = [
    "--config",
    "profile.release.package.wasm-cpi.opt-level=1",
    "--config",
    "profile.release.package.wasm-cpi-policy.opt-level=1",
];

/// Where tests find the binaries and guests.
pub(crate) const DIST: &str = "WASM_CPI_DIST";

/// And those with holes.
pub(crate) const HOLES: &str = "WASM_CPI_HOLES_DIST";

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mut steps = Steps::new();
    everything(repo, &mut steps)?;
    eprintln!("\nbuilt: {}", repo.dist().display());
    steps.finish()
}

/// Set-up and build, as the first steps of whatever needs the binaries.
pub(crate) fn everything(repo: &Repo, steps: &mut Steps) -> Result<()> {
    programs_and(repo, steps, &GUESTS)
}

/// Both programs and some of the guests.
pub(crate) fn programs_and(repo: &Repo, steps: &mut Steps, wanted: &[&str]) -> Result<()> {
    let toolchain = steps.need("set-up", || setup::run(repo))?;
    steps.need("build the tool", || tool(repo))?;
    thread::scope(|threads| {
        // To optimise as a whole takes one core; they have a compiler and a directory of their own.
        let guests = threads.spawn(|| guests(repo, &toolchain, wanted, &repo.dist()));
        let hot = steps.need("build the hot binary", || hot(repo));
        steps.need("build the guests, what was left of it", || joined(guests)).and(hot)
    })
}

fn tool(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--package", TOOL]))?;
    publish(&repo.dist(), &repo.built(TOOL), TOOL, 0o755)
}

fn hot(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("rustc");
    cargo.args(["--release", "--package", HOT]).args(WHOLE);
    command::run(&mut cargo)?;
    publish(&repo.dist(), &repo.built(HOT), HOT, 0o755)
}

/// Both programs with every named check switchable, for mutation tests.
pub(crate) fn holes(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("build");
    cargo.args(["--release", "--package", TOOL, "--package", HOT, "--features", HOLES_FEATURES, "--bins"]);
    command::run(cargo.args(QUICK_TO_BUILD))?;
    for program in [TOOL, HOT] {
        set_aside(repo, program, &repo.holes())?;
    }
    for guest in GUESTS {
        let file = format!("{guest}.wasm");
        files::copy(&repo.dist().join(&file), &repo.holes().join(&file), 0o644)?;
    }
    Ok(())
}

/// Both programs and all guests for tests between two edits.
pub(crate) fn quick(repo: &Repo, steps: &mut Steps) -> Result<()> {
    let toolchain = steps.need("set-up", || setup::run(repo))?;
    for program in [TOOL, HOT] {
        steps.need(&format!("build {program}, hardly optimised"), || {
            let mut cargo = repo.cargo_static("build");
            command::run(cargo.args(["--release", "--package", program]).args(QUICK_TO_BUILD))?;
            set_aside(repo, program, &repo.quick())
        })?;
    }
    steps.need("build the guests", || guests(repo, &toolchain, &GUESTS, &repo.quick()))
}

fn guests(repo: &Repo, toolchain: &Toolchain, wanted: &[&str], to: &Path) -> Result<()> {
    let mut cargo = guest::cargo_build(repo, toolchain, &repo.guests())?;
    command::run(cargo.args(wanted.iter().flat_map(|guest| ["--package", guest])))?;
    for guest in wanted {
        publish(to, &guest::built(repo, guest), &format!("{guest}.wasm"), 0o644)?;
    }
    Ok(())
}

/// Publishes a program that does not ship. None is left where Cargo built it, under
/// a name that ships.
fn set_aside(repo: &Repo, program: &str, to: &Path) -> Result<()> {
    let built = repo.built(program);
    publish(to, &built, program, 0o755)?;
    fs::remove_file(&built).with_context(|| format!("{} cannot be removed", built.display()))
}

fn publish(dist: &Path, built: &Path, name: &str, mode: u32) -> Result<()> {
    files::directory(dist, 0o755)?;
    files::copy(built, &dist.join(name), mode)
}
