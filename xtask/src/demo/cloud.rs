//! The simulator that the demo plays on, and what is in it.
//!
//! A child that ends when our end of its stdin closes: with the demo, however
//! that ends. It keeps away from the one of `cargo xtask cloud up sim`.

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
    /// What an operator has made before the first deployment.
    before: Vec<String>,
}

impl Cloud {
    /// Returns when it answers.
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
        BufReader::new(stdout).read_line(&mut line).context("the simulator says nothing")?;
        if line.is_empty() {
            bail!("the simulator ended at once");
        }
        cloud.before = cloud.all()?;
        Ok(cloud)
    }

    /// What it says about itself.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn told(&self) -> Result<Value> {
        serde_json::from_str(&fs::read_to_string(&self.file)?)
            .with_context(|| format!("{} is not JSON", self.file.display()))
    }

    /// What came since it was started, by its API.
    pub(super) fn contents(&self) -> Result<Contents> {
        Ok(Contents(self.all()?.into_iter().filter(|line| !self.before.contains(line)).collect()))
    }

    fn all(&self) -> Result<Vec<String>> {
        let lines = command::read(command::new(&self.program).arg("--contents").arg(&self.file))?;
        Ok(lines.lines().map(str::to_owned).collect())
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        // Gone already is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// One line per thing, which begins with its kind.
pub(super) struct Contents(Vec<String>);

impl Contents {
    pub(super) fn none(&self) -> Result<()> {
        if !self.0.is_empty() {
            bail!("left behind:\n      {}", self.0.join("\n      "));
        }
        Ok(())
    }
}

/// Those that come and go with a deployment are told even if there are none.
impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = ["server", "port", "volume", "snapshot", "image"];
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &self.0 {
            *counts.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
        }
        let others = counts.keys().copied().filter(|kind| !kinds.contains(kind));
        let told = kinds.into_iter().chain(others).map(|kind| {
            let count = counts.get(kind).copied().unwrap_or_default();
            format!("{count} {kind}{}", if count == 1 { "" } else { "s" })
        });
        f.write_str(&told.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(lines: &[&str]) -> Contents {
        Contents(lines.iter().map(|&line| line.to_owned()).collect())
    }

    #[test]
    fn what_is_there_is_counted_by_its_kind() {
        let told = contents(&["server 1 a", "server 2 b", "port 1", "group 1"]).to_string();
        assert_eq!(told, "2 servers, 1 port, 0 volumes, 0 snapshots, 0 images, 1 group");
    }

    #[test]
    fn what_is_left_is_named() {
        let error = contents(&["port 1 of-nobody"]).none().unwrap_err().to_string();
        assert!(error.contains("port 1 of-nobody"), "{error}");
        contents(&[]).none().unwrap();
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let (program, things) = (dir.path().join("program"), dir.path().join("things"));
        let script = format!("#!/bin/sh\n[ $1 = --state ] && echo up && exec cat\ncat {}\n", things.display());
        crate::files::write(&program, &script, 0o755).unwrap();
        fs::write(&things, "network 1\n").unwrap();
        let cloud = Cloud::start(&program, dir.path()).unwrap();
        assert_eq!(cloud.contents().unwrap().0, Vec::<String>::new());
        fs::write(&things, "network 1\nport 1\n").unwrap();
        assert_eq!(cloud.contents().unwrap().0, ["port 1"]);
    }

    #[test]
    fn a_program_that_ends_at_once_is_no_cloud() {
        let dir = tempfile::tempdir().unwrap();
        let error = Cloud::start(Path::new("/bin/true"), dir.path()).err().unwrap().to_string();
        assert!(error.contains("ended at once"), "{error}");
    }
}
