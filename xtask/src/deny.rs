//! cargo-deny: checks which crates, licences and sources the workspaces use.
//!
//! One pinned version is built once into `target/tools`. Advisories need a database from
//! the network: if it cannot be fetched, this check is reported as skipped, never as passed.

use crate::command;
use crate::repo::Repo;
use crate::steps::Done;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The newest version that our compiler builds.
const VERSION: &str = "0.20.2";

/// The time limit for fetching the advisory database.
const FETCH: Duration = Duration::from_secs(90);

/// Returns the path of cargo-deny; builds it if this version is not installed.
pub(crate) fn install(repo: &Repo) -> Result<PathBuf> {
    let tools = repo.root.join("target/tools");
    let own = tools.join("bin/cargo-deny");
    for candidate in [own.clone(), PathBuf::from("cargo-deny")] {
        let version = command::read(command::new(&candidate).arg("--version"));
        if version.is_ok_and(|version| version == format!("cargo-deny {VERSION}")) {
            return Ok(candidate);
        }
    }
    eprintln!("    building cargo-deny {VERSION}, which later runs reuse (takes about a minute)");
    let mut cargo = repo.cargo("install");
    // Without optimisation and debug information it takes a third of the time to build, and still
    // checks in seconds.
    cargo.args(["--config", "profile.dev.debug=false"]);
    command::run(cargo.args(["cargo-deny", "--locked", "--debug", "--version", VERSION, "--root"]).arg(&tools))?;
    Ok(own)
}

/// Checks everything except advisories.
pub(crate) fn dependencies(repo: &Repo, deny: &Path, manifest: &str) -> Result<()> {
    let mut check = checked(repo, deny, manifest);
    command::run(check.args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]))
}

/// Checks all dependencies for known vulnerabilities.
pub(crate) fn advisories(repo: &Repo, deny: &Path, manifests: &[&str]) -> Result<Done> {
    if let Err(error) = fetch(repo, deny) {
        return Ok(Done::Skipped(format!("{error:#}")));
    }
    for manifest in manifests {
        command::run(checked(repo, deny, manifest).args(["--offline", "check", "advisories"]))?;
    }
    Ok(Done::Ran)
}

fn checked(repo: &Repo, deny: &Path, manifest: &str) -> Command {
    let mut command = command::new(deny);
    command.current_dir(&repo.root).args(["--config", "deny.toml", "--manifest-path", manifest]);
    command
}

fn fetch(repo: &Repo, deny: &Path) -> Result<()> {
    let mut fetch = checked(repo, deny, "Cargo.toml");
    // git stops if no data arrives, and does not ask for a password.
    fetch.env("GIT_TERMINAL_PROMPT", "0").env("GIT_HTTP_LOW_SPEED_LIMIT", "1000").env("GIT_HTTP_LOW_SPEED_TIME", "20");
    finish_within(fetch.args(["fetch", "db"]), FETCH).context("the advisory database could not be fetched")
}

/// Runs the command within a time limit; the error is the last line of its stderr.
fn finish_within(command: &mut Command, time: Duration) -> Result<()> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    while child.try_wait()?.is_none() {
        if start.elapsed() > time {
            child.kill()?;
            child.wait()?;
            bail!("it did not finish within {} s", time.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
        bail!("{}", last.unwrap_or("it wrote nothing to stderr"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_or_takes_too_long_is_an_error() {
        for (script, problem) in [
            ("true", None),
            ("echo first >&2; echo last >&2; exit 1", Some("last")),
            ("exit 1", Some("it wrote nothing to stderr")),
            ("exec sleep 30", Some("it did not finish within 1 s")),
        ] {
            let result = finish_within(Command::new("sh").args(["-c", script]), Duration::from_secs(1));
            assert_eq!(result.err().map(|error| error.to_string()).as_deref(), problem, "{script}");
        }
    }
}
