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
        let mut cloud = Cloud { child, program: program.to_path_buf(), file: home.join(FILE) };
        let mut line = String::new();
        let stdout = cloud.child.stdout.as_mut().context("the simulator has no stdout")?;
        BufReader::new(stdout).read_line(&mut line).context("the simulator says nothing")?;
        if line.is_empty() {
            bail!("the simulator ended at once");
        }
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

    /// Asks its API.
    pub(super) fn contents(&self) -> Result<Contents> {
        let lines = command::read(command::new(&self.program).arg("--contents").arg(&self.file))?;
        Ok(Contents(lines.lines().map(str::to_owned).collect()))
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
    pub(super) fn beyond(&self, before: &Contents) -> Vec<String> {
        self.0.iter().filter(|line| !before.0.contains(line)).cloned().collect()
    }
}

/// Those that come and go with a deployment are told even if there are none.
impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = ["server", "port", "volume", "snapshot", "image", "network", "floating"];
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &self.0 {
            *counts.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
        }
        let others = counts.keys().copied().filter(|kind| !kinds.contains(kind));
        let told = kinds.into_iter().chain(others).map(|kind| {
            let count = counts.get(kind).copied().unwrap_or_default();
            let name = if kind == "floating" { "floating IP" } else { kind };
            format!("{count} {name}{}", if count == 1 { "" } else { "s" })
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
        let told = contents(&["floating 1", "server 1 a", "server 2 b", "group 1"]).to_string();
        let expected = "2 servers, 0 ports, 0 volumes, 0 snapshots, 0 images, 0 networks, 1 floating IP, 1 group";
        assert_eq!(told, expected);
    }

    #[test]
    fn only_what_is_new_is_left_behind() {
        let before = contents(&["network 1", "floating 1"]);
        assert_eq!(contents(&["floating 1", "port 1", "network 1"]).beyond(&before), ["port 1"]);
        assert!(before.beyond(&before).is_empty());
    }

    #[test]
    fn a_program_that_ends_at_once_is_no_cloud() {
        let dir = tempfile::tempdir().unwrap();
        let error = Cloud::start(Path::new("/bin/true"), dir.path()).err().unwrap().to_string();
        assert!(error.contains("ended at once"), "{error}");
    }
}
