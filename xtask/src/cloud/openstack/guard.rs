//! Takes the cloud down if we end before we meant to: by Ctrl-C, or by force.
//!
//! A process of its own waits for a word from us. If our end of the pipe closes
//! without one, we are no more, and it runs `cloud down` in our place. Where we hold
//! the lock, it shares it: the next `cloud up` waits until all is cleaned up.

use crate::repo::Repo;
use anyhow::{Context, Result};
use std::env;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Set for a `cloud down` that has inherited the lock.
pub(super) const LOCKED: &str = "WASM_CPI_CLOUD_LOCKED";

pub(crate) struct Guard(Child);

impl Guard {
    pub(super) fn new(repo: &Repo, lock: Option<&File>) -> Result<Guard> {
        let mut command = Command::new("sh");
        match lock {
            // Only to hold it: nothing is written there.
            Some(lock) => command.env(LOCKED, "1").stdout(lock.try_clone()?),
            None => command.env_remove(LOCKED).stdout(Stdio::null()),
        };
        let child = command
            .args(["-c", "read -r word || exec \"$0\" cloud down openstack"])
            .arg(env::current_exe().context("the path of this program is not known")?)
            .env("CARGO_MANIFEST_DIR", repo.root.join("xtask"))
            .process_group(0)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Ok(Guard(child.context("`sh` could not be started")?))
    }

    pub(crate) fn dismiss(mut self) -> Result<()> {
        if let Some(mut stdin) = self.0.stdin.take() {
            stdin.write_all(b"up\n")?;
        }
        self.0.wait()?;
        Ok(())
    }
}
