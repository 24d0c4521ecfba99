//! Takes the cloud down if we end before it is up: by Ctrl-C, or by force.
//!
//! A process of its own waits for a word from us. If our end of the pipe closes
//! without one, we are no more, and it runs `cloud down` in our place. It shares our
//! lock, which so outlives us: the next `cloud up` waits until all is cleaned up.

use crate::repo::Repo;
use anyhow::{Context, Result};
use std::env;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Set for a `cloud down` that has inherited the lock.
pub(super) const LOCKED: &str = "WASM_CPI_CLOUD_LOCKED";

pub(super) struct Guard(Child);

impl Guard {
    pub(super) fn new(repo: &Repo, lock: &File) -> Result<Guard> {
        let child = Command::new("sh")
            .args(["-c", "read -r word || exec \"$0\" cloud down openstack"])
            .arg(env::current_exe().context("the path of this program is not known")?)
            .env("CARGO_MANIFEST_DIR", repo.root.join("xtask"))
            .env(LOCKED, "1")
            .process_group(0)
            .stdin(Stdio::piped())
            // Only to hold it: nothing is written there.
            .stdout(lock.try_clone()?)
            .stderr(Stdio::null())
            .spawn();
        Ok(Guard(child.context("`sh` could not be started")?))
    }

    pub(super) fn dismiss(mut self) -> Result<()> {
        if let Some(mut stdin) = self.0.stdin.take() {
            stdin.write_all(b"up\n")?;
        }
        self.0.wait()?;
        Ok(())
    }
}
