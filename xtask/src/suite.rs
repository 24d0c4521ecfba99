//! `cargo xtask test`: everything that must be green, in both workspaces.
//!
//! Set-up and build come first, for what needs them. After that a failure does
//! not hide the next: every step runs, and the summary shows them all, with what
//! this machine had to skip. What was left out on demand is in the last lines.

mod integration;
mod quick;

use crate::arguments::{Part, Test};
use crate::attack;
use crate::build;
use crate::command;
use crate::deny;
use crate::features;
use crate::fuzz;
use crate::release::render;
use crate::repo::Repo;
use crate::skips::{self, Reports};
use crate::steps::{Steps, joined};
use crate::tidy;
use anyhow::{Result, anyhow};
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};

const WITHOUT_OPENSTACK: &str = "NOT RUN: openstack";

pub(crate) fn run(repo: &Repo, test: &Test) -> Result<()> {
    if test.quick {
        return quick::run(repo, &test.rest);
    }
    let done = parts(repo, test);
    if test.without_openstack { with_last_lines(done, WITHOUT_OPENSTACK) } else { done }
}

/// The last lines are what they must be, whatever became of the rest.
fn with_last_lines(done: Result<()>, lines: &str) -> Result<()> {
    match done {
        Ok(()) => eprintln!("{lines}"),
        Err(error) => return Err(anyhow!("{error:#}\n{lines}")),
    }
    Ok(())
}

fn parts(repo: &Repo, test: &Test) -> Result<()> {
    let Test { only, rest, .. } = test;
    let wanted = |part: Part| only.is_none_or(|only| only == part);
    let reports = Reports::new(repo)?;
    let mut steps = Steps::new();
    let built = thread::scope(|threads| {
        // What others wait for is built and started beside what they do not need.
        let deny = wanted(Part::Lint).then(|| threads.spawn(|| deny::install(repo)));
        if wanted(Part::Integration) || wanted(Part::Attack) {
            build::everything(repo, &mut steps)?;
        }
        if let Some(deny) = deny {
            lint(repo, &mut steps, deny);
        }
        let surroundings = wanted(Part::Integration)
            .then(|| threads.spawn(|| integration::surroundings(repo, !test.without_openstack)));
        if wanted(Part::Unit) {
            unit(repo, &mut steps, rest);
        }
        if wanted(Part::Guests) {
            guests(repo, &mut steps, rest);
        }
        if let Some(surroundings) = surroundings {
            integration::steps(repo, &mut steps, rest, &reports, surroundings);
        }
        if wanted(Part::Attack) {
            attacks(repo, &mut steps, *only, rest, &reports);
        }
        Ok(())
    });
    built.and(finish(repo, steps, &reports, test.without_openstack))
}

/// Adds what the test programs skipped, and prints the summary. What nobody wanted
/// to run is not a skip.
fn finish(repo: &Repo, mut steps: Steps, reports: &Reports, without_openstack: bool) -> Result<()> {
    match reports.read() {
        Ok(mut skips) => {
            skips.retain(|skip| !(without_openstack && skip.name == "openstack"));
            steps.skipped(skips);
        }
        Err(error) => steps.check("what was skipped", || Err(error)),
    }
    if skips::in_ci() {
        let checked = skips::check(&repo.root, steps.skips());
        steps.check("skips are listed", || checked);
    }
    steps.finish()
}

/// A filter for tests of all kinds need not be the name of an attack, and is none
/// of a fuzz target.
fn attacks(repo: &Repo, steps: &mut Steps, only: Option<Part>, rest: &[String], reports: &Reports) {
    if rest.is_empty() || only == Some(Part::Attack) {
        steps.check("attacks", || attack::corpus(repo, &repo.dist(), rest, Some(reports)));
    }
    if rest.is_empty() {
        steps.check("fuzz targets", || fuzz::test(repo));
    }
}

