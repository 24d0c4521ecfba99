//! The simulator of the demo, and its contents.
//!
//! The simulator is a child process that ends when its stdin closes, so it always ends
//! with the demo. It is independent of the one that `cargo xtask cloud up sim` starts.

use crate::cloud::FILE;
use crate::command;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

pub(super) struct Cloud {
    child: Child,
    program: PathBuf,
    file: PathBuf,
    /// The contents of the cloud before the first call.
    before: Vec<String>,
}

impl Cloud {
    /// Starts the simulator, and returns when it answers.
    pub(super) fn start(program: &Path, home: &Path) -> Result<Cloud> {
        let child = command::new(program)
            .arg("--state")
            .arg(home)
            .arg("--until-eof")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the simulator could not be started")?;
        let mut cloud = Cloud { child, program: program.to_path_buf(), file: home.join(FILE), before: vec![] };
        let mut line = String::new();
        let stdout = cloud.child.stdout.as_mut().context("the simulator has no stdout")?;
        BufReader::new(stdout).read_line(&mut line).context("the simulator's output cannot be read")?;
        if line.is_empty() {
            bail!("the simulator ended before it was ready; its output is above");
        }
        cloud.before = cloud.list()?;
        Ok(cloud)
    }

    /// Returns the path of `cloud.json`.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads `cloud.json`.
    pub(super) fn description(&self) -> Result<Value> {
        serde_json::from_str(&fs::read_to_string(&self.file)?)
            .with_context(|| format!("{} is not JSON", self.file.display()))
    }

    /// Returns what was created since the start, as the cloud's API reports it.
    pub(super) fn contents(&self) -> Result<Contents> {
        Ok(Contents(self.list()?.into_iter().filter(|line| !self.before.contains(line)).collect()))
    }

    fn list(&self) -> Result<Vec<String>> {
        let lines = command::read(command::new(&self.program).arg("--contents").arg(&self.file))?;
        Ok(lines.lines().map(str::to_owned).collect())
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        // An error means that it has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// One line per resource; a line starts with the kind of the resource.
pub(super) struct Contents(Vec<String>);

impl Contents {
    pub(super) fn ensure_empty(&self) -> Result<()> {
        if !self.0.is_empty() {
            bail!("the cloud must be empty, and these resources are left:\n      {}", self.0.join("\n      "));
        }
        Ok(())
    }
}

/// Shows a count for each kind that a deployment creates, even if it is zero.
impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = ["server", "port", "volume", "snapshot", "image"];
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &self.0 {
            *counts.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
        }
        let others = counts.keys().copied().filter(|kind| !kinds.contains(kind));
        let shown = kinds.into_iter().chain(others).map(|kind| {
            let count = counts.get(kind).copied().unwrap_or_default();
            format!("{count} {kind}{}", if count == 1 { "" } else { "s" })
        });
        f.write_str(&shown.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(lines: &[&str]) -> Contents {
        Contents(lines.iter().map(|&line| line.to_owned()).collect())
    }

    #[test]
    fn contents_are_counted_by_kind() {
        let shown = contents(&["server 1 a", "server 2 b", "port 1", "group 1"]).to_string();
        assert_eq!(shown, "2 servers, 1 port, 0 volumes, 0 snapshots, 0 images, 1 group");
    }

    #[test]
    fn the_error_names_the_resources_that_are_left() {
        let error = contents(&["port 1 unused"]).ensure_empty().unwrap_err().to_string();
        assert!(error.contains("port 1 unused"), "{error}");
        contents(&[]).ensure_empty().unwrap();
    }

    #[test]
    fn resources_from_before_the_start_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let (program, resources) = (dir.path().join("program"), dir.path().join("resources"));
        let script = format!("#!/bin/sh\n[ $1 = --state ] && echo up && exec cat\ncat {}\n", resources.display());
        crate::files::write(&program, &script, 0o755).unwrap();
        fs::write(&resources, "network 1\n").unwrap();
        let cloud = Cloud::start(&program, dir.path()).unwrap();
        assert_eq!(cloud.contents().unwrap().0, Vec::<String>::new());
        fs::write(&resources, "network 1\nport 1\n").unwrap();
        assert_eq!(cloud.contents().unwrap().0, ["port 1"]);
    }

    #[test]
    fn a_simulator_that_ends_at_once_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = Cloud::start(Path::new("/bin/true"), dir.path()).err().unwrap().to_string();
        assert!(error.contains("ended before it was ready"), "{error}");
    }
}
