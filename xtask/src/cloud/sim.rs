//! The simulators, as the program `cloud` of the tests crate, in a process in the background.

use super::processes::Processes;
use super::step::step;
use crate::arguments::Cloud;
use crate::command;
use crate::files;
use crate::repo::Repo;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

/// Stops the simulator if it runs, and starts it; returns the path of `cloud.json`.
pub(super) fn up(repo: &Repo, simulator: Cloud) -> Result<PathBuf> {
    stop(repo, simulator)?;
    let program = step("build the simulator", || build(repo))?;
    let home = super::home(repo, simulator.name());
    files::directory(&home, 0o700)?;
    let home = fs::canonicalize(&home)?;
    let cloud = home.join(super::FILE);
    step("start the simulator", || {
        let processes = Processes::new(&home, &[]);
        let mut command = processes.command(program);
        if simulator == Cloud::AwsSim {
            command.arg("--aws");
        }
        let mut started = processes.start(simulator.name(), command.arg("--state").arg(&home))?;
        let ready = started.wait("the simulator", 30, || cloud.exists());
        if ready.is_err() {
            processes.stop()?;
        }
        ready
    })?;
    Ok(cloud)
}

/// Builds the simulators and returns the path of their program.
pub(crate) fn build(repo: &Repo) -> Result<PathBuf> {
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--quiet", "--package", "tests", "--bin", "cloud"]))?;
    Ok(repo.built("cloud"))
}

/// Stops the simulator and removes its state.
pub(super) fn down(repo: &Repo, simulator: Cloud) -> Result<()> {
    step("stop the simulator and remove its state", || stop(repo, simulator))
}

fn stop(repo: &Repo, simulator: Cloud) -> Result<()> {
    let home = super::home(repo, simulator.name());
    if !home.exists() {
        return Ok(());
    }
    let home = fs::canonicalize(&home)?;
    Processes::new(&home, &[]).stop()?;
    Ok(fs::remove_dir_all(&home)?)
}