fn format_and_tidy(repo: &Repo, steps: &mut Steps) {
    steps.check("tidy", || tidy::run(&repo.root));
    steps.check("format: runtime", || command::run(command::new("cargo").current_dir(&repo.root).args(FORMAT)));
    steps.check("format: guests", || command::run(command::new("cargo").current_dir(repo.guests()).args(FORMAT)));
}

fn lint(repo: &Repo, steps: &mut Steps, deny: ScopedJoinHandle<'_, Result<PathBuf>>) {
    format_and_tidy(repo, steps);
    steps.check("clippy: runtime", || {
        // All there is: the next step sees what it would be without.
        let features = format!("{},fuzz/engine", build::HOLES_FEATURES);
        let mut cargo = repo.cargo("clippy");
        command::run(cargo.args(["--workspace", "--features", &features, "--all-targets"]).args(DENY_WARNINGS))
    });
    steps.check("clippy: what plain cargo builds", || {
        // Without the features of tests, which export what would be dead code otherwise.
        command::run(repo.cargo("clippy").args(DENY_WARNINGS))
    });
    steps.check("clippy: runtime without compiler and holes", || {
        command::run(repo.cargo("clippy").args(["--package", build::HOT]).args(DENY_WARNINGS))
    });
    steps.check("clippy: guests", || {
        command::run(repo.cargo_guests("clippy").args(["--workspace", "--all-targets"]).args(DENY_WARNINGS))
    });
    steps.check("documentation", || {
        command::run(repo.cargo("doc").arg("--no-deps").env("RUSTDOCFLAGS", "--deny warnings"))
    });
    steps.check("features of the hot program", || features::check(repo));
    let Ok(deny) = steps.need("cargo-deny, what was left of its build", || joined(deny)) else { return };
    for (name, manifest) in MANIFESTS {
        steps.check(&format!("dependencies: {name}"), || deny::dependencies(repo, &deny, manifest));
    }
    steps.check_if_possible("advisories", || deny::advisories(repo, &deny, &MANIFESTS.map(|(_, manifest)| manifest)));
}

fn unit_tests(repo: &Repo, steps: &mut Steps, rest: &[String]) {
    unit(repo, steps, rest);
    guests(repo, steps, rest);
}

fn unit(repo: &Repo, steps: &mut Steps, rest: &[String]) {
    steps.check("unit tests: runtime", || {
        // What plain `cargo test` runs, over the dependencies that the programs were built with:
        // to compile them a second time takes minutes. No time is spent on optimising test code.
        let mut cargo = repo.cargo_static("test");
        cargo.arg("--release");
        for package in ["wasm-cpi", "wasm-cpi-policy"] {
            cargo.args(["--config", &format!("profile.release.package.{package}.opt-level=0"), "--package", package]);
        }
        run_tests(&mut cargo, rest)
    });
    steps.check("unit tests: xtask", || {
        render::setup()?;
        run_tests(repo.cargo("test").args(["--package", "xtask"]), rest)
    });
}

fn guests(repo: &Repo, steps: &mut Steps, rest: &[String]) {
    steps.check("unit tests: guests", || run_tests(repo.cargo_guests("test").arg("--workspace"), rest));
}

fn run_tests(cargo: &mut Command, rest: &[String]) -> Result<()> {
    command::run(cargo.arg("--").args(rest))
}

const FORMAT: [&str; 3] = ["fmt", "--all", "--check"];
const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];
const MANIFESTS: [(&str, &str); 3] =
    [("runtime", "Cargo.toml"), ("guests", "guests/Cargo.toml"), ("fuzzer", "tests/fuzz/engine/Cargo.toml")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_in_the_last_line_of_a_failure_too() {
        let error = with_last_lines(Err(anyhow!("1 of 2 steps failed")), WITHOUT_OPENSTACK).unwrap_err();
        assert_eq!(format!("{error:#}").lines().last(), Some("NOT RUN: openstack"));
        with_last_lines(Ok(()), WITHOUT_OPENSTACK).unwrap();
    }
}
