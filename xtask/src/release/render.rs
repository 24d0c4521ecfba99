//! Templates of the release's jobs, rendered by `render.rb` with Ruby's own ERB,
//! as a Director or the CLI does it.
//!
//! Properties hold secrets: they go in by stdin, and no error here quotes them.

use crate::command;
use crate::repo::Repo;
use crate::setup;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Ruby, where it is missing.
pub(crate) fn setup() -> Result<()> {
    setup::tools(&[("ruby", "ruby")])
}

/// What became of a job: its files by their paths in it.
pub(crate) struct Rendered(Value);

impl Rendered {
    pub(crate) fn file(&self, path: &str) -> Result<&str> {
        self.0["files"][path].as_str().with_context(|| format!("the job has no template for {path}"))
    }
}

/// The job in this directory, for a manifest with these properties.
pub(crate) fn job(repo: &Repo, directory: &Path, properties: &Value) -> Result<Rendered> {
    let mut ruby = command::new("ruby");
    ruby.arg(repo.root.join("xtask/render.rb")).arg(directory);
    let mut child = ruby
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("ruby could not be started; on Debian: apt-get install ruby")?;
    let mut stdin = child.stdin.take().context("ruby has no stdin")?;
    // Where it ends early, what it says about that is told below.
    drop(stdin.write_all(properties.to_string().as_bytes()));
    drop(stdin);
    let output = child.wait_with_output().context("ruby's output could not be read")?;
    if !output.status.success() {
        bail!("{} cannot be rendered: {}", directory.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).map(Rendered).context("render.rb wrote no JSON")
}
