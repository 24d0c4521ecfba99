//! Python environments with exactly the packages of a lock file.

use super::processes::Processes;
use crate::command;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// The interpreter of the system.
pub(super) const SYSTEM: &str = "/usr/bin/python3";

/// Creates an environment, or replaces it, and installs the packages of `lock` with the
/// installer of `installer`. Both installers reject files whose digest is not in the lock file.
pub(super) fn install(processes: &Processes, venv: &Path, installer: &Path, lock: &Path) -> Result<()> {
    let run = |command: &mut Command| {
        let run = processes.run("python", command);
        run.context(
            "the packages could not be installed from PyPI, or from the index that pip and uv are configured for",
        )
    };
    run(command::new(SYSTEM).args(["-m", "venv", "--clear"]).arg(venv))?;
    let bin = venv.join("bin");
    let install = ["install", "--quiet", "--no-deps", "--require-hashes", "-r"];
    let mut pip = command::new(bin.join("pip"));
    run(pip.arg("--disable-pip-version-check").args(install).arg(installer))?;
    // uv installs a hundred packages in seconds; pip takes minutes.
    let mut uv = command::new(bin.join("uv"));
    uv.arg("pip").args(install).arg(lock);
    run(uv.arg("--python").arg(bin.join("python")))
}
