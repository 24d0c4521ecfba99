//! Renders the templates of the release's jobs with `render.rb`, which uses Ruby's ERB as
//! a Director and the CLI do.
//!
//! Properties contain secrets: they are passed on stdin, and no error quotes them.

use crate::command;
use crate::repo::Repo;
use crate::setup;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Installs Ruby if it is missing.
pub(crate) fn setup() -> Result<()> {
    setup::install_missing_tools(&[("ruby", "ruby")])
}

/// The rendered files of a job, by their paths in the job.
pub(crate) struct Rendered(Value);

impl Rendered {
    pub(crate) fn file(&self, path: &str) -> Result<&str> {
        self.0["files"][path].as_str().with_context(|| format!("the job has no template for {path}"))
    }
}

/// Renders the job in this directory for a manifest with these properties.
pub(crate) fn job(repo: &Repo, directory: &Path, properties: &Value) -> Result<Rendered> {
    let mut ruby = command::new("ruby");
    ruby.arg(repo.root.join("xtask/render.rb")).arg(directory);
    let mut child = ruby
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("ruby could not be started; install it, on Debian with `sudo apt-get install ruby`")?;
    let mut stdin = child.stdin.take().context("ruby has no stdin")?;
    // If ruby ends early, the error below contains its stderr.
    drop(stdin.write_all(properties.to_string().as_bytes()));
    drop(stdin);
    let output = child.wait_with_output().context("the output of ruby could not be read")?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("the templates of {} cannot be rendered: {}", directory.display(), errors.trim());
    }
    serde_json::from_slice(&output.stdout).map(Rendered).context("stdout of render.rb is not JSON")
}
