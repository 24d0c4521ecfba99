//! `cargo xtask build`: both binaries and all guests, into `target/dist`.
//!
//! Cargo unifies features within one invocation, so the tool (with the compiler)
//! and the hot binary (without) are two. What else needs the results, be it
//! demo, job or tests, takes them from `target/dist` and never builds its own.

use crate::command;
use crate::files;
use crate::repo::Repo;
use crate::setup::{self, TARGET, Toolchain};
use crate::steps::Steps;
use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Crates of the guests' workspace that are guests; each becomes `target/dist/<name>.wasm`.
pub(crate) const GUESTS: [&str; 1] = ["probe"];

/// The tool, with the compiler.
pub(crate) const TOOL: &str = "wasm-cpi";

/// What runs a call, without it.
pub(crate) const HOT: &str = "wasm-cpi-run";

pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mut steps = Steps::new();
    everything(repo, &mut steps)?;
    eprintln!("\nbuilt: {}", repo.dist().display());
    steps.finish()
}

/// Set-up and build, as the first steps of whatever needs the binaries.
pub(crate) fn everything(repo: &Repo, steps: &mut Steps) -> Result<()> {
    let toolchain = steps.need("set-up", || setup::run(repo))?;
    steps.need("build the tool", || tool(repo))?;
    steps.need("build the hot binary", || hot(repo))?;
    steps.need("build the guests", || guests(repo, &toolchain))
}

fn tool(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--package", "wasm-cpi", "--features", "compiler", "--bin", TOOL]))?;
    publish(repo, &format!("target/{}/release/{TOOL}", repo.triple), TOOL, 0o755)
}

fn hot(repo: &Repo) -> Result<()> {
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--profile", "hot", "--package", "wasm-cpi", "--bin", HOT]))?;
    publish(repo, &format!("target/{}/hot/{HOT}", repo.triple), HOT, 0o755)
}

fn guests(repo: &Repo, toolchain: &Toolchain) -> Result<()> {
    let mut cargo = match toolchain {
        Toolchain::Rustup => repo.cargo_guests("build"),
        Toolchain::Debian { linkers } => debian_cargo(repo, linkers)?,
    };
    cargo.args(["--release", "--target", TARGET]);
    for guest in GUESTS {
        cargo.args(["--package", guest]);
    }
    command::run(&mut cargo)?;
    for guest in GUESTS {
        let built = format!("guests/target/{TARGET}/release/{}.wasm", guest.replace('-', "_"));
        publish(repo, &built, &format!("{guest}.wasm"), 0o644)?;
    }
    Ok(())
}

/// Debian's compiler comes without std for the target: it is built once per
/// target directory, and linked against Debian's WASI libc.
fn debian_cargo(repo: &Repo, linkers: &Path) -> Result<Command> {
    let mut cargo = command::new("/usr/bin/cargo");
    cargo
        .current_dir(repo.guests())
        .args(["build", "-Zbuild-std=std,panic_abort", "--target-dir"])
        .arg(repo.guests().join("target"))
        .env("PATH", path_with(linkers)?)
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTC_BOOTSTRAP", "1")
        .env(
            "RUSTFLAGS",
            "-L native=/usr/lib/wasm32-wasi -C link-self-contained=no -C link-arg=/usr/lib/wasm32-wasi/crt1-reactor.o",
        )
        // Both point into rustup's toolchain when cargo runs us.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("RUSTUP_TOOLCHAIN");
    Ok(cargo)
}

fn path_with(first: &Path) -> Result<OsString> {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(first.to_path_buf()).chain(env::split_paths(&inherited));
    env::join_paths(all).context("the toolchain's path cannot be put into PATH")
}

fn publish(repo: &Repo, built: &str, name: &str, mode: u32) -> Result<()> {
    files::directory(&repo.dist(), 0o755)?;
    files::copy(&repo.root.join(built), &repo.dist().join(name), mode)
}
