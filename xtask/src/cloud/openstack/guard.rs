//! Stops the cloud if this process ends early: by Ctrl-C, or because it is killed.
//!
//! A child process reads from a pipe. If the pipe closes before a line arrives, this
//! process has ended, and the child runs `cloud down`. If this process holds the lock, the
//! child shares it, so that the next `cloud up` waits until the cleanup is complete.

use crate::repo::Repo;
use anyhow::{Context, Result};
use std::env;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The variable that is set for a `cloud down` that has inherited the lock.
pub(super) const LOCKED: &str = "WASM_CPI_CLOUD_LOCKED";

pub(crate) struct Guard(Child);

impl Guard {
    pub(super) fn new(repo: &Repo, lock: Option<&File>) -> Result<Guard> {
        let mut command = Command::new("sh");
        match lock {
            // The child holds the lock by this descriptor; nothing is written to it.
            Some(lock) => command.env(LOCKED, "1").stdout(lock.try_clone()?),
            None => command.env_remove(LOCKED).stdout(Stdio::null()),
        };
        let child = command
            .args(["-c", "read -r line || exec \"$0\" cloud down openstack"])
            .arg(env::current_exe().context("the path of this program cannot be read")?)
            .env("CARGO_MANIFEST_DIR", repo.root.join("xtask"))
            .process_group(0)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Ok(Guard(child.context("`sh` could not be started")?))
    }

    /// Ends the child process; the cloud is not stopped.
    pub(crate) fn dismiss(mut self) -> Result<()> {
        if let Some(mut stdin) = self.0.stdin.take() {
            stdin.write_all(b"up\n")?;
        }
        self.0.wait()?;
        Ok(())
    }
}
