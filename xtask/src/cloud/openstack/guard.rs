//! Takes the cloud down if we end before it is up: by Ctrl-C, or by force.
//!
//! A process of its own waits for a word from us. If our end of the pipe closes
//! without one, we are no more, and it runs `cloud down` in our place. That waits
//! for the lock, so that it cannot meet the next `cloud up`.

use crate::repo::Repo;
use anyhow::{Context, Result};
use std::env;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

pub(super) struct Guard(Child);

impl Guard {
    pub(super) fn new(repo: &Repo) -> Result<Guard> {
        let child = Command::new("sh")
            .args(["-c", "read -r word || exec \"$0\" cloud down openstack"])
            .arg(env::current_exe().context("the path of this program is not known")?)
            .env("CARGO_MANIFEST_DIR", repo.root.join("xtask"))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
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
