//! `cargo xtask`: sets up, builds, demonstrates, packages and tests wasm-cpi.
//!
//! Each subcommand has a module; this file only dispatches. Engineers and CI run
//! everything through this program, so that the programs are always built with the
//! same flags. It must stay quick to compile: it depends neither on wasmtime nor on
//! the runtime.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this tool writes to a terminal")]
#![allow(clippy::disallowed_methods, reason = "the list applies to the runtime, not to its build tool")]

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
mod messages;
mod release;
mod repo;
mod setup;
mod skips;
mod source;
mod steps;
mod test;
mod tidy;
mod tree;

use anyhow::{Result, anyhow};
use arguments::Task;
use repo::Repo;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if fuzz::compiler::is_wrapper_call() {
        return fuzz::compiler::run(&arguments);
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let task = arguments::parse(arguments).map_err(|problem| anyhow!(problem))?;
    if task == Task::Help {
        print!("{}", arguments::HELP);
        return Ok(());
    }
    let repo = Repo::find()?;
    match task {
        Task::Help => Ok(()),
        Task::Setup => setup::run(&repo).map(drop),
        Task::Attack(attack) => attack::run(&repo, &attack),
        Task::Bench(bench) => bench::run(&repo, bench),
        Task::Build => build::run(&repo),
        Task::Cloud { direction, cloud } => cloud::run(&repo, direction, cloud),
        Task::Demo => demo::run(&repo),
        Task::Fuzz(fuzz) => fuzz::task(&repo, &fuzz),
        Task::Guest { directory } => guest::run(&repo, &directory),
        Task::Job(job) => job::run(&repo, &job),
        Task::Messages => messages::run(&repo.root),
        Task::Release(release) => release::run(&repo, &release),
        Task::Test(test) => test::run(&repo, &test),
        Task::Tidy => tidy::run(&repo.root),
    }
}
