//! moto, a simulator of AWS from PyPI, in a process in the background, and the Python
//! environment that it shares with the tests that run botocore.

use super::processes::Processes;
use super::python;
use super::step::step;
use crate::files;
use crate::repo::Repo;
use crate::setup;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The Debian package without which no environment can be created.
const PACKAGE: &str = "python3-venv";

/// The file in the environment that names what it was made for.
const STAMP: &str = "made-for";

/// Stops moto if it runs, and starts it with authentication; returns the path of `cloud.json`.
pub(super) fn up(repo: &Repo) -> Result<PathBuf> {
    stop(repo)?;
    let python = step("install Python packages", || interpreter(repo))?;
    let home = super::home(repo, "moto");
    files::directory(&home, 0o700)?;
    let home = fs::canonicalize(&home)?;
    let cloud = home.join(super::FILE);
    step("start moto", || {
        let processes = Processes::new(&home, &[]);
        let mut command = processes.command(python);
        let mut started = processes.start("moto", command.arg(data(repo).join("moto_cloud.py")).arg(&cloud))?;
        let ready = started.wait("moto", 120, || cloud.exists());
        if ready.is_err() {
            processes.stop()?;
        }
        ready
    })?;
    Ok(cloud)
}

/// Stops moto and removes its state, except the Python environment.
pub(super) fn down(repo: &Repo) -> Result<()> {
    step("stop moto and remove its state", || stop(repo))
}

fn stop(repo: &Repo) -> Result<()> {
    let home = super::home(repo, "moto");
    if !home.exists() {
        return Ok(());
    }
    let home = fs::canonicalize(&home)?;
    Processes::new(&home, &[]).stop()?;
    Ok(fs::remove_dir_all(&home)?)
}

/// Returns the interpreter of an environment with botocore and moto; installs them if the
/// versions of `tests/aws/requirements.lock` are not there.
pub(crate) fn interpreter(repo: &Repo) -> Result<PathBuf> {
    let home = super::home(repo, "python-aws");
    files::directory(&home, 0o755)?;
    let home = fs::canonicalize(&home)?;
    let lock = File::create(home.join("lock"))?;
    lock.lock().with_context(|| format!("{} cannot be locked", home.join("lock").display()))?;
    let (venv, requirements) = (home.join("venv"), data(repo).join("requirements.lock"));
    let text = fs::read_to_string(&requirements);
    // Programs of an environment that was moved refer to its old place.
    let made_for = format!("{}\n{}", home.display(), text.context("requirements.lock cannot be read")?);
    if fs::read_to_string(venv.join(STAMP)).is_ok_and(|stamp| stamp == made_for) {
        return Ok(venv.join("bin/python"));
    }
    {
        let _lock = setup::lock_packages();
        setup::package(PACKAGE)?;
    }
    let installer = repo.root.join("tests/openstack/installer.lock");
    python::install(&Processes::new(&home, &[]), &venv, &installer, &requirements)?;
    files::write(&venv.join(STAMP), &made_for, 0o644)?;
    Ok(venv.join("bin/python"))
}

/// Returns the directory of the scripts and the lock file.
fn data(repo: &Repo) -> PathBuf {
    Path::new(&repo.root).join("tests/aws")
}
