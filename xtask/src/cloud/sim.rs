//! The simulator, as the program `cloud` of the tests crate, in a process in the background.

use super::processes::Processes;
use super::step::step;
use crate::command;
use crate::files;
use crate::repo::Repo;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

/// Stops the simulator if it runs, and starts it; returns the path of `cloud.json`.
pub(super) fn up(repo: &Repo) -> Result<PathBuf> {
    stop(repo)?;
    let program = step("build the simulator", || build(repo))?;
    let home = super::home(repo, "sim");
    files::directory(&home, 0o700)?;
    let home = fs::canonicalize(&home)?;
    let cloud = home.join(super::FILE);
    step("start the simulator", || {
        let processes = Processes::new(&home, &[]);
        let mut started = processes.start("sim", processes.command(program).arg("--state").arg(&home))?;
        let ready = started.wait("the simulator", 30, || cloud.exists());
        if ready.is_err() {
            processes.stop()?;
        }
        ready
    })?;
    Ok(cloud)
}

/// Builds the simulator and returns the path of the program.
pub(crate) fn build(repo: &Repo) -> Result<PathBuf> {
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--quiet", "--package", "tests", "--bin", "cloud"]))?;
    Ok(repo.built("cloud"))
}

pub(super) fn down(repo: &Repo) -> Result<()> {
    step("stop the simulator and remove its state", || stop(repo))
}

fn stop(repo: &Repo) -> Result<()> {
    let home = super::home(repo, "sim");
    if !home.exists() {
        return Ok(());
    }
    let home = fs::canonicalize(&home)?;
    Processes::new(&home, &[]).stop()?;
    Ok(fs::remove_dir_all(&home)?)
}
