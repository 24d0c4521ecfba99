//! The simulator as a server of its own: the program `cloud` of the tests crate.

use super::processes::Processes;
use super::step::step;
use crate::command;
use crate::files;
use crate::repo::Repo;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

/// Starts it anew; returns the path of `cloud.json`.
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

/// Returns the program's path.
pub(crate) fn build(repo: &Repo) -> Result<PathBuf> {
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--quiet", "--package", "tests", "--bin", "cloud"]))?;
    Ok(repo.root.join("target").join(&repo.triple).join("release/cloud"))
}

pub(super) fn down(repo: &Repo) -> Result<()> {
    step("stopped and removed", || stop(repo))
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
