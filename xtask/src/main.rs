//! `cargo xtask`: sets up, builds, shows, packages and tests wasm-cpi.
//!
//! One module per subcommand; this file only chooses. Everything that the
//! project runs by hand or in CI goes through here, so that there is one way to
//! build the binaries. It must stay quick to compile: no wasmtime, no runtime.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]
#![allow(clippy::disallowed_methods, reason = "the list binds the runtime, not its build tool")]

mod arguments;
mod attack;
mod bench;
mod build;
mod cloud;
mod command;
mod demo;
mod deny;
mod features;
mod files;
mod fuzz;
mod guest;
mod job;
mod release;
mod repo;
mod setup;
mod skips;
mod steps;
mod suite;
mod tidy;

use anyhow::{Result, anyhow};
use arguments::Task;
use repo::Repo;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if fuzz::compiler::is_called() {
        return fuzz::compiler::run(&words);
    }
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let task = arguments::parse(words).map_err(|problem| anyhow!(problem))?;
    if task == Task::Help {
        print!("{}", arguments::HELP);
        return Ok(());
    }
    let repo = Repo::find()?;
    match task {
        Task::Help => Ok(()),
        Task::Setup => setup::run(&repo).map(drop),
        Task::Attack(attack) => attack::run(&repo, &attack),
        Task::Bench(how) => bench::run(&repo, how),
        Task::Build => build::run(&repo),
        Task::Cloud { direction, cloud } => cloud::run(&repo, direction, cloud),
        Task::Demo => demo::run(&repo),
        Task::Fuzz(fuzz) => fuzz::task(&repo, &fuzz),
        Task::Guest { directory } => guest::run(&repo, &directory),
        Task::Job(job) => job::run(&repo, &job),
        Task::Release(release) => release::run(&repo, &release),
        Task::Test(test) => suite::run(&repo, &test),
        Task::Tidy => tidy::run(&repo.root),
    }
}
